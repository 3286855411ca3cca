"""Python functions of single numbers, called for every element in place; and tensors as instances of a subclass."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tritensor.autograd.node import version_of
from tritensor.ground import dtypes
from tritensor.ground.errors import DeviceError, DTypeError, GradError
from tritensor.ops.array import CudaArray
from tritensor.ops.table import ops
from tritensor.tensor.aliasing.inplace import overwrite
from tritensor.tensor.core import Tensor, new_tensor
from tritensor.tensor.public_api.publish import function


def _apply_elementwise(name: str, f: Callable[..., Any], x: Tensor, *others: Tensor) -> Tensor:
    """x overwritten by f of each element of x and of the others, broadcast to x. Raises before f is called."""
    if not callable(f):
        raise TypeError(f"{name}: callable is {f!r}; give a function of {1 + len(others)} numbers")
    for t in (x, *others):
        if isinstance(t.array, CudaArray):
            raise DeviceError(f"{name}: the tensor is on {t.device}; Python functions are called with numbers of the CPU, use .cpu() first")
        if t.tracked:
            raise GradError(f"{name}: the tensor requires grad, and a Python function has no gradient; call it on x.detach()")
        if t.array.dtype != x.array.dtype:
            raise DTypeError(f"{name}: the tensor is {x.dtype.name}, other {t.dtype.name}; cast it with .to({x.dtype.name})")
    # Python numbers, as torch passes them, not numpy scalars.
    lists = [ops.expand(t, shape=tuple(x.array.shape)).reshape(-1).tolist() for t in (x, *others)]
    values = [v.item() if isinstance(v, np.generic) else v for v in (f(*numbers) for numbers in zip(*lists, strict=True))]
    wrong = [v for v in values if not isinstance(v, bool | int | float | complex)]
    if wrong:
        raise TypeError(f"{name}: callable returned {wrong[0]!r}, of type {type(wrong[0]).__name__}; make it return a number")
    kind = x.array.dtype
    found = np.array([dtypes.as_element(kind, v, name) for v in values]).astype(kind).reshape(x.array.shape)
    return overwrite(x, new_tensor(found), name)


@function(free=False)
def apply_(x: Tensor, callable: Callable[[Any], Any]) -> Tensor:
    """Write callable(v) over every element v: a Python call for each, on the CPU, for trying things out. Returns x."""
    return _apply_elementwise("apply_", callable, x)


@function(free=False)
def map_(x: Tensor, other: Tensor, callable: Callable[[Any, Any], Any]) -> Tensor:
    """Write callable(v, w) over every element v of x, w of other, which broadcasts to x: a Python call for each, on the CPU. Returns x."""
    return _apply_elementwise("map_", callable, x, other)


@function(free=False)
def map2_(input: Tensor, x: Tensor, y: Tensor, callable: Callable[[Any, Any, Any], Any]) -> Tensor:
    """map_ with a function of three elements: of this tensor and of two others. Returns this one."""
    return _apply_elementwise("map2_", callable, input, x, y)


@function(free=False)
def as_subclass(x: Tensor, cls: type) -> Any:
    """The same memory, outside the graph as detach() gives it, as an instance of cls, a subclass of Tensor, whose __init__ is not called. Writes are
    seen, and counted, on both sides; what is computed from it are Tensors.

    Raises GradError for a tensor that requires grad: views in a graph are Tensors.
    """
    if not (isinstance(cls, type) and issubclass(cls, Tensor)):
        raise TypeError(f"as_subclass: cls is {getattr(cls, '__name__', repr(cls))}; give a subclass of Tensor")
    if x.tracked:
        raise GradError(
            f"as_subclass: the tensor requires grad, and a view in its graph is a Tensor, no {cls.__name__}; call it on x.detach()"
        )
    made = Tensor.__new__(cls)
    made.array, made.version = x.array, version_of(x)
    return made
