"""Availability of a GPU, asked of the driver library directly: importing cuda-python for the answer would cost a tenth of a second."""

from __future__ import annotations

import ctypes
import os
from typing import NamedTuple

from tritensor.cuda.runtime import active

LIBRARY = "libcuda.so.1"
NEEDED = 12000  # the oldest driver, as cuDriverGetVersion writes versions: cuGetProcAddress_v2 came with 12.0
_EMULATE = "or set TRITON_INTERPRET=1 to emulate the device"
# Errors of cuInit that say more than their number. CUDA_ERROR_NO_DEVICE is the one a machine without a GPU gives.
_MEANINGS = {
    3: "CUDA_ERROR_NOT_INITIALIZED: this process was forked from one that had started the driver; start it by 'spawn'",
    34: "CUDA_ERROR_STUB_LIBRARY: libcuda.so.1 is the stub that compilers link with; take its folder out of LD_LIBRARY_PATH",
    46: "CUDA_ERROR_DEVICE_UNAVAILABLE: another process has the GPU in exclusive mode; nvidia-smi shows which",
    100: "CUDA_ERROR_NO_DEVICE: the NVIDIA driver sees no GPU; check nvidia-smi and CUDA_VISIBLE_DEVICES, " + _EMULATE,
    101: "CUDA_ERROR_INVALID_DEVICE: CUDA_VISIBLE_DEVICES names a GPU that is not there",
    802: "CUDA_ERROR_SYSTEM_NOT_READY: the fabric manager or another driver service is not running",
    803: "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH: libcuda.so.1 and the kernel module are of two versions; reboot, or reload the nvidia modules",
    804: "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE: LD_LIBRARY_PATH holds a compatibility libcuda.so.1 for another class of GPU",
    999: "CUDA_ERROR_UNKNOWN: the kernel module does not answer; check nvidia-smi and dmesg, and that /dev/nvidia* may be read",
}


class Found(NamedTuple):
    """How many GPUs, why none and what to do ("" where there are some), and the driver's version (12040 is 12.4; 0: unknown)."""

    gpus: int
    reason: str
    driver: int


_found: Found | None = None


def found() -> Found:
    """What the driver says, asked once per process; never raises. The emulated device is not looked at."""
    global _found
    if _found is None:
        _found = _ask()
    return _found


def written(version: int) -> str:
    """ "12.4" for 12040."""
    return f"{version // 1000}.{version % 1000 // 10}"


def _ask() -> Found:
    try:
        library = ctypes.CDLL(LIBRARY)
    except OSError as error:
        if "cannot open shared object" in str(error):
            return Found(0, f"no NVIDIA driver ({LIBRARY} is not on this machine); install it, {_EMULATE}", 0)
        return Found(0, f"the NVIDIA driver's library does not load: {error}; reinstall the driver, {_EMULATE}", 0)
    try:
        version, count = ctypes.c_int(), ctypes.c_int()
        # answers before cuInit: a driver too old to start is named by its version
        library.cuDriverGetVersion(ctypes.byref(version))
        if 0 < version.value < NEEDED:
            what = f"the NVIDIA driver is too old: it is made for CUDA {written(version.value)}, {written(NEEDED)} or later is needed"
            return Found(0, f"{what}; update the driver (525 or later), {_EMULATE}", version.value)
        status = library.cuInit(0)
        if status:
            meaning = _MEANINGS.get(status, "check nvidia-smi: the driver's library and kernel module may differ")
            return Found(0, f"the NVIDIA driver does not start: cuInit gave error {status}: {meaning}", version.value)
        status = library.cuDeviceGetCount(ctypes.byref(count))
    except AttributeError as error:  # a symbol is missing
        return Found(0, f"{LIBRARY} is there but broken: {error}; reinstall the NVIDIA driver, {_EMULATE}", 0)
    if status or count.value < 1:
        said = f"cuDeviceGetCount gave error {status}, {count.value} devices"
        return Found(0, f"the NVIDIA driver sees no GPU ({said}); check nvidia-smi and CUDA_VISIBLE_DEVICES, {_EMULATE}", version.value)
    return Found(count.value, "", version.value)


def _after_fork() -> None:
    """In a forked child: a driver that was started before the fork answers nothing here. (One that was not can be started.)"""
    global _found
    if _found is not None and _found.gpus:
        what = "this process was forked from one that had started the NVIDIA driver, which does not live through a fork"
        how = "start it with multiprocessing.get_context('spawn'), or fork before the first look at device cuda"
        _found = Found(0, f"{what}; {how}", _found.driver)


os.register_at_fork(after_in_child=_after_fork)


def gpus() -> int:
    """How many devices `cuda:N` there are, emulated ones and those of a runtime put in place by hand included; never raises."""
    if active.emulated():
        return 2
    other = active._runtime
    # a virtual GPU, put in place by a command: the program under it must take it for one
    if other is not None and getattr(other, "pretends", False):
        return other.device_count()
    return found().gpus


def reason() -> str:
    """Why there is none, and what to do about it; "" where there is one."""
    return "" if gpus() else found().reason


def for_timing(reason: str) -> str:
    """The same for a command that times kernels, which emulation does not help."""
    return reason.replace(f", {_EMULATE}", "")
