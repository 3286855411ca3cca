"""Losses' arguments: shapes that belong together, a reduction and how it is made, the classes that labels name."""

from __future__ import annotations

import numpy as np

from tritensor.ground.call_site import warn
from tritensor.ground.errors import DTypeError, OutOfRangeError, ShapeError
from tritensor.ops.table import ops
from tritensor.ops.table.shape_rules import broadcast
from tritensor.tensor.core import Tensor

REDUCTIONS = ("none", "mean", "sum")


def require_same_shape(name: str, input: Tensor, target: Tensor) -> None:
    """Raise ShapeError for two shapes, with the change that makes one of them: (N, 1) against (N) would average over N * N pairs."""
    if input.shape != target.shape:
        a, b = tuple(input.shape), tuple(target.shape)
        raise ShapeError(f"{name}: input {a} and target {b} must have one shape; {_suggest_shape(a, b)}")


def _suggest_shape(a: tuple[int, ...], b: tuple[int, ...]) -> str:
    if a and a[:-1] == b and a[-1] == 1:
        return "give input.squeeze(-1), or target.unsqueeze(-1)"
    if b and b[:-1] == a and b[-1] == 1:
        return "give target.squeeze(-1), or input.unsqueeze(-1)"
    return "reshape or expand one of them"


def broadcast_to_one(name: str, *tensors: tuple[str, Tensor]) -> tuple[Tensor, ...]:
    """Tensors that broadcast, expanded to the one shape. Raises ShapeError where they do not, and where the result would have more dimensions'
    sizes than any of them: (N, 1) against (N)."""
    shapes = [tuple(x.shape) for _, x in tensors]
    if all(s == shapes[0] for s in shapes):
        return tuple(x for _, x in tensors)
    shape = broadcast(name, *shapes, labels=[label for label, _ in tensors])
    if shape not in shapes:  # (N, 1) against (N): the usual slip, which would average over N * N pairs
        (first, a), (second, b) = [(label, s) for (label, _), s in zip(tensors, shapes, strict=True)][:2]
        raise ShapeError(f"{name}: {first} {a} and {second} {b} would become {shape}, every pair of their elements; {_suggest_shape(a, b)}")
    return tuple(x if tuple(x.shape) == shape else ops.expand(x, shape=shape) for _, x in tensors)


def check_reduction(name: str, reduction: str) -> None:
    if reduction not in REDUCTIONS:
        raise ValueError(f"{name}: reduction is {reduction!r}; it is 'mean', 'sum' or 'none'")


def check_flags(name: str, **flags: bool) -> None:
    """Raise TypeError for a flag that is no bool: of a word, any is true."""
    for label, flag in flags.items():
        if not isinstance(flag, bool | np.bool_):  # numpy's comparisons give the latter
            raise TypeError(f"{name}: {label} is {flag!r}; give True or False")


def check_floats(name: str, **tensors: Tensor) -> None:
    for label, x in tensors.items():
        if not x.dtype.is_floating_point:
            raise DTypeError(f"{name}: {label} is {x.dtype.name}; it takes float types; cast it with .float()")


def check_labels(name: str, target: Tensor, classes: int, ignored: int | None = None) -> None:
    """Raise DTypeError for labels that are no integers, and on the CPU OutOfRangeError (an IndexError) for one that is no class: its value, its position
    and the classes. On a GPU, where to look would be to wait, the kernels that use them report it."""
    if target.dtype.kind not in ("int", "uint"):
        raise DTypeError(f"{name}: target is {target.dtype.name}; class labels are integers, cast it with .long()")
    labels = target._array
    if not isinstance(labels, np.ndarray) or not labels.size:  # of a GPU's or a transform's nothing can be read
        return
    # the usual batch in two passes, without a mask of its size
    if np.minimum.reduce(labels, axis=None) >= 0 and np.maximum.reduce(labels, axis=None) < classes:
        return
    wrong = (labels < 0) | (labels >= classes)
    if ignored is not None:
        wrong &= labels != ignored
    if wrong.any():
        at = np.argwhere(wrong)[0].tolist()  # the first in C order: where a reader would look for it
        value = int(labels[tuple(at)])
        also = f" (ignore_index is {ignored})" if ignored is not None else ""
        where = at[0] if len(at) == 1 else tuple(at)
        raise OutOfRangeError(
            f"{name}: label {value} at position {where} is no class; there are {classes}, 0 to {classes - 1}{also}; give labels among these"
        )


def reduction_name(size_average: bool | None, reduce: bool | None, reduction: str, name: str = "") -> str:
    """The reduction meant by all three: the flags, which PyTorch has long deprecated, win where one is given.

    `name` is that of a loss which refuses others than the three by itself; what ops reduce, they refuse.
    """
    if size_average is None and reduce is None:
        if name:
            check_reduction(name, reduction)
        return reduction
    if reduce is not None and not reduce:
        meant = "none"
    else:
        meant = "mean" if size_average is None or size_average else "sum"
    warn(f"size_average and reduce are deprecated; give reduction={meant!r} instead")
    return meant


def reduce_loss(name: str, loss: Tensor, reduction: str, weight: Tensor | None = None) -> Tensor:
    """A loss reduced: "none", "sum", or "mean", which divides by the weights' sum where there are weights."""
    if reduction == "mean" and weight is not None:
        return ops.div(reduce_loss(name, loss, "sum"), reduce_loss(name, weight, "sum"))
    if reduction == "mean":
        return ops.mean(loss, dim=tuple(range(loss.ndim)), keepdim=False)
    if reduction == "sum":
        return ops.sum(loss, dim=tuple(range(loss.ndim)), keepdim=False)
    if reduction != "none":
        raise ValueError(f"{name}: reduction is {reduction!r}; it is 'mean', 'sum' or 'none'")
    return loss
