"""Formulas of elementwise ops that have a twin for results of 16 bits, made of approximate functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

_twins: dict[Any, Any] = {}


def narrow_twin(formula: Any, twin: Any) -> None:
    """Say which formula stands for another, in kernels that give 16-bit results of float32 values."""
    _twins[formula] = twin


def chosen(formulas: Sequence[Any], results: Sequence[Any], double: bool) -> tuple[Any, ...]:
    """The formulas of results (arrays): of 16 bits their twins, where they have one and nothing is computed in float64 (`double`)."""
    return tuple([f if double or y.dtype.itemsize != 2 else _twins.get(f, f) for f, y in zip(formulas, results, strict=True)])
