"""Instances: tensors of classes with a __torch_dispatch__, as arrays that know whose they are (see ground/transforms/wrapped_array.py)."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from tritensor.ground.device import as_device
from tritensor.ground.dtypes import as_dtype, default_float
from tritensor.ground.errors import NoValuesError
from tritensor.ground.strides import contiguous_strides
from tritensor.ground.transforms import DISPATCH, Level, WrappedArray
from tritensor.ops.array import to_host
from tritensor.ops.strided_array import MetaArray, empty_meta
from tritensor.tensor import host_values
from tritensor.tensor.core import Tensor, new_tensor
from tritensor.tensor.host_values import new_instance
from tritensor.tensor.overriding.protocol import dispatches
from tritensor.torch_dispatch.asking import below_autograd
from tritensor.torch_dispatch.overloads import aten


class _DispatchLevel(Level):
    """The level below all transforms, one for all threads: always there, and in the graph of what its tensors are computed with."""

    __slots__ = ()

    @property
    def quiet(self) -> bool:  # type: ignore[override]
        return False

    @quiet.setter
    def quiet(self, value: bool) -> None:
        """Nothing: whether a thread records is its own affair."""


LEVEL = _DispatchLevel(DISPATCH, recording=True)
LEVEL.number, LEVEL.open = 0, True


class Instance:
    """What an array knows of its tensor: the class, the attributes (the very dictionary that the tensor has), the device.

    `keeper`: the tensor itself where its class keeps attributes in slots, which no other object can share.
    """

    __slots__ = ("attributes", "cls", "device", "keeper")

    def __init__(self, tensor: Tensor, device: Any) -> None:
        self.cls, self.attributes, self.device = type(tensor), tensor.__dict__, device
        self.keeper = tensor if _slots(type(tensor)) else None

    def tensor(self, array: WrappedArray) -> Tensor:
        """A leaf of the class on the array, with the attributes of the first one."""
        made = new_instance(self.cls, array)
        made.__dict__ = self.attributes
        for name in _slots(self.cls) if self.keeper is not None else ():
            if hasattr(self.keeper, name):
                setattr(made, name, getattr(self.keeper, name))
        return made

    def read(self, array: WrappedArray) -> np.ndarray:
        """The values on the host: those of its own memory, or what its handler makes of reading the only element. Raises NoValuesError for others."""
        if type(array.value._array) is not MetaArray:
            return to_host(array.value._array)
        if array.size != 1:
            raise NoValuesError(
                array.level,
                f"{self.cls.__qualname__}: this function needs the values of a tensor without memory of its own, whose class computes by __torch_dispatch__; "
                "call it with the tensor inside",
            )
        with below_autograd():
            found = aten._local_scalar_dense.default(self.tensor(array))
        return np.full(array.shape, found, array.dtype)


def _slots(cls: type) -> tuple[str, ...]:
    """Names of the slots that classes below Tensor have."""
    found = [vars(c).get("__slots__", ()) for c in cls.__mro__[: cls.__mro__.index(Tensor)]]
    return tuple([n for names in found for n in ((names,) if isinstance(names, str) else names) if n not in ("__dict__", "__weakref__")])


def is_instance(x: Any) -> bool:
    """Whether a tensor is, or holds the array of, one of a class that dispatches."""
    return isinstance(x, Tensor) and host_values.is_instance(x)


def surface(x: Any) -> Any:
    """The tensor as its class has it, of a plain one that holds such an array."""
    return x._array.instance.tensor(x._array) if type(x) is Tensor and is_instance(x) else x


def memory_of(x: Any) -> Any:
    """The plain tensor on an instance's own memory, as which it is computed with where handlers are switched off."""
    return x._array.value if is_instance(x) else x


def make_instance(cls: type[Tensor], value: Tensor, device: Any = None) -> Any:
    """A leaf of a class that dispatches, over a plain tensor that says its shape, strides and type, and holds its memory if it has any."""
    made = new_instance(cls, None)
    made._set_array(WrappedArray(LEVEL, value, instance=Instance(made, value.device if device is None else device)))  # type: ignore[assignment]
    return made


