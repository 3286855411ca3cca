"""torch.distributed.checkpoint.hf_storage: checkpoints of many processes in safetensors files. The names are there, and raise when they are used."""

from __future__ import annotations

from typing import Any, NoReturn

_SAID = (
    "not in tritensor: distributed.checkpoint.save and load write a folder of their own; "
    "safetensors.torch.save_file(full_state_dict(model), file) on one process writes the whole"
)


class HuggingFaceStorageReader:
    """Raises NotImplementedError."""

    def __new__(cls, *args: Any, **kwargs: Any) -> NoReturn:
        raise NotImplementedError(f"HuggingFaceStorageReader: {_SAID}")


class HuggingFaceStorageWriter:
    """Raises NotImplementedError."""

    def __new__(cls, *args: Any, **kwargs: Any) -> NoReturn:
        raise NotImplementedError(f"HuggingFaceStorageWriter: {_SAID}")
