"""Calls of the CUDA driver: all go through cuda-python here, and a status that is no success becomes an error with its remedy."""

from __future__ import annotations

import ctypes
import importlib
import os
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from tritensor.ground.errors import DeviceError, LaunchError, OutOfMemoryError

# Statuses after which the driver answers every later call of the process with the same status: the context is gone.
LOST = {
    "CUDA_ERROR_ILLEGAL_ADDRESS": "a kernel touched memory that is not its own; TRITON_INTERPRET=1 names the kernel and the access",
    "CUDA_ERROR_MISALIGNED_ADDRESS": "a kernel made an access that its address does not allow; TRITON_INTERPRET=1 names the kernel",
    "CUDA_ERROR_INVALID_ADDRESS_SPACE": "a kernel used a pointer of the wrong kind of memory",
    "CUDA_ERROR_INVALID_PC": "a kernel jumped out of its code",
    "CUDA_ERROR_ILLEGAL_INSTRUCTION": "a kernel holds an instruction this GPU does not have; remove Triton's cache and ours, and run again",
    "CUDA_ERROR_HARDWARE_STACK_ERROR": "a kernel overran its stack",
    "CUDA_ERROR_LAUNCH_FAILED": "a kernel died while it ran; TRITON_INTERPRET=1 shows what it does",
    "CUDA_ERROR_LAUNCH_TIMEOUT": "a kernel ran longer than the display's watchdog allows",
    "CUDA_ERROR_ASSERT": "an assertion in a kernel failed",
    "CUDA_ERROR_ECC_UNCORRECTABLE": "the GPU's memory has failed (nvidia-smi -q -d ECC); reset or replace it",
    "CUDA_ERROR_CONTAINED": "the GPU has contained an error of its hardware or of a peer's memory (nvidia-smi -q, dmesg)",
    "CUDA_ERROR_NVLINK_UNCORRECTABLE": "a link between GPUs has failed (nvidia-smi nvlink -e)",
    "CUDA_ERROR_CONTEXT_IS_DESTROYED": "something destroyed the context that tritensor works in",
    "CUDA_ERROR_EXTERNAL_DEVICE": "an external device has failed",
    "CUDA_ERROR_TENSOR_MEMORY_LEAK": "a kernel ended without freeing its tensor memory",
}
_FORKED = "this process was forked from one that had started the driver, which does not live through a fork; start it by 'spawn'"
# What the rest mean to a user: the class of the error and what to do.
REMEDIES: dict[str, tuple[type[Exception], str]] = {
    "CUDA_ERROR_NOT_INITIALIZED": (DeviceError, _FORKED),
    "CUDA_ERROR_NO_DEVICE": (DeviceError, "check nvidia-smi and CUDA_VISIBLE_DEVICES"),
    "CUDA_ERROR_INVALID_DEVICE": (DeviceError, "name a GPU that nvidia-smi -L lists, counted as CUDA_VISIBLE_DEVICES has them"),
    "CUDA_ERROR_DEVICE_UNAVAILABLE": (DeviceError, "another process holds the GPU for itself (nvidia-smi -q -d COMPUTE shows the mode)"),
    "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH": (DeviceError, "the driver's library and kernel module are of two versions; reload the module or reboot"),
    "CUDA_ERROR_SYSTEM_NOT_READY": (DeviceError, "a service the GPU needs does not run yet (on NVSwitch machines: nvidia-fabricmanager)"),
    "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE": (DeviceError, "forward compatibility is for data-centre GPUs; install the matching driver"),
    "CUDA_ERROR_NO_BINARY_FOR_GPU": (LaunchError, "the kernel was compiled for another architecture; remove the cache of compiled kernels"),
    "CUDA_ERROR_INVALID_IMAGE": (LaunchError, "the compiled kernel is damaged; remove the cache of compiled kernels"),
    "CUDA_ERROR_UNSUPPORTED_PTX_VERSION": (LaunchError, "the driver is older than Triton's compiler; update the driver"),
    "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES": (LaunchError, "the kernel needs more registers than a block may have; use fewer warps or smaller tiles"),
    "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE": (LaunchError, "a cooperative grid must fit the GPU at once; use fewer programs"),
    "CUDA_ERROR_INVALID_CLUSTER_SIZE": (LaunchError, "the GPU cannot place clusters of that size and shared memory; use a smaller num_ctas or tiles"),
    "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED": (LaunchError, "this is not possible while a graph is captured; do it before or after"),
    "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED": (LaunchError, "an earlier call broke the capture; see the first error"),
    "CUDA_ERROR_STREAM_CAPTURE_ISOLATION": (LaunchError, "captured work cannot wait for work outside; wait for it before the capture begins"),
    "CUDA_ERROR_STREAM_CAPTURE_UNJOINED": (LaunchError, "the captured stream must wait for every stream that joined the capture, at its end"),
    "CUDA_ERROR_STREAM_CAPTURE_MERGE": (LaunchError, "two captures cannot wait for one another; capture one after the other"),
    "CUDA_ERROR_NOT_PERMITTED": (LaunchError, "the driver forbids this here (a capture, or a context of another kind)"),
    "CUDA_ERROR_UNKNOWN": (LaunchError, "the driver does not say more; look for NVRM: Xid in dmesg, and run python -m tritensor.doctor"),
    "CUDA_ERROR_OUT_OF_MEMORY": (OutOfMemoryError, "free tensors, call tritensor.cuda.empty_cache(), or look for other processes with nvidia-smi"),
}  # fmt: skip
NOT_READY = ("CUDA_ERROR_NOT_READY",)  # of a stream or an event that the GPU has not reached yet
# What the driver says when it is gone before the last tensor is: at the end of a process, and in a forked child.
GONE = ("CUDA_ERROR_DEINITIALIZED", "CUDA_ERROR_CONTEXT_IS_DESTROYED", "CUDA_ERROR_NOT_INITIALIZED")