def make_wrapper(
    cls: type[Tensor], size: Any, *, strides: Any = None, storage_offset: Any = None, memory_format: Any = None, dtype: Any = None, layout: Any = None,
    device: Any = None, pin_memory: bool = False, requires_grad: bool = False, dispatch_sizes_strides_policy: Any = None, dispatch_device: bool = False,
    dispatch_layout: bool = False, **others: Any,
) -> Any:  # fmt: skip
    """Tensor._make_wrapper_subclass: a leaf of a class, of a shape, type and device, without memory: what it holds are its attributes.

    Raises TypeError for a class without a __torch_dispatch__, NotImplementedError for sizes, devices or layouts that handlers are to be asked for.
    """
    if not dispatches(cls):
        raise TypeError(
            f"_make_wrapper_subclass: {cls.__qualname__} has no __torch_dispatch__, and a tensor without memory needs one; define it"
        )
    asked = [name for name, value in (("dispatch_sizes_strides_policy", dispatch_sizes_strides_policy), ("dispatch_device", dispatch_device),
             ("dispatch_layout", dispatch_layout), *others.items()) if value]  # fmt: skip
    if asked:
        raise NotImplementedError(
            f"_make_wrapper_subclass: {asked[0]}: handlers are not asked for sizes, devices and layouts here; give those of the tensor inside"
        )
    shape = tuple(int(n) for n in size)
    kind = default_float() if dtype is None else as_dtype(dtype)
    steps = contiguous_strides(shape) if strides is None else tuple(int(n) for n in strides)
    made = make_instance(cls, new_tensor(empty_meta(shape, kind.numpy, steps)), as_device(device))
    if requires_grad:
        made.requires_grad_()
    return made


def as_instance(cls: type[Tensor], x: Tensor) -> Any:
    """A leaf of a class that dispatches on x's memory."""
    return make_instance(cls, new_tensor(memory_of(x)._array))


def unwrapped(x: Tensor) -> Any:
    """The array of a tensor's own memory. Raises NotImplementedError for an instance that has none."""
    array = memory_of(x)._array
    if is_instance(x) and type(array) is MetaArray:
        raise NotImplementedError(f"as_subclass: {type(x).__qualname__} has no memory of its own; take the tensor inside")
    return array


def copied(x: Tensor, memo: dict[int, Any]) -> Any:
    """A deep copy of an instance: what its handler gives for aten.clone, with copies of its attributes. Raises RuntimeError where that is of another class."""
    made: Any = x.detach().clone()  # type: ignore[attr-defined]
    if type(made) is not type(x):
        raise RuntimeError(
            f"deepcopy: clone() of a {type(x).__qualname__} is a {type(made).__qualname__}; let its __torch_dispatch__ answer aten.clone with its own class, "
            "or define __deepcopy__"
        )
    memo[id(x)] = made
    made._tracked = x._tracked
    made._grad = copy.deepcopy(x._grad, memo)
    for name, value in attributes_of(x).items():
        setattr(made, name, copy.deepcopy(value, memo))
    return made


def slots_of(x: Tensor) -> dict[str, Any]:
    """What an instance keeps in slots of its class."""
    return {name: getattr(x, name) for name in _slots(type(x)) if hasattr(x, name)}


def attributes_of(x: Tensor) -> dict[str, Any]:
    """All that an instance holds."""
    return vars(x) | slots_of(x)


def reduced(x: Tensor) -> Any:
    """An instance for pickle: its class, what says its shape, and its attributes."""
    value = x._array.value  # type: ignore[union-attr]
    content = None if type(value._array) is MetaArray else value
    return _rebuild, (type(x), tuple(x.shape), tuple(x.stride()), x.dtype.name, str(x.device), x._tracked, content, attributes_of(x))


def _rebuild(
    cls: Any, shape: Any, strides: Any, kind: str, device: str, tracked: bool, content: Tensor | None, attributes: dict[str, Any]
) -> Any:
    """Unpickle."""
    if content is not None:
        made = as_instance(cls, content)
    else:
        made = make_wrapper(cls, shape, strides=strides, dtype=as_dtype(kind), device=device)
    made._tracked = tracked
    for name, value in attributes.items():
        setattr(made, name, value)
    return made
