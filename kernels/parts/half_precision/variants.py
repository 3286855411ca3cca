"""Variants of formulas for results of 16 bits, made of approximate functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

_VARIANTS: dict[Any, Any] = {}


def register_half_variant(formula: Any, variant: Any) -> None:
    """Say which formula stands for another, in kernels that give 16-bit results of float32 values; before it is launched for the first time."""
    _VARIANTS[formula] = variant


def half_variants(formulas: Sequence[Any], results: Sequence[np.dtype], double: bool) -> tuple[Any, ...]:
    """The formulas of results of these types: of 16 bits their variants, where they have one and nothing is computed in float64 (`double`)."""
    # rounding to 16 bits covers the errors of approximate functions, rounding to float32 would not
    return tuple([f if double or kind.itemsize != 2 else _VARIANTS.get(f, f) for f, kind in zip(formulas, results, strict=True)])
