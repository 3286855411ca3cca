"""torch.serialization, beside save and load: options of which some are no choice here, names for annotations."""

from __future__ import annotations

import mmap
import os
from collections.abc import Callable
from typing import IO, Any

from tritensor.ground.device import device
from tritensor.io.device_mapping import validate_cuda_device as _gpu

FILE_LIKE = str | os.PathLike[str] | IO[bytes]  # what hints call the arguments of save and load
DEFAULT_PROTOCOL = 2  # of pickle, as save() writes it
MAP_LOCATION = Callable[[Any, str], Any] | device | str | dict[str, str] | None


class SourceChangeWarning(Warning):
    """What PyTorch warns of when a pickled module's source has changed; sources are not kept here, so nobody warns."""


def validate_cuda_device(location: str) -> int:
    """The number of the GPU that a location names. Raises CheckpointError where it is not there."""
    return int(_gpu(location).index or 0)  # `cuda` names the first


def get_default_mmap_options() -> int:
    """MAP_PRIVATE: writing to a tensor of a mapped file never changes the file."""
    return mmap.MAP_PRIVATE


class set_default_mmap_options:
    """`set_default_mmap_options(mmap.MAP_PRIVATE)`, also as a `with` block. Raises NotImplementedError for MAP_SHARED."""

    def __init__(self, flags: int) -> None:
        if flags == mmap.MAP_SHARED:  # refused, because it would be silent damage to a file
            raise NotImplementedError(
                "set_default_mmap_options: MAP_SHARED would write what is done to a tensor into the checkpoint; load, change and save it"
            )
        if flags != mmap.MAP_PRIVATE:
            raise ValueError(
                f"Invalid argument in function set_default_mmap_options, expected mmap.MAP_PRIVATE or mmap.MAP_SHARED, but got {flags}"
            )

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: Any) -> None:
        pass


class skip_data:
    """Files without their data are not written here: save what has few elements, or the shapes. Raises NotImplementedError."""

    def __init__(self, materialize_fake_tensors: bool = False) -> None:
        raise NotImplementedError(
            "skip_data: a checkpoint without its data is none; save a dict of shapes, {k: v.shape for k, v in state_dict.items()}"
        )
