"""Arguments of cross-entropy as both devices read them: the axis of classes, labels or probabilities, labels that are no class."""

from __future__ import annotations

from typing import Any

import numpy as np

from tritensor.ground import dtypes
from tritensor.ground.errors import OutOfRangeError
from tritensor.kernels.parts.indices.error_reports import spot


def is_labels(target: Any) -> bool:
    return not dtypes.is_float(target.dtype)


def class_axis(x: Any) -> int:
    """The axis of classes: 1, or 0 for one unbatched row."""
    return 1 if len(x.shape) > 1 else 0


def per_row(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of what there is one of per row: logits without classes."""
    return shape[:1] + shape[2:] if len(shape) > 1 else ()


def no_class(name: str, classes: int, ignore_index: int, value: int, where: Any) -> str:
    """The error's words for a label that is no class, on both devices."""
    known = f"there are {classes}, 0 to {classes - 1}" if classes else "there are none"
    known = f"{known} (ignore_index is {ignore_index}); give labels among these"
    return f"{name}: label {value} at position {where} is no class; {known}"


def check_labels(name: str, target: np.ndarray, classes: int, ignore_index: int) -> bool:
    """Whether some label is `ignore_index`; IndexError for one that is no class, with its value and position."""
    if target.size == 0:
        return False
    if np.minimum.reduce(target, axis=None) >= 0 and np.maximum.reduce(target, axis=None) < classes and not 0 <= ignore_index < classes:
        return False
    wrong = ((target < 0) | (target >= classes)) & (target != ignore_index)
    if wrong.any():
        at = int(np.flatnonzero(wrong)[0])
        raise OutOfRangeError(no_class(name, classes, ignore_index, int(target.reshape(-1)[at]), spot(at, target.shape)))
    return bool((target == ignore_index).any())
