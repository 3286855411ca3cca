"""torch.nn._reduction: reductions by number, and by the two flags of older code."""

from __future__ import annotations

import warnings


def get_enum(reduction: str) -> int:
    """0 for "none", 1 for "mean", 2 for "sum". Raises ValueError for others."""
    if reduction == "elementwise_mean":
        warnings.warn("reduction='elementwise_mean' is deprecated. Please use reduction='mean' instead.", stacklevel=2)
        return 1
    numbers = {"none": 0, "mean": 1, "sum": 2}  # PyTorch's C++ enum
    if reduction not in numbers:
        raise ValueError(f"{reduction} is not a valid value for reduction")
    return numbers[reduction]


def legacy_get_string(size_average: bool | None, reduce: bool | None, emit_warning: bool = True) -> str:
    """What the two flags mean; None is True."""
    found = "none" if reduce is False else "mean" if size_average is None or size_average else "sum"
    if emit_warning:
        warnings.warn(f"size_average and reduce args will be deprecated, please use reduction='{found}' instead.", stacklevel=2)
    return found


def legacy_get_enum(size_average: bool | None, reduce: bool | None, emit_warning: bool = True) -> int:
    """The number of what the two flags mean."""
    return get_enum(legacy_get_string(size_average, reduce, emit_warning))
