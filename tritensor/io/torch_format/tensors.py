"""Tensors of storages: PyTorch's functions of `torch._utils` that rebuild them, each checking that the window lies in its storage."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tritensor.ground import dtypes
from tritensor.ground.dtypes import DType
from tritensor.ground.errors import GradError
from tritensor.io.torch_format.pickle_errors import Damaged, told
from tritensor.io.torch_format.pickle_vm import attributes
from tritensor.nn.parameter import Buffer, Parameter
from tritensor.ops.array import as_strided, from_host, to_host
from tritensor.tensor.core import Tensor, new_tensor
from tritensor.tensor.functions.types.storages import TypedStorage, UntypedStorage, holding


class StorageType:
    """What a file calls `torch.FloatStorage`: the type of a storage's elements; None for bytes of any."""

    def __init__(self, name: str, dtype: DType | None) -> None:
        self.name, self.dtype = name, dtype

    def __repr__(self) -> str:
        return f"torch.{self.name}"


STORAGES = {
    name: StorageType(name, kind)
    for name, kind in {
        "DoubleStorage": dtypes.float64, "FloatStorage": dtypes.float32, "HalfStorage": dtypes.float16, "BFloat16Storage": dtypes.bfloat16,
        "LongStorage": dtypes.int64, "IntStorage": dtypes.int32, "ShortStorage": dtypes.int16, "CharStorage": dtypes.int8,
        "ByteStorage": dtypes.uint8, "BoolStorage": dtypes.bool_, "ComplexFloatStorage": dtypes.complex64,
        "ComplexDoubleStorage": dtypes.complex128, "UntypedStorage": None,
    }.items()
}  # fmt: skip
STORAGE_OF = {kind.dtype.name: name for name, kind in STORAGES.items() if kind.dtype is not None}


def typed(memory: Any, kind: StorageType) -> Any:
    """A storage of a type on a vector of bytes."""
    return holding(UntypedStorage, memory) if kind.dtype is None else holding(TypedStorage, memory.view(kind.dtype.numpy))


def _sizes(what: str, given: Any) -> tuple[int, ...]:
    if not isinstance(given, tuple) or len(given) > 64 or not all(type(n) is int and 0 <= n < 2**62 for n in given):
        raise Damaged(f"{told(given)} is no {what} of a tensor")
    return tuple(given)


def _no_hooks(hooks: Any) -> None:
    if hooks is not None and (not isinstance(hooks, dict) or hooks):
        raise Damaged("the tensor has hooks, which are functions; save it without them")


def _window(storage: Any, offset: Any, size: Any, stride: Any, dtype: DType | None = None) -> Tensor:
    """The tensor of a window on a storage, memory shared."""
    if not isinstance(storage, TypedStorage | UntypedStorage):
        raise Damaged(f"a {type(storage).__name__} stands where a storage should")
    shape, strides = _sizes("size", size), _sizes("stride", stride)
    if type(offset) is not int or not 0 <= offset < 2**62 or len(shape) != len(strides):
        raise Damaged(f"offset {told(offset)}, size {shape} and strides {strides} are no window")
    elements = storage._elements
    if dtype is not None:
        whole = elements.size * elements.dtype.itemsize // dtype.itemsize * dtype.itemsize // elements.dtype.itemsize
        elements = elements[:whole].view(dtype.numpy)
    empty = 0 in shape
    last = offset + sum((n - 1) * s for n, s in zip(shape, strides, strict=True))
    if math.prod(n or 1 for n in shape) * elements.dtype.itemsize >= 2**62 or (not empty and last >= elements.size):
        raise Damaged(f"a window of size {shape}, strides {strides} from {offset} on leaves its storage of {elements.size} elements")
    if empty:
        return new_tensor(elements[:0].reshape(shape))
    if isinstance(elements, np.ndarray):
        step = elements.dtype.itemsize
        return new_tensor(np.ndarray(shape, elements.dtype, elements, offset * step, tuple(s * step for s in strides)))
    return new_tensor(as_strided(elements, shape, strides, offset))


def _asks(t: Tensor, requires_grad: Any) -> Tensor:
    """With requires_grad as the file has it."""
    if type(requires_grad) not in (bool, int):
        raise Damaged(f"requires_grad is {told(requires_grad)}")
    if requires_grad:
        try:
            t.requires_grad_()
        except GradError as error:
            raise Damaged(str(error)) from None
    return t


def _finished(machine: Any, t: Tensor, requires_grad: Any, hooks: Any, metadata: Any) -> Tensor:
    _no_hooks(hooks)
    if metadata is not None:  # PyTorch's lazy views: the bytes are those of the conjugate, or of the negative
        if type(metadata) is not dict or not set(metadata) <= {"conj", "neg"} or not all(v is True for v in metadata.values()):
            raise Damaged(f"a tensor's metadata {told(metadata)} is not known")
        machine.charge(3 * t.nbytes)
        seen = t.array
        t = new_tensor(from_host(_resolved(seen, metadata), t.device))
        _again(machine, t, lambda: _resolved(seen, metadata))
    return _asks(t, requires_grad)


