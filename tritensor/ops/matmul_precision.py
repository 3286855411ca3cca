"""Precision of float32 matrix products on a GPU: PyTorch's setting, and Triton's word for it."""

from __future__ import annotations

from tritensor.ops import replay

_PRECISIONS = {"highest": "ieee", "high": "tf32x3", "medium": "tf32"}
_precision = "highest"  # PyTorch's default; Triton's own would be tf32, three digits


def set_float32_matmul_precision(precision: str) -> None:
    """How float32 products run on a GPU: "highest" (full float32, the default), "high" (three TF32 products, near float32), "medium" (TF32)."""
    global _precision
    if precision not in _PRECISIONS:
        raise ValueError(f"set_float32_matmul_precision: {precision!r}; give one of {', '.join(_PRECISIONS)}")
    _precision = precision
    replay.forget()  # recorded launches hold the precision they were recorded with


def get_float32_matmul_precision() -> str:
    """The setting of set_float32_matmul_precision."""
    return _precision


def dot_precision() -> str:
    """Triton's name for the precision in force."""
    return _PRECISIONS[_precision]
