"""The views of the neighbouring files as copies: `view_copy` and its kin, contiguous tensors of their own; and detach as a function."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from tritensor.ground.dtypes import DType
from tritensor.ground.errors import ArgumentError
from tritensor.ops.table import normal_dim, ops
from tritensor.tensor.core import Tensor
from tritensor.tensor.functions.shaping import joining, reshaping, strided
from tritensor.tensor.public_api.publish import function, rename_function


def _copy_view(view: Any) -> Any:
    """A contiguous copy of a view, or of each of several."""
    # ops.copy, not clone: PyTorch's *_copy functions give C order whatever the view's layout.
    return tuple([ops.copy(v) for v in view]) if isinstance(view, tuple) else ops.copy(view)


def _publish_copy(name: str, doc: str, view: Callable[[Tensor], Tensor]) -> None:
    def call(x: Tensor) -> Tensor:
        return ops.copy(view(x))

    function(method=False, out=True)(rename_function(call, name, doc))


def _publish_copy_of(view: Callable[..., Any], doc: str) -> None:
    """The same of a published view with more parameters, which are the copy's too."""

    def call(*args: Any, **kwargs: Any) -> Any:
        return _copy_view(view(*args, **kwargs))  # the view itself, which refuses what does not fit

    call.__signature__ = inspect.signature(inspect.unwrap(view))  # type: ignore[attr-defined]  # publishing reads the body's parameters
    function(method=False, out=True)(rename_function(call, f"{view.__name__}_copy", doc))


_publish_copy("alias_copy", "A copy of x.", lambda x: x)
_publish_copy("detach_copy", "A copy of x, in the graph, as in PyTorch; x.detach().clone() is outside.", lambda x: x)
_publish_copy("t_copy", "x.t() as a copy.", reshaping.t)
_publish_copy("view_as_real_copy", "view_as_real(x) as a copy: (..., 2).", lambda x: ops.view_as_real(x))
_publish_copy("view_as_complex_copy", "view_as_complex(x) as a copy: (..., 2) -> (...).", lambda x: ops.view_as_complex(x))
_publish_copy_of(reshaping.squeeze, "x.squeeze(dim) as a copy.")
_publish_copy_of(reshaping.unsqueeze, "x.unsqueeze(dim) as a copy.")
_publish_copy_of(joining.select, "x.select(dim, index) as a copy.")
_publish_copy_of(reshaping.diagonal, "x.diagonal(offset, dim1, dim2) as a copy.")
_publish_copy_of(strided.as_strided, "x.as_strided(size, stride, storage_offset) as a copy.")
_publish_copy_of(reshaping.unfold, "x.unfold(dimension, size, step) as a copy.")
_publish_copy_of(joining.unbind, "Copies of all slices along a dimension.")
_publish_copy_of(joining.split_with_sizes, "Copies of the parts that split_with_sizes gives.")


@function(method=False)
def detach(x: Tensor) -> Tensor:
    """x.detach(): the same memory outside the graph."""
    return x.detach()


@function(method=False)
def detach_(x: Tensor) -> Tensor:
    """x.detach_(): x itself cut off its graph. Raises GradError for a view."""
    return x.detach_()


@function(method=False, out=True, also={"dtype": "size"})
def view_copy(x: Tensor, size: Any) -> Tensor:
    """x.view(size), or of a type x.view(dtype), as a copy, which needs no view of that size."""
    # A dtype reads the bytes anew; a size may be any reshape, because a copy follows.
    return _copy_view(reshaping.view(x, size) if isinstance(size, DType) else reshaping.reshape(x, size))


@function(method=False, out=True)
def expand_copy(x: Tensor, size: Any, *, implicit: bool = False) -> Tensor:
    """x.expand(size) as a copy. `implicit` changes nothing."""
    return _copy_view(reshaping.expand(x, size))


@function(method=False, out=True)
def permute_copy(x: Tensor, dims: Any) -> Tensor:
    """x.permute(dims) as a copy."""
    return _copy_view(reshaping.permute(x, dims))


@function(method=False, out=True)
def transpose_copy(x: Tensor, dim0: int, dim1: int) -> Tensor:
    """x.transpose(dim0, dim1) as a copy."""
    return _copy_view(reshaping.transpose(x, dim0, dim1))


@function(method=False, out=True)
def slice_copy(x: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1) -> Tensor:
    """Elements start to end - 1 of a dimension, every `step`-th, as a copy. Raises ValueError for a step below 1."""
    # PyTorch's slices do not step back; numpy's would.
    if step < 1:
        raise ArgumentError(f"slice_copy: step is {step}; give a positive one")
    if not x._array.shape:
        raise IndexError("slice_copy: a 0-d tensor has no dimension to slice; reshape it to (1,)")
    d = normal_dim("slice_copy", dim, len(x._array.shape))
    return _copy_view(ops.index_view(x, index=(*(slice(None),) * d, slice(start, end, step))))


@function(method=False, out=True)
def split_copy(x: Tensor, split_size: Any, dim: int = 0) -> tuple[Tensor, ...]:
    """Copies of the parts that split gives."""
    return _copy_view(joining.split(x, split_size, dim))
