"""Pickler that writes as torch.save does: tensors under PyTorch's names, so that PyTorch reads them with weights_only=True."""

from __future__ import annotations

import io
import pickle
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, ClassVar

from tritensor.ground.device import device
from tritensor.ground.dtypes import DType
from tritensor.ground.providers import provider
from tritensor.io.torch_format.tensors import STORAGE_NAMES
from tritensor.io.torch_format.written_storages import Storage, assign_windows
from tritensor.nn.parameter import Buffer, Parameter, is_lazy
from tritensor.tensor.core import Tensor, new_tensor
from tritensor.tensor.functions.types.storages import TypedStorage, UntypedStorage
from tritensor.tensor.host_values import is_instance
from tritensor.tensor.public_api.layout import strided
from tritensor.tensor.size import Size

PlainPickler: Any = pickle._Pickler  # type: ignore[attr-defined]  # the one in Python: in C the names that it writes cannot be chosen


class Name:
    """A class or function of PyTorch's, which is written by its name; nothing of PyTorch is needed for that."""

    def __init__(self, module: str, name: str) -> None:
        self.module, self.name = module, name

    def __call__(self, *args: Any) -> Any:
        raise TypeError(f"{self.module}.{self.name} is a name in a file")


_NAMES: dict[tuple[str, str], Name] = {}


def _intern_name(module: str, name: str) -> Name:
    """The one Name of that name: a pickler writes an object once, by its id."""
    return _NAMES.setdefault((module, name), Name(module, name))


_CLASSES = {
    Tensor: ("torch", "Tensor"),
    Parameter: ("torch.nn.parameter", "Parameter"),
    Size: ("torch", "Size"),
    device: ("torch", "device"),
}
_OLD_TYPES = set(STORAGE_NAMES)  # those that had a storage class of their own; later types are kept by storages of bytes


class _StorageToken:
    """A storage as an object of the pickle, where persistent_id() finds it."""

    def __init__(self, storage: Storage) -> None:
        self.storage = storage


class _TensorFinder(pickle.Pickler):
    """Goes through an object as pickling does, and notes its tensors: which share memory must be known before the first is written."""

    def __init__(self) -> None:
        super().__init__(_NullFile(), 4)
        self.tensors: dict[int, Tensor] = {}
        self.storages: dict[int, Tensor] = {}  # what is a storage itself, as a tensor of its elements, by the storage's id
        self.attributes: list[dict[str, Any]] = []  # of those tensors; they may hold tensors, too
        self.seen: set[int] = set()  # tensors of classes that compute by themselves

    def persistent_id(self, obj: Any) -> Any:
        if isinstance(obj, Tensor) and not is_lazy(obj):
            if id(obj) not in self.tensors:
                if is_instance(obj):  # of a class with a __torch_dispatch__, whose memory is that of what it holds
                    if id(obj) in self.seen:
                        return 0
                    self.seen.add(id(obj))
                    self.attributes.append(provider("torch_dispatch.instances").attributes_of(obj))
                    return 0
                self.tensors[id(obj)] = obj
                if obj.__dict__:
                    self.attributes.append(obj.__dict__)
            return 0
        if isinstance(obj, TypedStorage | UntypedStorage):
            self.storages.setdefault(id(obj), new_tensor(obj._elements))
            return 0
        return 0 if type(obj) in _WRITTEN else None


class _NullFile:
    def write(self, data: Any) -> int:
        return len(data)


