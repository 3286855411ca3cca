"""Devices of loaded memory: map_location in all its forms, the tags that files have for devices, packages that add their own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tritensor import cuda
from tritensor.ground.call_site import qualified_name
from tritensor.ground.device import as_device, device
from tritensor.ground.errors import CheckpointError
from tritensor.ground.process import locks
from tritensor.tensor.core import Tensor, new_tensor
from tritensor.tensor.functions.types.storages import TypedStorage, UntypedStorage, make_storage

Restore = Callable[[UntypedStorage, str], UntypedStorage]
_FOREIGN_DEVICES = ("mps", "xpu", "hpu", "mtia", "xla", "privateuseone", "npu")  # tags of PyTorch's that no device here has


_packages: list[tuple[int, Callable[[Any], str | None], Callable[[Any, str], Any]]] = [
    (10, lambda s: "cpu" if s.device.type == "cpu" else None, lambda s, where: s.cpu() if where in ("cpu", "cpu:0") else None),
    (
        20,
        lambda s: f"cuda:{s.device.index or 0}" if s.device.type == "cuda" else None,
        lambda s, where: s.to(validate_cuda_device(where)) if where.startswith("cuda") else None,
    ),
    (22, lambda s: "meta" if s.device.type == "meta" else None, lambda s, where: s.to("meta") if where == "meta" else None),
]  # (priority, tagger, deserializer), as register_package() has them
_registering = locks.lock()


def register_package(priority: int, tagger: Callable[[Any], str | None], deserializer: Callable[[Any, str], Any]) -> None:
    """Add a device's tag: `tagger(storage)` gives the location that is written, `deserializer(storage, location)` a storage there; None
    from either leaves it to the next. Lower priorities are asked first; the CPU has 10, GPUs 20, meta 22."""
    with _registering:
        # sorted() and not .sort(): a list that is being sorted looks empty to another thread
        _packages[:] = sorted([*_packages, (priority, tagger, deserializer)], key=lambda entry: entry[0])


def location_tag(storage: Any) -> str:
    """The tag that a file has for a storage's device, such as "cpu" or "cuda:0"."""
    for _, tagger, _ in _packages:
        found = tagger(storage)
        if found:
            return found
    raise RuntimeError(f"location_tag: no tag is known for a storage on {storage.device}; see serialization.register_package")


def validate_cuda_device(location: Any) -> device:
    """The GPU that a tag such as "cuda:1" means. Raises CheckpointError where it is not there."""
    try:
        found = as_device(str(location))
    except TypeError as error:
        raise CheckpointError(f"location {location!r} is no device ({error}); give map_location") from None
    if not cuda.is_available():
        raise CheckpointError(
            f"Attempting to deserialize object on a CUDA device but {qualified_name('cuda.is_available')}() is False. If you are running on a CPU-only "
            f"machine, please use {qualified_name('load')} with map_location={qualified_name('device')}('cpu') to map your storages to the CPU."
        )
    if (found.index or 0) >= cuda.device_count():
        raise CheckpointError(
            f"Attempting to deserialize object on CUDA device {found.index} but {qualified_name('cuda.device_count')}() is {cuda.device_count()}. "
            f"Please use {qualified_name('load')} with map_location to map your storages to an existing device."
        )
    return found


def default_restore_location(storage: UntypedStorage, location: str) -> UntypedStorage:
    """The storage on the device that `location` names. Raises CheckpointError where there is no such device."""
    for _, _, deserializer in _packages:
        found: UntypedStorage | None = deserializer(storage, location)
        if found is not None:
            return found
    known = "a device that tritensor has not" if location.partition(":")[0] in _FOREIGN_DEVICES else "no device"
    raise CheckpointError(
        f"don't know how to restore data location of {qualified_name('storage.UntypedStorage')} (tagged with {location}): that is {known}; "
        "give map_location='cpu', or register it with serialization.register_package"
    )


class StorageMapper:
    """The way of loaded memory to the device that map_location says."""

    def __init__(self, map_location: Any, label: str) -> None:
        self.label = label  # the file
        self.restore = _restore_function(map_location)
        self.deferred: list[Callable[[], None]] | None = None  # run when the bytes are there; None where they are there from the start

    def bytes(self, memory: np.ndarray, location: Any) -> Any:
        """The vector of bytes on its device."""
        if type(location) is not str:  # the tag is the file's, and may be anything
            raise CheckpointError(f"{self.label}: a storage's location is a {type(location).__name__}, no text; the file is damaged")
        try:
            return self.restore(make_storage(UntypedStorage, memory), location)._elements
        except CheckpointError as error:
            raise CheckpointError(f"{self.label}: {error}") from None

    def tensor(self, t: Tensor, location: str) -> Tensor:
        """A tensor on its device: of a file that has tensors and no storages."""
        values = np.ascontiguousarray(t._array)
        memory = self.bytes(values.reshape(-1).view(np.uint8), location)
        return new_tensor(memory.view(values.dtype).reshape(values.shape))


def _restore_function(map_location: Any) -> Restore:
    """map_location in any of torch.load's five forms, as a function."""
    if map_location is None:
        return default_restore_location
    if isinstance(map_location, Mapping):
        return lambda storage, location: default_restore_location(storage, str(map_location.get(location, location)))
    if isinstance(map_location, str | bytes | device):
        there = map_location.decode() if isinstance(map_location, bytes) else str(map_location)
        return lambda storage, location: default_restore_location(storage, there)
    if not callable(map_location):
        raise TypeError(
            f"load: map_location is a {type(map_location).__name__}; give a device, its name, a dict of locations, or a function "
            "(storage, location) -> storage"
        )
    return lambda storage, location: _as_untyped(map_location(storage, location), storage, location)


def _as_untyped(found: Any, storage: UntypedStorage, location: str) -> UntypedStorage:
    """The storage that the return value of a user's map_location means."""
    if found is None:
        return default_restore_location(storage, location)
    if isinstance(found, Tensor):
        found = found.untyped_storage()
    if isinstance(found, TypedStorage):
        found = found.untyped()
    if not isinstance(found, UntypedStorage):
        raise TypeError(f"load: map_location returned a {type(found).__name__}; it shall return a storage, or None for the default")
    if found.nbytes() != storage.nbytes():  # windows would reach out of it
        raise ValueError(f"load: map_location returned a storage of {found.nbytes()} bytes for one of {storage.nbytes()}")
    return found
