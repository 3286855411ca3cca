"""Where an answer may be another than PyTorch's: random and undefined values, vectors without a sign, wider tolerances, each with its reason."""

from __future__ import annotations

# Values drawn from a generator: PyTorch's own stream of numbers is not promised, shapes and types are compared.
RANDOM = {
    "bernoulli", "cauchy", "exponential", "geometric", "log_normal", "multinomial", "nn.functional.alpha_dropout", "nn.functional.dropout",
    "nn.functional.dropout2d", "nn.functional.dropout3d", "nn.functional.feature_alpha_dropout", "nn.functional.fractional_max_pool2d",
    "nn.functional.fractional_max_pool3d", "nn.functional.rrelu", "normal", "rand_like", "randint", "randint_like", "randn", "randn_like", "uniform",
}  # fmt: skip

# Memory that nobody wrote: shapes and types are compared.
UNDEFINED = {"empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided"}

# Vectors that are defined up to a sign or a phase: what the sample's own output_process_fn_grad makes of them is compared, beside all shapes and types.
PHASE = {
    "svd": "singular vectors",
    "linalg.svd": "singular vectors",
    "linalg.eigh": "eigenvectors",
    "linalg.eig": "eigenvectors",
    "svd_lowrank": "singular vectors of a random projection",
    "pca_lowrank": "singular vectors of a random projection",
}

# Relative and absolute, by the type of the answer. float32 and float64 as torch.testing.assert_close has them, but ten times in the relative part:
# both libraries are a few units from the truth, on either side.
TOLERANCE = {
    "float16": (2e-3, 1e-5),
    "bfloat16": (1.6e-2, 1e-5),
    "float32": (1.3e-5, 1e-5),
    "complex64": (1.3e-5, 1e-5),
    "float64": (1e-6, 1e-7),
    "complex128": (1e-6, 1e-7),
}

# Ops whose answers are worse conditioned than that: a factor to both, and why.
WIDER: dict[str, tuple[float, str]] = {
    "matrix_exp": (30.0, "a sample of norm 27: PyTorch's float32 is off by 3e-6 of the largest element, ours by 1e-6"),
}


def values_matter(name: str) -> bool:
    """Whether an operation's values are compared."""
    return name not in RANDOM and name not in UNDEFINED
