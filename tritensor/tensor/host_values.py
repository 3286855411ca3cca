"""A tensor's values on the host: numbers, lists, numpy, DLPack, pickles and copies."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from tritensor.autograd.modes import state
from tritensor.cuda.runtime.active import emulated
from tritensor.cuda.streams.stream import current_stream
from tritensor.cuda.streams.stream import stream as use_stream
from tritensor.ground import dtypes
from tritensor.ground.errors import ArgumentError, DeviceError, DTypeError, GradError, ShapeError
from tritensor.ground.naming.type_names import own_name
from tritensor.ground.providers import provider
from tritensor.ground.transforms import WrappedArray
from tritensor.ops.array import Array, CudaArray, to_host
from tritensor.ops.lazy_array import LazyArray, note_shared, settle
from tritensor.ops.strided_array import MetaArray, no_values
from tritensor.tensor import dlpack
from tritensor.tensor.copying import copy_with_storage, pack_array, unpack_array

_T = TypeVar("_T", bound="HostValues")


def new_instance(cls: type[_T], array: Any) -> _T:
    """A leaf on an array, of a class of tensors, whose own __new__ and __init__ are not called."""
    t: Any = object.__new__(getattr(cls, "becomes", cls))
    t._array = array
    t._node = t._grad = t._version_counter = t._extra = t._view_path = t._layout = None
    t._tracked = False
    if type(array) is LazyArray:
        array.shown_by(t)
    return t  # type: ignore[no-any-return]


class HostValues:
    """The part of Tensor that leaves the library: every method here reads the memory, and waits for the device to do so."""

    __slots__ = ()

    if TYPE_CHECKING:  # what Tensor brings
        _array: Array
        _node: Any
        _tracked: bool
        grad: Any
        _heading: str

        @property
        def is_leaf(self) -> bool: ...

        @property
        def dtype(self) -> dtypes.DType: ...

        @property
        def device(self) -> Any: ...

    def item(self) -> Any:
        """The value of a tensor of one element as a Python number; waits for the device."""
        array = self._array
        if type(array) is np.ndarray and array.size == 1 and array.dtype.kind in "fiub":
            return array.item()
        if self._array.size != 1:
            raise ShapeError(f"item: shape {self._array.shape} holds {self._array.size} values, not one; use .tolist()")
        if type(self._array) is MetaArray:
            raise no_values("item")
        return to_host(self._array).item() if self.dtype.kind != "float8" else float(to_host(self._array).astype(np.float32).item())

    def tolist(self) -> Any:
        """Nested Python lists (a number for a 0-d tensor)."""
        if type(self._array) is MetaArray:
            raise no_values("tolist")
        return to_host(self._array).tolist()

    def numpy(self, *, force: bool = False) -> np.ndarray:
        """The numpy array on the same memory. Raises for a tensor on a GPU, and for one in a graph where gradients are recorded, unless `force`."""
        if type(self._array) is MetaArray:
            raise no_values("numpy")
        if force:
            array = to_host(self._array)
            note_shared(array)
            return array
        if self._tracked and state.enabled:
            # Under no_grad numpy's writes change nothing that is recorded, so it is allowed there.
            raise GradError("numpy: the tensor requires grad, and numpy's writes would not be seen; use .detach().numpy()")
        if self.device.type == "cuda":
            raise DeviceError(f"numpy: the tensor is on {self.device}; use .cpu().numpy()")
        array = to_host(self._array)
        note_shared(array)
        return array

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if self.device.type == "cuda":
            raise DeviceError(f"numpy: the tensor is on {self.device}; use .cpu() first")
        array = self.numpy()
        if dtype is not None and array.dtype != dtype:
            if copy is False:
                raise ArgumentError(f"numpy: {array.dtype} cannot become {np.dtype(dtype)} without a copy")
            return array.astype(dtype)
        return array.copy() if copy else array

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        """`tritensor.array_api`: the functions of the Python array API standard. Raises ValueError for a version that it is not."""
        # Older versions of the standard are subsets of 2024.12.
        if api_version not in (None, "2021.12", "2022.12", "2023.12", "2024.12"):
            raise ArgumentError(
                f"__array_namespace__: api_version is {api_version!r}; 2024.12 is here, which holds what those before it ask"
            )
        return provider("array_api")  # few programs need it

    def to_device(self, device: Any, /, *, stream: Any = None) -> Any:
        """The tensor on a device, as the array API standard spells `to(device)`; on the current stream, or on the one given."""
        with use_stream(stream):
            return self.to(device)  # type: ignore[attr-defined]

    def __dlpack_device__(self) -> tuple[int, int]:
        return dlpack.device_id(self._array)

    def __dlpack__(self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: bool | None = None) -> Any:
        """A DLPack capsule, memory shared unless copy=True or another device (`dl_device`, the CPU's) asks for a copy.

        Raises BufferError for a tensor that requires grad, one on an emulated device, and for a device that cannot be had.
        """
        if self._tracked:
            raise BufferError("dlpack: the tensor requires grad; export .detach(), or call it on that")
        given: Any = self
        if dl_device is not None and tuple(int(i) for i in dl_device) != self.__dlpack_device__():
            if tuple(int(i) for i in dl_device) != (dlpack.CPU, 0) or copy is False:
                raise BufferError(f"dlpack: the tensor is on {self.device}, dl_device is {tuple(dl_device)}; move it with .to(...) first")
            # A copy on the CPU has no stream to be ordered after.
            given, stream = given.cpu(), None
        elif copy:
            given = given.clone()
        return dlpack.export_array(given._array, stream, max_version is not None and max_version[0] >= 1, given is not self)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """Version 3 of Numba's protocol, for tensors on a GPU. Raises AttributeError for others, and for types that it has no name for."""
        array = settle(self._array)
        if isinstance(array, CudaArray) and emulated():
            raise AttributeError(
                "__cuda_array_interface__: device cuda is emulated here, and its memory is no GPU's; use DLPack, or .cpu().numpy()"
            )
        if not isinstance(array, CudaArray):
            raise AttributeError(f"__cuda_array_interface__: the tensor is on {self.device}, not in a GPU's memory; move it with .cuda()")
        if self.dtype.name == "bfloat16" or self.dtype.kind == "float8":
            raise AttributeError(f"__cuda_array_interface__: there is no name for {self.dtype.name} in it; use DLPack")
        if self._tracked:
            raise GradError("__cuda_array_interface__: the tensor requires grad; use .detach()")
        # The protocol asks for None where the array is C-contiguous.
        strides = None if array.is_contiguous() else tuple(s * array.itemsize for s in array.strides)
        data = (array.data_ptr() if array.size else 0, False)
        # The protocol forbids 0: 1 is its name of the legacy default stream.
        stream = current_stream(array.device.index).cuda_stream or 1
        return {"shape": tuple(array.shape), "typestr": array.dtype.str, "data": data, "version": 3, "strides": strides, "stream": stream}

    def __bool__(self) -> bool:
        if self._array.size != 1:
            raise ShapeError(f"bool: the truth of a tensor of shape {self._array.shape} is ambiguous; use .any() or .all()")
        return bool(self.item())

    def __float__(self) -> float:
        array = self._array
        if type(array) is np.ndarray and array.size == 1 and array.dtype.char in "fd":
            return array.item()  # type: ignore[no-any-return]
        return float(self._real_item("float"))

    def __int__(self) -> int:
        return int(self._real_item("int"))

    def _real_item(self, name: str) -> Any:
        """The one element as a real number, which a complex one is where its imaginary part is 0."""
        value = self.item()
        if type(value) is not complex:
            return value
        if value.imag != 0:
            raise ArgumentError(f"{name}: {value} has an imaginary part; take x.real, or x.abs()")
        return value.real

    def __complex__(self) -> complex:
        return complex(self.item())

    def __index__(self) -> int:
        if self.dtype.kind not in ("bool", "uint", "int"):
            raise TypeError(f"index: a {self.dtype.name} tensor is no index; use int(x)")
        return int(self.item())

    def __format__(self, spec: str) -> str:
        plain = not self._heading and not self._array.shape  # f"{loss}" shows the number, as in PyTorch
        if type(self._array) is MetaArray:
            if spec:
                raise no_values("format", f"{spec!r} is a form of numbers")
            return str(self)
        return format(self.item(), spec) if plain or (spec and self._array.size == 1) else format(str(self), spec)

    def __delitem__(self, index: Any) -> None:
        raise TypeError("delitem: a tensor keeps all its elements; index those that stay, as x[1:]")

    def __contains__(self, value: Any) -> bool:
        found: Any = self == value
        if type(found) is bool:  # Python's answer of what cannot be compared
            raise DTypeError(f"in: a tensor holds numbers, not a {type(value).__name__}; give a number or a tensor")
        return bool(found.any().item())

    def __reversed__(self) -> Any:
        """The first dimension backwards; a 0-d tensor itself."""
        return self.flip(0) if self._array.shape else self  # type: ignore[attr-defined]

    def __copy__(self) -> Any:
        """Another leaf on the same memory; writes are counted for both."""
        # detach shares the counter of writes, which a plain attribute copy would not.
        shared: Any = self.detach()  # type: ignore[attr-defined]
        if is_instance(self):
            shared.__dict__.update(vars(self))
            return shared.requires_grad_() if self._tracked else shared
        t: Any = new_instance(type(self), shared._array)
        t._version_counter, t._tracked = shared._version_counter, self._tracked
        if hasattr(self, "__dict__"):
            t.__dict__.update(self.__dict__)
        return t

    def __reduce_ex__(self, protocol: Any) -> Any:
        if is_instance(self):
            return provider("torch_dispatch.instances").reduced(self)
        return _rebuild, (own_name(type(self)), pack_array(self._array), self._tracked, getattr(self, "__dict__", {}))

    def __deepcopy__(self, memo: dict[Any, Any]) -> Any:
        """A copy with the memory that this tensor is a window on: views copied together stay views of one memory."""
        return self._deepcopy_with(memo, copy_with_storage)

    def _deepcopy_with(self, memo: dict[Any, Any], array_of: Any) -> Any:
        """This leaf on `array_of(array, memo)`, with copies of its gradient and attributes."""
        if id(self) in memo:
            return memo[id(self)]
        if not self.is_leaf:
            raise GradError("deepcopy: only leaves can be deep-copied; use .clone(), or .detach() first")
        if is_instance(self):
            return provider("torch_dispatch.instances").copied(self, memo)
        t: Any = new_instance(type(self), array_of(self._array, memo))
        memo[id(self)] = t
        t._tracked = self._tracked
        t.grad = copy.deepcopy(self.grad, memo)
        if hasattr(self, "__dict__"):
            t.__dict__.update(copy.deepcopy(self.__dict__, memo))
        return t


def is_instance(x: Any) -> bool:
    """Whether a tensor is of a class with a __torch_dispatch__, which copies and pickles have to ask."""
    return type(x._array) is WrappedArray and x._array.instance is not None


def _rebuild(cls: Any, content: tuple[Any, ...], tracked: bool, attributes: dict[str, Any]) -> Any:
    """Unpickle."""
    t = new_instance(cls, unpack_array(*content))
    t._tracked = tracked
    if attributes:
        t.__dict__.update(attributes)
    return t