def _resolved(x: Any, metadata: dict[str, Any]) -> np.ndarray:
    """The values of a lazy view."""
    values = to_host(x)
    values = np.conj(values) if metadata.get("conj") else values
    return np.negative(values) if metadata.get("neg") else values


def _again(machine: Any, t: Tensor, compute: Callable[[], np.ndarray]) -> None:
    """Where storages get their bytes after the tensors (PyTorch before 1.6): compute a tensor once more when they have."""
    if machine.place.later is None:
        return

    def fill() -> None:
        values = np.ascontiguousarray(compute())
        if isinstance(t.array, np.ndarray):
            t.array[...] = values
        elif values.size:
            t.array.storage.write(values, 0)

    machine.place.later.append(fill)


def rebuild_tensor(_: Any, storage: Any, offset: Any, size: Any, stride: Any) -> Tensor:
    """torch._utils._rebuild_tensor."""
    return _window(storage, offset, size, stride)


def rebuild_tensor_v2(
    machine: Any, storage: Any, offset: Any, size: Any, stride: Any, requires_grad: Any, hooks: Any, metadata: Any = None
) -> Tensor:
    """torch._utils._rebuild_tensor_v2."""
    return _finished(machine, _window(storage, offset, size, stride), requires_grad, hooks, metadata)


def rebuild_tensor_v3(
    machine: Any, storage: Any, offset: Any, size: Any, stride: Any, requires_grad: Any, hooks: Any, dtype: Any, metadata: Any = None
) -> Tensor:
    """torch._utils._rebuild_tensor_v3: of a storage without type."""
    if not isinstance(dtype, DType):
        raise Damaged(f"a {type(dtype).__name__} stands where a dtype should")
    return _finished(machine, _window(storage, offset, size, stride, dtype), requires_grad, hooks, metadata)


def _tensor(given: Any) -> Tensor:
    if not isinstance(given, Tensor):
        raise Damaged(f"a {type(given).__name__} stands where a tensor should")
    return given


def rebuild_parameter(_: Any, data: Any, requires_grad: Any = True, hooks: Any = None) -> Parameter:
    """torch._utils._rebuild_parameter."""
    _no_hooks(hooks)
    made = Parameter(_tensor(data), False)
    _asks(made, requires_grad)
    return made


def rebuild_parameter_with_state(_: Any, data: Any, requires_grad: Any, hooks: Any, state: Any) -> Parameter:
    """torch._utils._rebuild_parameter_with_state: a parameter with attributes."""
    made = rebuild_parameter(_, data, requires_grad, hooks)
    attributes(made, state)
    return made


def rebuild_from_type(machine: Any, function: Any, cls: Any, args: Any, state: Any) -> Tensor:
    """torch._tensor._rebuild_from_type_v2: a tensor with attributes, or of a class of its own."""
    function = getattr(function, "stands", function)
    if machine.constructors.get(id(function)) not in (rebuild_tensor, rebuild_tensor_v2, rebuild_tensor_v3, rebuild_parameter):
        raise Damaged("a tensor is rebuilt by what is no function for it")
    made: Tensor = machine.call(function, args)
    if cls is not Tensor and cls is not Parameter:
        if not machine.trusts(cls) or not issubclass(cls, Tensor):
            raise Damaged(f"a tensor of class {getattr(cls, '__name__', cls)}")
        plain, made = made, cls.__new__(cls)
        made.array, made.tracked = plain.array, plain.tracked
    elif cls is Parameter and type(made) is not Parameter:
        made = Parameter(made, made.tracked)
    if type(state) is dict and state.get("_is_buffer") is True and type(made) is Tensor:
        made = Buffer(made, persistent=state.get("persistent") is not False)
        state = {k: v for k, v in state.items() if k not in ("_is_buffer", "persistent")}
    attributes(made, state)
    return made


def rebuild_elsewhere(machine: Any, data: Any, dtype: Any, where: Any, requires_grad: Any) -> Tensor:
    """torch._utils._rebuild_device_tensor_from_numpy, and _from_cpu_tensor: values of a device that has no storages."""
    if not isinstance(dtype, DType) or type(where) is not str:
        raise Damaged("a tensor of another device is of no type, or of no device")
    t = new_tensor(data) if isinstance(data, np.ndarray) and dtypes.of(data.dtype) else _tensor(data)
    machine.charge(2 * t.numel() * dtype.itemsize)
    made = machine.place.tensor(t.to(dtype), where)
    _again(machine, made, lambda: to_host(t.to(dtype).array))
    return _asks(made, requires_grad)