class Pickler(PlainPickler):  # type: ignore[misc]
    """A pickler with PyTorch's names; `storages` fills with those of the tensors, in the order in which it comes upon them.

    `storage_id(key, kind, storage)` is what stands in the pickle for a storage.
    """

    dispatch: ClassVar[dict[Any, Any]] = dict(PlainPickler.dispatch)

    def __init__(self, file: Any, protocol: int, obj: Any, storage_id: Callable[[str, Name, Storage], Any]) -> None:
        super().__init__(file, protocol)
        finder = _TensorFinder()
        finder.dump(obj)
        while finder.attributes:
            finder.dump(finder.attributes.pop())
        self.whole = finder.storages
        self.windows = assign_windows([t for t in (*finder.tensors.values(), *finder.storages.values()) if not t.is_meta])
        self.storages: list[Storage] = []
        self.storage_id = storage_id
        self.kept_alive: list[Any] = []  # tensors that a __reduce__ made while pickling: their ids stay their own

    def persistent_id(self, obj: Any) -> Any:
        if isinstance(obj, TypedStorage | UntypedStorage):
            storage, typed = self._storage_of(obj), isinstance(obj, TypedStorage)
        elif type(obj) is _StorageToken:
            storage, typed = obj.storage, True
        else:
            return None
        if storage.key is None:
            storage.key = str(len(self.storages))
            self.storages.append(storage)
        name = STORAGE_NAMES.get(storage.dtype.name) if typed else None
        return self.storage_id(
            storage.key, _intern_name("torch", name) if name else _intern_name("torch.storage", "UntypedStorage"), storage
        )

    def _storage_of(self, obj: Any) -> Storage:
        """The storage of the file for one of the object's own."""
        t = self.whole.setdefault(id(obj), new_tensor(obj._elements))
        self.kept_alive.append(obj)
        window = self.windows.get(id(t)) or assign_windows([t])[id(t)]
        self.windows[id(t)] = window
        return window.storage

    def reducer_override(self, obj: Any) -> Any:
        if not isinstance(obj, Tensor) or is_lazy(obj):
            return NotImplemented
        kind = type(obj)
        if kind not in (Tensor, Parameter, Buffer) and kind.__reduce_ex__ is not Tensor.__reduce_ex__:
            return NotImplemented
        function, args = self._rebuild_call(obj, obj._tracked if kind is not Parameter else False)
        state: Any = dict(obj.__dict__)
        if is_instance(obj):
            held = provider("torch_dispatch.instances").slots_of(obj)
            state = (state, held) if held else state
        if kind is Parameter:
            plain = _PlainTensor(function, args)
            if state:
                return _intern_name("torch._utils", "_rebuild_parameter_with_state"), (plain, obj._tracked, OrderedDict(), state)
            return _intern_name("torch._utils", "_rebuild_parameter"), (plain, obj._tracked, OrderedDict())
        if kind is Buffer:  # PyTorch has no class for it: a buffer is a tensor with this attribute
            state = {"_is_buffer": True, **state}
        if kind in (Tensor, Buffer) and not state:
            return function, args
        return _intern_name("torch._tensor", "_rebuild_from_type_v2"), (function, Tensor if kind is Buffer else kind, args, state)

    def _rebuild_call(self, t: Tensor, requires_grad: bool) -> tuple[Name, tuple[Any, ...]]:
        """(function, arguments) that rebuild a plain tensor from its window; one without memory of its layout alone, as PyTorch's."""
        if t.is_meta:
            return _intern_name("torch._utils", "_rebuild_meta_tensor_no_storage"), (
                t.dtype,
                tuple(t.shape),
                t.stride(),
                bool(requires_grad),
            )
        if is_instance(t):
            inner = t._array.value  # type: ignore[union-attr]
            if not inner.is_meta:
                return self._rebuild_call(inner, requires_grad)
            return _intern_name("torch._utils", "_rebuild_wrapper_subclass"), (
                type(t), t.dtype, tuple(t.shape), t.stride(), 0, t.layout, t.device, bool(requires_grad),
            )  # fmt: skip
        window = self.windows.get(id(t))
        if window is None:
            self.kept_alive.append(t)
            window = self.windows[id(t)] = assign_windows([t])[id(t)]
        args: tuple[Any, ...] = (
            _StorageToken(window.storage),
            window.offset,
            window.shape,
            window.strides,
            bool(requires_grad),
            OrderedDict(),
        )
        if window.storage.dtype.name in _OLD_TYPES:
            return _intern_name("torch._utils", "_rebuild_tensor_v2"), args
        return _intern_name("torch._utils", "_rebuild_tensor_v3"), (*args, window.storage.dtype)

    def save_global(self, obj: Any, name: Any = None) -> None:
        known = _CLASSES.get(obj) if isinstance(obj, type) else None
        if known is None:
            super().save_global(obj, name)
        else:
            self._save_name(_intern_name(*known))

    def _save_name(self, obj: Name) -> None:
        if self.proto >= 4:
            self.save(obj.module)
            self.save(obj.name)
            self.write(pickle.STACK_GLOBAL)
        else:
            self.write(pickle.GLOBAL + f"{obj.module}\n{obj.name}\n".encode("ascii"))
        self.memoize(obj)

    def _save_type(self, obj: type) -> None:
        if obj in _CLASSES:
            self._save_known(_intern_name(*_CLASSES[obj]))
        else:
            super().save_type(obj)

    def _save_known(self, name: Name) -> None:
        """A Name, or its number where it is written already."""
        x = self.memo.get(id(name))
        if x is None:
            self._save_name(name)
        else:
            self.write(self.get(x[0]))

    def _save_dtype(self, obj: DType) -> None:
        self._save_known(_intern_name("torch", obj.name))

    def _save_device(self, obj: device) -> None:
        self.save_reduce(_intern_name("torch", "device"), (obj.type,) if obj.index is None else (obj.type, obj.index), obj=obj)

    def _save_size(self, obj: Size) -> None:
        self.save_reduce(_intern_name("torch", "Size"), (tuple(obj),), obj=obj)

    def _save_layout(self, obj: Any) -> None:
        self.save_reduce(_intern_name("torch.serialization", "_get_layout"), (f"torch.{obj.name}",), obj=obj)

    dispatch[Name] = _save_name
    dispatch[type] = _save_type
    dispatch[DType] = _save_dtype
    dispatch[device] = _save_device
    dispatch[Size] = _save_size
    dispatch[type(strided)] = _save_layout


_WRITTEN = (DType, device, Size, type(strided))


class _PlainTensor:
    """The tensor inside a parameter, as an object of its own that pickles as a plain tensor does."""

    def __init__(self, function: Name, args: tuple[Any, ...]) -> None:
        self.function, self.args = function, args

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self.function, self.args


def pickle_object(obj: Any, protocol: int, storage_id: Callable[[str, Name, Storage], Any]) -> tuple[bytes, list[Storage]]:
    """The pickle of an object, and the storages of its tensors. Raises TypeError and the like for what cannot be pickled."""
    out = io.BytesIO()
    pickler = Pickler(out, protocol, obj, storage_id)
    pickler.dump(obj)
    return out.getvalue(), pickler.storages


def pickle_object_with(module: Any, obj: Any, protocol: int) -> bytes:
    """The pickle that a module's own Pickler makes of an object: tensors as they pickle by themselves, each with its values."""
    out = io.BytesIO()
    module.Pickler(out, protocol=protocol).dump(obj)
    return out.getvalue()
