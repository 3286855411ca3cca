"""Parts of shape rules: broadcasting, dimensions counted from the front, and refusals of element types."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from tritensor.ground import dtypes
from tritensor.ground.errors import DTypeError, IndexShapeError, ShapeError


def broadcast(name: str, *shapes: tuple[int, ...], labels: Sequence[str] = ("a", "b", "c")) -> tuple[int, ...]:
    """The numpy broadcast of shapes; raises ShapeError naming the op, the operands and the sizes that disagree."""
    if shapes.count(shapes[0]) == len(shapes):
        return shapes[0]
    out: list[int] = []
    for k in range(1, max(map(len, shapes)) + 1):
        size = 1
        for s in shapes:
            if len(s) >= k and s[-k] != 1:
                if size not in (1, s[-k]):
                    given = ", ".join(f"{label} {s}" for label, s in zip(labels, shapes, strict=False))
                    # the last sentence opens in PyTorch's words: programs tell this error by them
                    raise ShapeError(
                        f"{name}: {given}: sizes {size} and {s[-k]} at dim -{k} do not broadcast. "
                        f"The size of tensor a ({size}) must match the size of tensor b ({s[-k]}), or be 1"
                    )
                size = s[-k]
        out.append(size)
    return tuple(reversed(out))


def one_integer(value: Any) -> Any:
    """numpy's integers, and integer tensors of no dimension, as the int they are; all else as it is."""
    if isinstance(value, int) or not hasattr(type(value), "__index__") or getattr(value, "ndim", False):
        return value
    try:
        return operator.index(value)
    except TypeError:  # a float tensor
        return value


def normal_dim(name: str, dim: int, ndim: int) -> int:
    """A dimension counted from the front; raises IndexError naming op, dim and range. A 0-d tensor has dims -1 and 0."""
    span = max(ndim, 1)
    # True is an int to Python, and never meant as a dimension
    if isinstance(dim, bool) or not isinstance(dim, int | np.integer):
        given, dim = dim, one_integer(dim)
        if given is dim:
            raise TypeError(f"{name}: dim {dim!r} is not an integer; give an int")
    if not -span <= dim < span:
        raise IndexError(f"{name}: dim {dim} is out of range for a {ndim}-dimensional tensor; it has dims {-span} to {span - 1}")
    return int(dim) % span


def sized_dim(name: str, dim: int, ndim: int) -> int:
    """normal_dim where the dimension has to be there: IndexShapeError for a 0-d tensor, which has none."""
    if not ndim:
        raise IndexShapeError(f"{name}: a 0-d tensor has no dimension {dim}; reshape it to (1,)")
    return normal_dim(name, dim, ndim)


def normal_dims(name: str, dim: int | Sequence[int] | None, ndim: int) -> tuple[int, ...]:
    """Dimensions counted from the front, sorted; None means all. Raises on a repeated one."""
    if dim is None:
        return tuple(range(ndim))
    if type(dim) is tuple:  # most often it is so already: the public functions give ops what this returned
        before = -1
        for d in dim:
            if type(d) is not int or not before < d < ndim:
                break
            before = d
        else:
            return dim
    dim = one_integer(dim)
    if isinstance(dim, int):
        return (normal_dim(name, dim, ndim),) if ndim else (normal_dim(name, dim, ndim),)[:0]
    # sorted: kernels and keys know one order of the same dimensions
    dims = sorted(normal_dim(name, d, ndim) for d in dim)
    if len(set(dims)) != len(dims):
        raise ShapeError(f"{name}: dim {tuple(dim)} names a dimension twice; name each once")
    return tuple(dims) if ndim else ()


_CAST_TO = {"bool": "bool", "uint": "uint8", "int": "int64", "float": "float32", "complex": "complex64"}  # a type of each kind


def refuse_kind(name: str, dtype: np.dtype, kinds: Sequence[str], label: str = "x") -> None:
    """Raise DTypeError for an element type the op does not take."""
    d = dtypes.of(dtype)
    if d.kind not in kinds:
        into = _CAST_TO["float" if "float" in kinds else kinds[-1]]
        mend = f"cast it with .to({into})" if d.kind != "complex" else "take .real, .imag or .abs() first"
        raise DTypeError(f"{name}: {label} is {d.name}; {name} takes {', '.join(kinds)} types; {mend}")


def refuse_mixed(name: str, first: tuple[str, Any], *others: tuple[str, Any]) -> None:
    """Raise DTypeError where a labelled array (None: not given) is of another element type than the first."""
    label, x = first
    for other, y in others:
        if y is not None and y.dtype != x.dtype:
            raise DTypeError(
                f"{name}: {label} is {dtypes.of(x.dtype).name}, {other} {dtypes.of(y.dtype).name}; cast one so that both are the same"
            )
