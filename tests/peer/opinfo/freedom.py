"""Answers that may be others than PyTorch's: random and undefined values, vectors without a sign, wider tolerances, each with its reason."""

from __future__ import annotations

from typing import Any

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
    "nn.functional.conv_transpose3d": (
        3.0,
        "sums of 108 products as large as 80, one of which is -0.7: either is off by 1e-4 to 2e-4 where sums reach 890",
    ),
    "matrix_exp": (30.0, "a sample of norm 27: PyTorch's float32 is off by 3e-6 of the largest element, ours by 1e-6"),
    "nn.functional.multi_head_attention_forward": (
        3.0,
        "results of 0.1 and -0.8 among sums that reach 1010: of two samples PyTorch is off by 2.8e-5 in one place, ours by 2.2e-5 in the other",
    ),
}


# Samples that draw where others of the same operation do not: the place of `dropout_p` among the arguments behind the first, or none.
DROPPING = {"nn.functional.scaled_dot_product_attention": None, "nn.functional.multi_head_attention_forward": 9}


def values_matter(name: str, sample: Any = None) -> bool:
    """Whether an operation's values are compared, of this sample."""
    if name in DROPPING and sample is not None:
        place = DROPPING[name]
        dropped = sample.kwargs.get("dropout_p", 0.0) if place is None else sample.args[place]
        return not (dropped and sample.kwargs.get("training", True))
    return name not in RANDOM and name not in UNDEFINED
