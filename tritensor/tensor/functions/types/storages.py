"""The memory that a tensor lies in, seen for reading and shared: `x.untyped_storage()` in bytes, `x.storage()` in elements of x's type."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NoReturn, TypeVar

import numpy as np

from tritensor.ground import dtypes
from tritensor.ground.call_site import qualified_name
from tritensor.ground.device import as_device, device
from tritensor.ground.dtypes import DType
from tritensor.ground.errors import ArgumentError
from tritensor.ground.providers import provider
from tritensor.ops.array import Array, CudaArray, device_of, from_host, to_host
from tritensor.ops.lazy_array import compute_now
from tritensor.tensor.copying import storage_vector
from tritensor.tensor.core import Tensor, new_tensor
from tritensor.tensor.functions.creation.memory import from_file
from tritensor.tensor.public_api.publish import function
from tritensor.tensor.shared_memory import is_shared as in_shared_memory
from tritensor.tensor.sharing import ARRAY_SLOTS, move_to_shared_memory

Kind = TypeVar("Kind", bound="_Storage")


class _Storage:
    """All of the memory that some tensor lies in. It is for looking: scripts compare `data_ptr()` and count `nbytes()`."""

    __slots__ = ("_elements",)
    _elements: Array

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        # A storage without a tensor has no place in this design: numpy or the allocator owns the memory.
        raise TypeError(f"{cls.__name__}: memory is no object of its own here; make a tensor, and ask it for its storage()")

    def _refuse(self, what: str) -> NoReturn:
        # Writes past the tensor would go uncounted, and autograd would use overwritten values.
        raise TypeError(f"{what}: a storage is for reading here; write to the tensor itself")

    def nbytes(self) -> int:
        """Bytes."""
        return int(self._elements.nbytes)

    def size(self) -> int:
        """Elements; of an untyped storage bytes."""
        return int(self._elements.size)

    def __len__(self) -> int:
        return int(self._elements.size)

    def element_size(self) -> int:
        """Bytes of an element."""
        return int(self._elements.dtype.itemsize)

    def data_ptr(self) -> int:
        """Address of the first byte, 0 where there is none; the same for all tensors in this memory."""
        return new_tensor(self._elements).data_ptr() if self._elements.size else 0

    @property
    def device(self) -> device:
        """Where it is."""
        return device_of(self._elements)

    @property
    def is_cuda(self) -> bool:
        """Whether it is on a GPU."""
        return isinstance(self._elements, CudaArray)

    def to(self, device: Any = None, non_blocking: bool = False) -> Any:
        """The storage on a device: a copy, or itself where it is there."""
        where = as_device(self.device if device is None else device)
        # As Tensor.to: itself where nothing changes.
        if where == self.device:
            return self
        return make_storage(type(self), from_host(to_host(self._elements), where))

    def cpu(self) -> Any:
        """The storage on the CPU: a copy, or itself where it is there."""
        return self.to("cpu")

    def cuda(self, device: Any = None, non_blocking: bool = False) -> Any:
        """The storage on a GPU, the current one where none is given: a copy, or itself where it is there."""
        return self.to("cuda" if device is None else device)

    def clone(self) -> Any:
        """A copy."""
        return make_storage(type(self), from_host(to_host(self._elements), self.device))

    def is_shared(self) -> bool:
        """Whether another process could see it; see Tensor.is_shared."""
        return self.is_cuda or in_shared_memory(self._elements)

    def share_memory_(self) -> Any:
        """Move the memory to where other processes see it, with all tensors that lie in it; returns self. See Tensor.share_memory_."""
        if not self.is_cuda:
            move_to_shared_memory(self)
            provider("multiprocessing")  # from now on Python's queues send tensors without a copy
        return self

    def __getitem__(self, index: Any) -> Any:
        # A list of numbers, not a storage: TypedStorage is deprecated in PyTorch, and a list shows what is in it.
        if isinstance(index, slice):
            return new_tensor(self._elements)[index].tolist()
        return new_tensor(self._elements)[index].item()

    def __setitem__(self, index: Any, value: Any) -> None:
        self._refuse("setitem")

    def __iter__(self) -> Iterator[Any]:
        return iter(self.tolist())

    def tolist(self) -> list[Any]:
        """The elements as a list."""
        found: list[Any] = new_tensor(self._elements).tolist()
        return found


# share_memory_ moves storages together with the tensors on their memory.
ARRAY_SLOTS[_Storage] = _Storage.__dict__["_elements"]


class UntypedStorage(_Storage):
    """A tensor's memory in bytes, for reading."""

    __slots__ = ()

    @classmethod
    def from_file(cls, filename: Any, shared: bool = False, nbytes: int = 0) -> UntypedStorage:
        """The first bytes of a file, mapped into memory: nothing is read before it is looked at. See tritensor.from_file for `shared` and what is raised.

        Safetensors' own reader takes its tensors from this.
        """
        return make_storage(cls, from_file(filename, shared, nbytes, dtype=dtypes.uint8)._array)

    def untyped(self) -> UntypedStorage:
        """Itself."""
        return self

    def __getitem__(self, index: Any) -> Any:
        """A byte as a number; of a slice those bytes as a storage on the same memory. Raises ValueError for a step other than 1."""
        if not isinstance(index, slice):
            return super().__getitem__(index)
        start, stop, step = index.indices(len(self))
        if step != 1:
            raise ArgumentError(f"UntypedStorage: a slice with a step of {step}; give one of 1")
        return make_storage(UntypedStorage, new_tensor(self._elements)[start : max(start, stop)]._array)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """The bytes as a numpy array, on the same memory on the CPU."""
        return np.asarray(to_host(self._elements), dtype=dtype, copy=copy)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, UntypedStorage):
            return NotImplemented
        # Two objects for one memory are made at each call: they compare by what they stand for.
        return (self.device, self.data_ptr(), len(self)) == (other.device, other.data_ptr(), len(other))

    def __hash__(self) -> int:
        return hash((str(self.device), self.data_ptr(), len(self)))

    def __repr__(self) -> str:
        return f"[{qualified_name('storage.UntypedStorage')}(device={self.device}) of size {len(self)}]"


class TypedStorage(_Storage):
    """A tensor's memory in elements of its type, for reading."""

    __slots__ = ()

    @property
    def dtype(self) -> DType:
        """The type of its elements."""
        return dtypes.of(self._elements.dtype)

    def untyped(self) -> UntypedStorage:
        """The same memory in bytes."""
        return untyped_storage(new_tensor(self._elements))

    def __repr__(self) -> str:
        return f"[{qualified_name('storage.TypedStorage')}(dtype={self.dtype}, device={self.device}) of size {len(self)}]"


def make_storage(kind: type[Kind], elements: Array) -> Kind:
    """A storage of just these elements."""
    made = object.__new__(kind)
    made._elements = elements
    return made


@function(free=False)
def untyped_storage(x: Tensor) -> UntypedStorage:
    """The memory that x lies in, in bytes, for reading: nbytes(), data_ptr(), size()."""
    compute_now(x)
    return make_storage(UntypedStorage, storage_vector(x._array, np.dtype(np.uint8)))


@function(free=False)
def storage(x: Tensor) -> TypedStorage:
    """The memory that x lies in, in elements of x's type, for reading: nbytes(), data_ptr(), size()."""
    compute_now(x)
    return make_storage(TypedStorage, storage_vector(x._array, x._array.dtype))
