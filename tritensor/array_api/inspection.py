"""Inspection of the namespace by the array API standard: devices, types, capabilities."""

from __future__ import annotations

from typing import Any

from tritensor import cuda
from tritensor.array_api.data_types import NAMES, isdtype
from tritensor.ground import dtypes
from tritensor.ground.device import as_device, device
from tritensor.ground.dtypes import DType

Device = device


class Info:
    """The standard's inspection functions."""

    def capabilities(self) -> dict[str, Any]:
        """What indexing and shapes may do."""
        # 64 is numpy's limit, whose arrays hold the CPU's values.
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> Device:
        """The device of new arrays."""
        return as_device(None)

    def devices(self) -> list[Device]:
        """All devices of this machine."""
        return [as_device("cpu"), *(as_device(f"cuda:{i}") for i in range(cuda.device_count()))]

    def default_dtypes(self, *, device: Any = None) -> dict[str, DType]:
        """The types of Python's numbers, and of indices."""
        found = {"real floating": dtypes.default_float(), "integral": dtypes.int64, "indexing": dtypes.int64}
        # Complex kernels do not exist for GPUs.
        return found if _on_gpu(device) else found | {"complex floating": dtypes.default_complex()}

    def dtypes(self, *, device: Any = None, kind: str | tuple[str, ...] | None = None) -> dict[str, DType]:
        """The standard's types that a device holds, all or those of a kind; complex ones live on the CPU."""
        found = {n: dtypes.as_dtype(n) for n in NAMES}
        return {n: d for n, d in found.items() if (kind is None or isdtype(d, kind)) and not (d.is_complex and _on_gpu(device))}


def _on_gpu(device: Any) -> bool:
    return as_device(device).type == "cuda"


def __array_namespace_info__() -> Info:  # noqa: N807
    """The inspection functions of this namespace."""
    return Info()
