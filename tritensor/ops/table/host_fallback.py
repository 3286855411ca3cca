"""Ops without a kernel: on a GPU their arrays are copied to the host, numpy computes there, the result is copied back, and a warning says so once."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from tritensor.ground import dtypes
from tritensor.ground.errors import DeviceError, HostCopyWarning
from tritensor.ops.array import CudaArray, from_host, to_host

_announced: set[str] = set()


def on_host(name: str, reference: Callable[..., Any], shape: Callable[..., Any]) -> Callable[..., Any]:
    """What such an op does on a GPU. Raises DeviceError where the result's type lives on the CPU only (complex numbers)."""

    def forward(*arrays: Any, **attrs: Any) -> Any:
        on = next(x.device for x in arrays if isinstance(x, CudaArray))
        # before anything is computed: complex results have no place to go back to
        said = shape(*arrays, **attrs)
        for spec in said if type(said) is tuple else (said,):
            if dtypes.of(spec.dtype).triton is None:
                raise DeviceError(f"{name}: its result is {dtypes.of(spec.dtype).name}, which lives on the CPU only; call it on x.cpu()")
        announce(name, on)
        result = reference(*[to_host(x) if isinstance(x, CudaArray) else x for x in arrays], **attrs)
        return tuple([from_host(y, on) for y in result]) if type(result) is tuple else from_host(result, on)

    return forward


def announce(name: str, on: Any) -> None:
    """Say, once for each op in a process, that it leaves the GPU."""
    if name not in _announced:  # once: the copies repeat with each step, and so would the words
        _announced.add(name)
        warnings.warn(
            f"{name}: runs on the CPU, and its tensors on {on} are copied there and back; call it on x.cpu() to see where it happens",
            HostCopyWarning,
            stacklevel=2,
        )
