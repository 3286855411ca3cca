"""Reasons why tests of a library's own suite do not pass here: found by what the test is called, or by its error."""

from __future__ import annotations

import collections
import re
from collections.abc import Mapping

UNKNOWN = "not looked into"

# (pattern of `test: error`, reason), the first that matches. Those of every library stand under "".
REASONS: dict[str, tuple[tuple[str, str], ...]] = {
    "": (
        (r": NotImplementedError: (torch\.)?fx\.", "asks for fx, which is not here yet"),
        (r"sparse_(coo|csr|csc|bsr|bsc)|\bsparse\.|to_sparse", "sparse layouts are not here yet"),
        (r"nested_tensor|torch\.nested|jagged", "nested layouts are not here yet"),
        (r"cpp_extension", "compiles C++ against PyTorch"),
        (r": Failed: Timeout|: no end after", "takes too long"),
    ),
    "BackPACK": (
        (r"error raised while trying to determine id of parameter 'problem'", "asks for fx, which is not here yet"),
        (r"montecarlo.*assert False", "compares a mean of random numbers: by chance"),
    ),
    "Captum": (
        (
            r"(stochastic_gates|test_kernel_shap|test_lime).*Values at index|test_perm_fn_broadcastable_masks",
            "compares figures that PyTorch's random numbers gave; with other seeds it fails under PyTorch as well",
        ),
    ),
    "GPyTorch": (
        (
            r"test_bernoulli_likelihood.*: max: input \(0,\)",
            "the log_prob of what cannot be is -inf here; PyTorch clamps the probability (docs/differences.md)",
        ),
    ),
    "linear_operator": (
        (r"TestInterpolated.*('evecs'|Could not convert)", "sparse layouts are not here yet"),
        (
            r"TestBatchRepeat.*('evecs'|holds a NaN)",
            "a residual of its Lanczos method is exactly 0 with these random numbers, and it divides by it",
        ),
        (r"test_(root_decomposition_cholesky|solve_\w+).*assert", "fails with these random numbers, under PyTorch as well"),
    ),
    "nflows": (
        (
            r"test_forward_inverse_are_consistent.*different",
            "bounds the rounding of random numbers; with other draws it fails under PyTorch as well",
        ),
    ),
    "Pyro": ((r"(test_stable|test_gumbel_softmax).*(> 0\.\d+| vs |tensor\()", "compares a mean of random numbers: by chance"),),
    "torchdiffeq": (
        (
            r"test_seminorm.*not less than or equal",
            "counts the steps that a network of random weights takes; of other weights it fails under PyTorch as well",
        ),
    ),
    "xitorch": (
        (r"test_(rootfinder|minimize)\w*\[.*(assert False|Jacobian mismatch)", "fails with these random numbers, under PyTorch as well"),
        (r"test_minimize\w*\[.*yielded zero vector", "an iterate of its Broyden method is the root exactly, which it takes for an error"),
    ),
}


def of(library: str, test: str, error: str) -> str:
    """The reason why a test of a library does not pass."""
    line = f"{test}: {error}"
    return next((why for pattern, why in (*REASONS.get(library, ()), *REASONS[""]) if re.search(pattern, line)), UNKNOWN)


def counted(library: str, others: Mapping[str, str]) -> dict[str, int]:
    """{reason: how many tests}, the most frequent first."""
    return dict(collections.Counter(of(library, test, error) for test, error in others.items()).most_common())