class Driver:
    """The driver's functions. `api` is the module cuda.bindings.driver; `lost` says why the context is gone ("": it is not)."""

    def __init__(self, api: Any = None) -> None:
        self.api = importlib.import_module("cuda.bindings.driver") if api is None else api
        self.ok = self.api.CUresult.CUDA_SUCCESS
        self.lost = ""
        _started.add(self)
        self.call("cuInit", 0)

    def call(self, name: str, *args: Any) -> Any:
        """Call a driver function; returns what it gives back (nothing, one value, or a tuple). Raises what its status means."""
        return self.do("", name, *args)

    def do(self, doing: str, name: str, *args: Any) -> Any:
        """The same; an error says what it was called for."""
        status, *found = self._ask(name, args)
        if status is not self.ok:
            raise self.error(name, status, doing)
        return found[0] if len(found) == 1 else tuple(found) or None

    def status(self, name: str, *args: Any, answers: Sequence[str] | None = None, doing: str = "") -> tuple[str, Any]:
        """Call a function of which some failures are answers, all of them where none are named: the status' name ("CUDA_SUCCESS"), and what it gave back."""
        status, *found = self._ask(name, args)
        if status is not self.ok and answers is not None and status.name not in answers:
            raise self.error(name, status, doing)
        return status.name, (found[0] if len(found) == 1 else tuple(found) or None)

    def _ask(self, name: str, args: tuple[Any, ...]) -> Any:
        try:
            return getattr(self.api, name)(*args)
        except RuntimeError as error:  # cuda-python has not found it in the driver
            raise self._missing_error(name, error) from error

    def function(self, name: str, since: int, *types: Any) -> Callable[..., int]:
        """A function at the address that the driver gives, in the form it had in version `since` of CUDA; `types` are its arguments'.

        For what cuda-python calls in a form too new for the driver, or with memory of its own. The status comes back as a number.
        """
        code, found = self.status("cuGetProcAddress", name.encode(), since, 0)
        address, why = found if code == "CUDA_SUCCESS" else (0, code)
        if not address:  # newer drivers say so by a null address, older ones and too new a version by a status
            raise self._missing_error(name, getattr(why, "name", why))
        return ctypes.CFUNCTYPE(ctypes.c_int, *types)(int(address))

    def _missing_error(self, name: str, said: Any) -> DeviceError:
        """For a function that cuda-python asks of a driver which does not have it."""
        version = self.api.cuDriverGetVersion()[1]
        return DeviceError(
            f"{name}: {said}: the driver is made for CUDA {version // 1000}.{version % 1000 // 10} and cuda-python for a later one; "
            f"update the driver, or pip install 'cuda-python<{version // 1000 + 1}'"
        )

    def error(self, name: str, status: Any, doing: str = "") -> Exception:
        """The exception for a status, not raised. Remembers that the context is lost where the status says so."""
        code = status.name
        words = self.api.cuGetErrorString(status)[1]
        said = f" ({words.decode() if isinstance(words, bytes) else words})" if words else ""
        text = f"{doing}: " if doing else ""
        if code in LOST:
            # all later calls fail alike: only the first names the cause
            first = not self.lost
            self.lost = self.lost or f"{code}: {LOST[code]}"
            when = "found by" if first else "the GPU's context is lost since an earlier error; now"
            text += f"{when} {name}: {code}{said}: {LOST[code]}. Device cuda cannot be used again in this process: save what is on the CPU and restart"
            return LaunchError(text)
        kind, remedy = REMEDIES.get(code, (LaunchError, ""))
        return kind(f"{text}{name}: {code}{said}" + (f"; {remedy}" if remedy else ""))


_started: weakref.WeakSet[Driver] = weakref.WeakSet()


def _after_fork() -> None:
    """In a forked child the driver answers nothing: what the parent's objects hold there is not given back here."""
    for driver in _started:
        driver.lost = driver.lost or _FORKED


os.register_at_fork(after_in_child=_after_fork)
