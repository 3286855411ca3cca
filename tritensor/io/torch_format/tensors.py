"""Constructors of tensors: the functions of `torch._utils` that rebuild them, each checking that its window lies in the storage."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tritensor.ground import dtypes
from tritensor.ground.dtypes import DType
from tritensor.ground.errors import GradError
from tritensor.ground.providers import provider
from tritensor.ground.strides import memory_extent
from tritensor.io.torch_format.pickle_errors import DamagedPickle, describe, reject
from tritensor.io.torch_format.pickle_vm import set_attributes, set_state
from tritensor.nn.parameter import Buffer, Parameter
from tritensor.ops.array import CudaArray, as_strided, from_host, to_host
from tritensor.ops.strided_array import MetaArray, MetaStorage
from tritensor.tensor.core import Tensor, new_tensor
from tritensor.tensor.functions.types.storages import TypedStorage, UntypedStorage, make_storage
from tritensor.tensor.host_values import is_instance, new_instance
from tritensor.tensor.overriding.protocol import dispatches


class StorageType:
    """A file's `torch.FloatStorage` and the like: a storage's elements are of `dtype`; None is bytes of any."""

    def __init__(self, name: str, dtype: DType | None) -> None:
        self.name, self.dtype = name, dtype
        self.itemsize = 1 if dtype is None else dtype.itemsize

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
STORAGE_NAMES = {kind.dtype.name: name for name, kind in STORAGES.items() if kind.dtype is not None}


def as_storage(memory: Any, kind: StorageType) -> Any:
    """A storage of a type on a vector of bytes."""
    return make_storage(UntypedStorage, memory) if kind.dtype is None else make_storage(TypedStorage, memory.view(kind.dtype.numpy))


def _as_sizes(what: str, given: Any) -> tuple[int, ...]:
    if not isinstance(given, tuple) or len(given) > 64 or not all(type(n) is int and 0 <= n < 2**62 for n in given):
        raise DamagedPickle(f"{describe(given)} is no {what} of a tensor")
    return tuple(given)


def _refuse_hooks(hooks: Any) -> None:
    if hooks is not None and (not isinstance(hooks, dict) or hooks):
        raise DamagedPickle("the tensor has hooks, which are functions; save it without them")


def _view_storage(storage: Any, offset: Any, size: Any, stride: Any, dtype: DType | None = None) -> Tensor:
    """The tensor of a window on a storage, memory shared."""
    if not isinstance(storage, TypedStorage | UntypedStorage):
        reject(storage, "a storage")
    shape, strides = _as_sizes("size", size), _as_sizes("stride", stride)
    if type(offset) is not int or not 0 <= offset < 2**62 or len(shape) != len(strides):
        raise DamagedPickle(f"offset {describe(offset)}, size {shape} and strides {strides} are no window")
    elements = storage._elements
    if dtype is not None:
        whole = elements.size * elements.dtype.itemsize // dtype.itemsize * dtype.itemsize // elements.dtype.itemsize
        elements = elements[:whole].view(dtype.numpy)
    empty = 0 in shape
    last = offset + sum((n - 1) * s for n, s in zip(shape, strides, strict=True))
    if math.prod(n or 1 for n in shape) * elements.dtype.itemsize >= 2**62 or (not empty and last >= elements.size):
        raise DamagedPickle(f"a window of size {shape}, strides {strides} from {offset} on leaves its storage of {elements.size} elements")
    if empty:
        return new_tensor(elements[:0].reshape(shape))
    if isinstance(elements, np.ndarray):
        step = elements.dtype.itemsize
        return new_tensor(np.ndarray(shape, elements.dtype, elements, offset * step, tuple(s * step for s in strides)))
    return new_tensor(as_strided(elements, shape, strides, offset))


def _set_requires_grad(t: Tensor, requires_grad: Any) -> Tensor:
    """t, with requires_grad as the file has it."""
    if type(requires_grad) not in (bool, int):
        raise DamagedPickle(f"requires_grad is {describe(requires_grad)}")
    if requires_grad:
        try:
            t.requires_grad_()
        except GradError as error:
            raise DamagedPickle(str(error)) from None
    return t


def _finish_tensor(vm: Any, t: Tensor, requires_grad: Any, hooks: Any, metadata: Any) -> Tensor:
    _refuse_hooks(hooks)
    if metadata is not None:  # PyTorch's lazy views, which tritensor has not: the bytes are those of the conjugate, or of the negative
        if type(metadata) is not dict or not set(metadata) <= {"conj", "neg"} or not all(v is True for v in metadata.values()):
            raise DamagedPickle(f"a tensor's metadata {describe(metadata)} is not known")
        vm.charge(3 * t.nbytes)
        seen = t._array
        t = new_tensor(from_host(_resolve_lazy_view(seen, metadata), t.device))
        _recompute_later(vm, t, lambda: _resolve_lazy_view(seen, metadata))
    return _set_requires_grad(t, requires_grad)


def _resolve_lazy_view(x: Any, metadata: dict[str, Any]) -> np.ndarray:
    values = to_host(x)
    values = np.conj(values) if metadata.get("conj") else values
    return np.negative(values) if metadata.get("neg") else values


def _recompute_later(vm: Any, t: Tensor, compute: Callable[[], np.ndarray]) -> None:
    """Compute a tensor once more when its storage has its bytes: in files of PyTorch before 1.6 they come after the tensors."""
    if vm.mapper.deferred is None:
        return

    def fill() -> None:
        values = np.ascontiguousarray(compute())
        if isinstance(t._array, np.ndarray):
            t._array[...] = values
        elif values.size and type(t._array) is CudaArray:
            t._array.storage.write(values, 0)

    vm.mapper.deferred.append(fill)


def rebuild_tensor(_: Any, storage: Any, offset: Any, size: Any, stride: Any) -> Tensor:
    """torch._utils._rebuild_tensor."""
    return _view_storage(storage, offset, size, stride)


def rebuild_tensor_v2(
    vm: Any, storage: Any, offset: Any, size: Any, stride: Any, requires_grad: Any, hooks: Any, metadata: Any = None
) -> Tensor:
    """torch._utils._rebuild_tensor_v2."""
    return _finish_tensor(vm, _view_storage(storage, offset, size, stride), requires_grad, hooks, metadata)


def rebuild_tensor_v3(
    vm: Any, storage: Any, offset: Any, size: Any, stride: Any, requires_grad: Any, hooks: Any, dtype: Any, metadata: Any = None
) -> Tensor:
    """torch._utils._rebuild_tensor_v3: of an untyped storage."""
    if not isinstance(dtype, DType):
        reject(dtype, "a dtype")
    return _finish_tensor(vm, _view_storage(storage, offset, size, stride, dtype), requires_grad, hooks, metadata)


def rebuild_meta_tensor(vm: Any, dtype: Any, size: Any, stride: Any, requires_grad: Any) -> Tensor:
    """torch._utils._rebuild_meta_tensor_no_storage: a tensor without memory."""
    if not isinstance(dtype, DType):
        reject(dtype, "a dtype")
    shape, strides = _as_sizes("size", size), _as_sizes("stride", stride)
    if len(shape) != len(strides):
        raise DamagedPickle(f"size {shape} and strides {strides} are no window")
    last = memory_extent(shape, strides)[1] if 0 not in shape else -1
    memory = MetaStorage((last + 1) * dtype.itemsize)
    return _set_requires_grad(new_tensor(MetaArray(memory, shape, dtype.numpy, strides)), requires_grad)


def rebuild_wrapper(
    vm: Any, cls: Any, dtype: Any, size: Any, stride: Any, offset: Any, layout: Any, where: Any, requires_grad: Any
) -> Tensor:
    """torch._utils._rebuild_wrapper_subclass: a tensor of a class with a __torch_dispatch__, without memory; what it holds are its attributes."""
    if not isinstance(cls, type) or not vm.trusts(cls) or not issubclass(cls, Tensor) or not dispatches(cls):
        raise DamagedPickle(f"a tensor of class {getattr(cls, '__name__', cls)}, which has no __torch_dispatch__")
    if not isinstance(dtype, DType):
        reject(dtype, "a dtype")
    shape, strides = _as_sizes("size", size), _as_sizes("stride", stride)
    made: Tensor = provider("torch_dispatch.instances").make_wrapper(cls, shape, strides=strides, dtype=dtype, device=where)
    return _set_requires_grad(made, requires_grad)


def _as_tensor(given: Any) -> Tensor:
    return given if isinstance(given, Tensor) else reject(given, "a tensor")


def rebuild_parameter(_: Any, data: Any, requires_grad: Any = True, hooks: Any = None) -> Parameter:
    """torch._utils._rebuild_parameter."""
    _refuse_hooks(hooks)
    made = Parameter(_as_tensor(data), False)
    _set_requires_grad(made, requires_grad)
    return made


def rebuild_parameter_with_state(_: Any, data: Any, requires_grad: Any, hooks: Any, state: Any) -> Parameter:
    """torch._utils._rebuild_parameter_with_state: a parameter with attributes."""
    made = rebuild_parameter(_, data, requires_grad, hooks)
    set_attributes(made, state)
    return made


def rebuild_from_type(vm: Any, function: Any, cls: Any, args: Any, state: Any) -> Tensor:
    """torch._tensor._rebuild_from_type_v2: a tensor with attributes, or of a class of its own."""
    function = getattr(function, "stands", function)  # as trusted.py has it
    if vm.constructors.get(id(function)) not in (rebuild_tensor, rebuild_tensor_v2, rebuild_tensor_v3, rebuild_parameter, rebuild_wrapper):
        raise DamagedPickle("a tensor is rebuilt by what is no function for it")
    made: Tensor = vm.call(function, args)
    if dispatches(cls) and vm.trusts(cls):
        made = made if is_instance(made) else provider("torch_dispatch.instances").as_instance(cls, made).requires_grad_(made._tracked)
        set_state(made, state)
        return made
    if cls is not Tensor and cls is not Parameter:
        if not vm.trusts(cls) or not issubclass(cls, Tensor):
            raise DamagedPickle(f"a tensor of class {getattr(cls, '__name__', cls)}")
        tracked, made = made._tracked, new_instance(cls, made._array)  # not cls(...), which may take anything
        made._tracked = tracked
    elif cls is Parameter and type(made) is not Parameter:
        made = Parameter(made, made._tracked)
    if type(state) is dict and state.get("_is_buffer") is True and type(made) is Tensor:
        made = Buffer(made, persistent=state.get("persistent") is not False)
        state = {k: v for k, v in state.items() if k not in ("_is_buffer", "persistent")}
    set_attributes(made, state)
    return made


def rebuild_device_tensor(vm: Any, data: Any, dtype: Any, where: Any, requires_grad: Any) -> Tensor:
    """torch._utils._rebuild_device_tensor_from_numpy, and _from_cpu_tensor: values of a device that has no storages."""
    if not isinstance(dtype, DType) or type(where) is not str:
        raise DamagedPickle("a tensor of another device is of no type, or of no device")
    t = new_tensor(data) if isinstance(data, np.ndarray) and dtypes.of(data.dtype) else _as_tensor(data)
    vm.charge(2 * t.numel() * dtype.itemsize)
    made = vm.mapper.tensor(t.to(dtype), where)
    _recompute_later(vm, made, lambda: to_host(t.to(dtype)._array))
    return _set_requires_grad(made, requires_grad)
