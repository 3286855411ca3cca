"""Calls of the stub driver through cuda-python, and a kernel to launch on it: what the tests of the stub itself are made of."""

from __future__ import annotations

import ctypes
import struct
from functools import cache
from typing import Any

import numpy as np
import triton
import triton.language as tl
from cuda.bindings import driver

from tests.stub import control


def ask(name: str, *args: Any) -> Any:
    """Call the driver; the call must succeed."""
    status, *found = getattr(driver, name)(*args)
    assert status == 0, f"{name}{args}: {status!r}; {control.complaints()}"
    return found[0] if len(found) == 1 else tuple(found)


def refused(status: str, name: str, *args: Any) -> None:
    """Call the driver; it must answer this status."""
    found = getattr(driver, name)(*args)[0]
    assert found.name == f"CUDA_ERROR_{status}", f"{name}{args}: {found!r}"


def objected(words: str) -> None:
    """The stub has complained once, in these words."""
    (complaint,) = control.complaints()
    assert words in complaint, complaint


def context(device: int = 0) -> Any:
    """Start the driver and make a device's context current."""
    ask("cuInit", 0)
    found = ask("cuDevicePrimaryCtxRetain", ask("cuDeviceGet", device))
    ask("cuCtxSetCurrent", found)
    return found


def stream(flags: int = 1) -> Any:
    return ask("cuStreamCreate", flags)


def uploaded(array: np.ndarray) -> int:
    address = int(ask("cuMemAlloc", array.nbytes))
    ask("cuMemcpyHtoD", address, array.ctypes.data, array.nbytes)
    return address


def downloaded(address: int, count: int) -> list[float]:
    into = np.zeros(count, np.float32)
    ask("cuMemcpyDtoH", into.ctypes.data, address, into.nbytes)
    return into.tolist()


@triton.jit
def scaled(x, y, small, n, wide, factor, shift, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + o, mask=o < n) * factor + shift
    tl.store(y + o, v + wide + small, mask=o < n)


@cache
def cubin(capability: int) -> bytes:
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    types = {"x": "*fp32", "y": "*fp32", "small": "i8", "n": "i32", "wide": "i64", "factor": "fp32", "shift": "fp64", "BLOCK": "constexpr"}
    source = ASTSource(scaled, types, constexprs={(7,): 256})
    made: Any = triton.compile(source, target=GPUTarget("cuda", capability, 32), options={"num_warps": 4, "enable_fp_fusion": True})
    return made.asm["cubin"]


class Call:
    """A launch of `scaled` whose parts a test may spoil before it runs."""

    layout = "QQbiqfdQQ"  # Triton ends every kernel's parameters with two pointers to scratch memory

    def __init__(self, x: int, y: int) -> None:
        self.function = ask("cuModuleGetFunction", ask("cuModuleLoadData", cubin(90)), b"scaled")
        self.values: list[Any] = [x, y, 3, 100, 2**40, 0.5, 0.25, 0, 0]
        self.config = driver.CUlaunchConfig()
        self.config.gridDimX, self.config.gridDimY, self.config.gridDimZ = 2, 1, 1
        self.config.blockDimX, self.config.blockDimY, self.config.blockDimZ = 128, 1, 1
        self.config.hStream = 0
        self.config.numAttrs = 0

    def __call__(self) -> str:
        slots = [struct.pack("<" + kind, value).ljust(8, b"\0") for kind, value in zip(self.layout, self.values, strict=True)]
        block = ctypes.create_string_buffer(b"".join(slots))
        addresses = (ctypes.c_void_p * len(slots))(*(ctypes.addressof(block) + 8 * i for i in range(len(slots))))
        (status,) = driver.cuLaunchKernelEx(self.config, self.function, ctypes.addressof(addresses), 0)
        return status.name


def ready() -> Call:
    """A launch that is in order."""
    context()
    return Call(*(int(ask("cuMemAlloc", 1024)) for _ in range(2)))
