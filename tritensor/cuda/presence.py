"""Is there a GPU? Asked of the driver library directly: importing cuda-python for the answer would cost a tenth of a second."""

from __future__ import annotations

import ctypes
from functools import cache

from tritensor.cuda.runtime import emulated

_NO_DEVICE = 100  # CUDA_ERROR_NO_DEVICE


@cache
def _found() -> tuple[int, str]:
    """Number of GPUs, and where there is none, the reason and what to do."""
    try:
        library = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return 0, "no NVIDIA driver (libcuda.so.1 is not on this machine); install it, or set TRITON_INTERPRET=1 to emulate the device"
    status = library.cuInit(0)
    if status == _NO_DEVICE:
        return (
            0,
            "the NVIDIA driver sees no GPU; check nvidia-smi and CUDA_VISIBLE_DEVICES, or set TRITON_INTERPRET=1 to emulate the device",
        )
    if status:
        return 0, f"the NVIDIA driver does not start (cuInit gave error {status}); check nvidia-smi: driver and kernel module may differ"
    count = ctypes.c_int()
    status = library.cuDeviceGetCount(ctypes.byref(count))
    if status or not count.value:
        return 0, f"the NVIDIA driver sees no GPU (cuDeviceGetCount gave error {status}, {count.value} devices); check CUDA_VISIBLE_DEVICES"
    return count.value, ""


def gpus() -> int:
    """How many devices `cuda:N` there are, emulated ones included; never raises."""
    return 2 if emulated() else _found()[0]


def reason() -> str:
    """Why there is none, and what to do about it; "" where there is one."""
    return "" if emulated() else _found()[1]
