"""Python functions of single numbers, called for every element in place; and tensors as instances of a subclass."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tritensor.autograd.modes import state
from tritensor.autograd.node import version_of
from tritensor.dispatch.nodes import record_node, share
from tritensor.ground import dtypes
from tritensor.ground.errors import DeviceError, DTypeError, GradError
from tritensor.ground.providers import provider
from tritensor.ground.transforms import WrappedArray
from tritensor.ops.table import ops, registry
from tritensor.tensor.aliasing.inplace import overwrite
from tritensor.tensor.core import Tensor, new_tensor
from tritensor.tensor.host_values import new_instance
from tritensor.tensor.overriding.protocol import dispatches, meet
from tritensor.tensor.public_api.publish import function


def _apply_elementwise(name: str, f: Callable[..., Any], x: Tensor, *others: Tensor) -> Tensor:
    """x overwritten by f of each element of x and of the others, broadcast to x. Raises before f is called."""
    if not callable(f):
        raise TypeError(f"{name}: callable is {f!r}; give a function of {1 + len(others)} numbers")
    for t in (x, *others):
        if t.is_cuda:
            raise DeviceError(f"{name}: the tensor is on {t.device}; Python functions are called with numbers of the CPU, use .cpu() first")
        if t._tracked:
            raise GradError(f"{name}: the tensor requires grad, and a Python function has no gradient; call it on x.detach()")
        if t._array.dtype != x._array.dtype:
            raise DTypeError(f"{name}: the tensor is {x.dtype.name}, other {t.dtype.name}; cast it with .to({x.dtype.name})")
    if x.is_meta:  # no number to call it with
        return x
    # Python numbers, as torch passes them, not numpy scalars.
    lists = [ops.expand(t, shape=tuple(x._array.shape)).reshape(-1).tolist() for t in (x, *others)]
    values = [v.item() if isinstance(v, np.generic) else v for v in (f(*numbers) for numbers in zip(*lists, strict=True))]
    wrong = [v for v in values if not isinstance(v, bool | int | float | complex)]
    if wrong:
        raise TypeError(f"{name}: callable returned {wrong[0]!r}, of type {type(wrong[0]).__name__}; make it return a number")
    kind = x._array.dtype
    found = np.array([dtypes.as_element(kind, v, name) for v in values]).astype(kind).reshape(x._array.shape)
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


def _make_subclass(cls: type[Tensor], data: Tensor, require_grad: bool = False) -> Any:
    """A leaf of a class on data's memory, whose __new__ and __init__ are not called."""
    if not isinstance(data, Tensor):
        raise TypeError(f"_make_subclass: data is a {type(data).__name__}; give a tensor")
    if dispatches(cls):
        made = provider("torch_dispatch.instances").as_instance(cls, data)
        return made.requires_grad_() if require_grad else made
    made = new_instance(cls, data.detach()._array if type(data) is Tensor else Tensor.detach(data.as_subclass(Tensor))._array)
    made._version_counter = version_of(data)
    return made.requires_grad_() if require_grad else made


def _make_wrapper_subclass(cls: type[Tensor], *args: Any, **kwargs: Any) -> Any:
    """A leaf of a class with a __torch_dispatch__ and without memory of its own: see torch_dispatch/instances.py, make_wrapper."""
    return provider("torch_dispatch.instances").make_wrapper(cls, *args, **kwargs)


Tensor._make_subclass = staticmethod(_make_subclass)  # type: ignore[attr-defined]
Tensor._make_wrapper_subclass = staticmethod(_make_wrapper_subclass)  # type: ignore[attr-defined]


@function(free=False)
def as_subclass(x: Tensor, cls: type) -> Any:
    """The same memory and place in the graph as an instance of cls, a subclass of Tensor, whose __new__ and __init__ are not called. A view: writes are
    seen, and counted, on both sides. What is computed from it is of the class as well, unless its __torch_function__ says otherwise.
    """
    if not (isinstance(cls, type) and issubclass(cls, Tensor)):
        raise TypeError(f"as_subclass: cls is {getattr(cls, '__name__', repr(cls))}; give a subclass of Tensor")
    if dispatches(cls):
        return provider("torch_dispatch.instances").as_instance(cls, x)
    meet(cls)
    array = x._array
    made = new_instance(
        cls, provider("torch_dispatch.instances").unwrapped(x) if type(array) is WrappedArray and array.instance is not None else array
    )
    if not x._tracked:
        made._version_counter = version_of(x)
        return made
    op, attrs = registry["expand"], {"shape": tuple(x._array.shape)}  # to the shape that it has
    if state.enabled:
        record_node(op, (x,), attrs, (made,), (x._array,))
    share(made, x, op, attrs)
    return made
