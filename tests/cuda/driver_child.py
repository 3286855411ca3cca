"""Checks of the real device's road up to the driver call, with a driver that only takes notes. Run by test_driver.py without TRITON_INTERPRET."""

from __future__ import annotations

import ctypes
import re
import struct
import sys
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import triton
import triton.language as tl
from cuda.bindings import driver as real

from tritensor.array import CudaArray, empty, from_host, to_host
from tritensor.cuda import runtime
from tritensor.cuda.arguments import specialize
from tritensor.cuda.compile import compile
from tritensor.cuda.driver import DriverRuntime, Parameters
from tritensor.cuda.launch import launch
from tritensor.device import device
from tritensor.errors import DeviceError, LaunchError, OutOfMemoryError

OK = real.CUresult.CUDA_SUCCESS
GPU = device("cuda", 0)
F32 = np.dtype(np.float32)


class NotingDriver:
    """Answers as cuda.bindings.driver does; memory is host memory, launches are noted with the parameter block they came with."""

    CUresult, CUdevice_attribute, CUfunction_attribute = real.CUresult, real.CUdevice_attribute, real.CUfunction_attribute
    CUlaunchConfig, CUpointer_attribute = real.CUlaunchConfig, real.CUpointer_attribute

    def __init__(self) -> None:
        self.memory: dict[int, Any] = {}
        self.launches: list[tuple[Any, ...]] = []
        self.modules: list[bytes] = []
        self.attributes: list[tuple[Any, ...]] = []
        self.fail: dict[str, Any] = {}
        self.sizes: list[int] = []  # bytes of each parameter of the kernels loaded, in turn

    def __getattr__(self, name: str) -> Any:
        def call(*args: Any) -> tuple[Any, ...]:
            if name in self.fail:
                return (self.fail[name], None) if name == "cuMemAlloc" else (self.fail[name],)
            answer = getattr(type(self), "_" + name)(self, *args)
            return (OK,) if answer is None else (OK, *answer) if isinstance(answer, tuple) else (OK, answer)

        return call

    def _cuInit(self, flags: int) -> None:
        assert flags == 0

    def _cuDeviceGetCount(self) -> int:
        return 1

    def _cuDeviceGet(self, index: int) -> int:
        return index

    def _cuDevicePrimaryCtxRetain(self, index: int) -> str:
        return f"context {index}"

    def _cuCtxSetCurrent(self, context: str) -> None:
        assert context == "context 0"

    def _cuDeviceGetName(self, length: int, index: int) -> bytes:
        return b"Noting 9000\0\0"

    def _cuDeviceGetAttribute(self, attribute: Any, index: int) -> int:
        name = attribute.name
        return 9 if name.endswith("MAJOR") else 0 if name.endswith("MINOR") else 227 * 1024

    def _cuMemAlloc(self, nbytes: int) -> int:
        block = ctypes.create_string_buffer(nbytes + 256)
        pointer = -(-ctypes.addressof(block) // 256) * 256
        self.memory[pointer] = block
        return pointer

    def _cuMemFree(self, pointer: int) -> None:
        del self.memory[pointer]

    def _cuMemGetInfo(self) -> tuple[int, int]:
        return 1000, 2000

    def _cuMemcpyHtoD(self, to: int, source: int, nbytes: int) -> None:
        ctypes.memmove(to, source, nbytes)

    def _cuMemcpyDtoH(self, to: int, source: int, nbytes: int) -> None:
        ctypes.memmove(to, source, nbytes)

    def _cuCtxSynchronize(self) -> None:
        return None

    def _cuModuleLoadData(self, image: bytes) -> int:
        self.modules.append(image)
        return len(self.modules)

    def _cuModuleGetFunction(self, module: int, name: bytes) -> str:
        assert name in self.modules[module - 1]
        return f"function {name.decode()}"

    def _cuFuncSetAttribute(self, *args: Any) -> None:
        self.attributes.append(args)

    def _cuGetErrorString(self, status: Any) -> bytes:
        return b"words of the driver"

    def _cuLaunchKernelEx(self, config: Any, function: str, parameters: int, extra: int) -> None:
        addresses = (ctypes.c_void_p * len(self.sizes)).from_address(parameters)
        block = [ctypes.string_at(a, n) for a, n in zip(addresses, self.sizes, strict=True)]
        grid = (config.gridDimX, config.gridDimY, config.gridDimZ)
        self.launches.append((function, grid, config.blockDimX, config.sharedMemBytes, block))


@triton.jit
def _double(x):
    return x * 2


@triton.jit
def everything(xs, y, strides, flag, small, n, big, ratio, precise, nothing, formula: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(xs[0] + i * strides[0], mask=i < n, other=0.0) + tl.load(xs[1] + i * strides[1][0], mask=i < n, other=0.0)
    if flag:
        x = (x * ratio + precise).to(tl.float32)
    if nothing is not None:
        x = x + nothing
    tl.store(y + i, formula(x) + big + small, mask=i < n)


@triton.jit
def product(a, b, c, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    p = i[:, None] * BLOCK + i[None, :]
    tl.store(c + p, tl.dot(tl.load(a + p), tl.load(b + p)))


@triton.jit
def broken(x):
    tl.store(x, no_such_name)  # noqa: F821


def raised(kind: type[Exception], text: str, function: Any) -> None:
    """`function` must raise `kind` with `text` in its message."""
    with pytest.raises(kind) as caught:
        function()
    assert re.search(text, str(caught.value), re.S), f"{caught.value} does not say {text}"


def declared_sizes(ptx: str) -> list[int]:
    """Bytes of every parameter the machine code declares."""
    header = ptx[ptx.index(".entry") : ptx.index("{")]
    return [int(bits) // 8 for bits in re.findall(r"\.param \.[a-z](\d+)", header)]


def check_packing() -> None:
    block = Parameters(("*", "i1", "i8", "u16", "i32", "i64", "u64", "fp16", "bf16", "fp32", "fp64", "fp8e4nv"))
    block.fill(
        [2**63, True, -3, 65535, -5, -(2**40), 2**64 - 1, 1.5, ml_dtypes.bfloat16(-2.5), 0.1, np.float64(0.1), ml_dtypes.float8_e4m3fn(3.5)]
    )
    addresses = (ctypes.c_void_p * 12).from_address(block.address)
    formats = ("Q", "?", "b", "H", "i", "q", "Q", "e", "H", "f", "d", "B")
    got = [struct.unpack("<" + f, ctypes.string_at(a, struct.calcsize("<" + f)))[0] for a, f in zip(addresses, formats, strict=True)]
    bf16 = int(np.array(-2.5, ml_dtypes.bfloat16).view(np.uint16))
    fp8 = int(np.array(3.5, ml_dtypes.float8_e4m3fn).view(np.uint8))
    assert got == [2**63, True, -3, 65535, -5, -(2**40), 2**64 - 1, 1.5, bf16, float(np.float32(0.1)), 0.1, fp8], got
    assert all(a % 8 == 0 for a in addresses)
    raised(LaunchError, "do not fit", lambda: Parameters(("i32",)).fill([2**31]))


def check_launch(noting: NotingDriver) -> None:
    a, b, y = (from_host(np.arange(64, dtype=np.float32), GPU) for _ in range(3))
    assert isinstance(a, CudaArray)
    assert isinstance(b, CudaArray)
    args = ((a, b[1:]), y, (1, (2,)), True, np.int8(-7), 48, 2**40, 0.25, np.float64(0.1), None)
    ptx = compile(specialize(everything, args, {"formula": _double, "BLOCK": 32}, 4, 3)[0], 90).asm["ptx"]
    noting.sizes = declared_sizes(ptx)
    assert noting.sizes == [8, 8, 8, 4, 4, 1, 1, 4, 8, 4, 8, 8, 8], noting.sizes
    for _ in range(2):
        launch(everything, (2,), *args, formula=_double, BLOCK=32)
    assert len(noting.modules) == 1
    assert len(noting.launches) == 2
    function, grid, threads, shared, block = noting.launches[0]
    assert (function, grid, threads, shared) == ("function everything", (2, 1, 1), 128, 0)
    assert isinstance(y, CudaArray)
    want = struct.pack("<QQQii?bi", a.data_ptr(), b.data_ptr() + 4, y.data_ptr(), 1, 2, True, -7, 48)
    want += struct.pack("<q", 2**40) + struct.pack("<f", 0.25) + struct.pack("<d", 0.1) + bytes(16)
    assert b"".join(block) == want
    launch(everything, (0,), *args, formula=_double, BLOCK=32)
    assert len(noting.launches) == 2


def check_specialization() -> None:
    x = empty((65,), F32, GPU)
    assert isinstance(x, CudaArray)

    def key(*args: Any, **constexprs: Any) -> Any:
        return specialize(product, args, constexprs, 4, 3)[0]

    assert key(x, x, 16, BLOCK=16).types == ("*fp32:16", "*fp32:16", "i32:16", "constexpr")
    assert key(x[1:], x, 17, BLOCK=16).types == ("*fp32", "*fp32:16", "i32", "constexpr")
    assert key(x, x, 1, BLOCK=1) != key(x, x, 1, BLOCK=True)
    assert key(x, x, 1, BLOCK=1) == key(x, x, 3, BLOCK=1)
    raised(TypeError, "no value for parameter BLOCK", lambda: launch(product, (1,), x, x, x))
    raised(TypeError, "no parameter is called BLOK", lambda: launch(product, (1,), x, x, x, BLOCK=16, BLOK=16))
    raised(TypeError, "5 arguments for 4 parameters", lambda: launch(product, (1,), x, x, x, 16, 16))
    raised(TypeError, "argument c: str is nothing a kernel takes", lambda: launch(product, (1,), x, x, "x", BLOCK=16))


def check_shared_memory(noting: NotingDriver) -> None:
    noting.sizes = [8] * 5
    x, y = empty((128, 128), F32, GPU), empty((128, 128), F32, GPU)
    launch(product, (1,), x, x, y, BLOCK=128)
    (attribute,) = noting.attributes
    assert attribute[1].name.endswith("MAX_DYNAMIC_SHARED_SIZE_BYTES")
    assert attribute[2] == noting.launches[-1][3] > 48 * 1024
    big = empty((256, 256), F32, GPU)
    raised(
        LaunchError,
        "product: needs 524288 bytes of shared memory, a block on cuda:0 may have 232448",
        lambda: launch(product, (1,), big, big, big, BLOCK=256, num_warps=8),
    )


def check_errors(noting: NotingDriver) -> None:
    x = empty((16, 16), F32, GPU)
    noting.fail = {"cuMemAlloc": real.CUresult.CUDA_ERROR_OUT_OF_MEMORY}
    raised(OutOfMemoryError, r"cuda:0: 4096 bytes asked, 1000 of 2000 free, \d+ held", lambda: empty((1024,), F32, GPU))
    noting.fail = {"cuCtxSynchronize": real.CUresult.CUDA_ERROR_ILLEGAL_ADDRESS}
    raised(
        LaunchError,
        "CUDA_ERROR_ILLEGAL_ADDRESS .words of the driver.; a kernel launched earlier failed",
        lambda: runtime.runtime().synchronize(0),
    )
    noting.fail = {"cuLaunchKernelEx": real.CUresult.CUDA_ERROR_INVALID_VALUE}
    raised(LaunchError, r"product: grid \(1,\), 128 threads.*CUDA_ERROR_INVALID_VALUE", lambda: launch(product, (1,), x, x, x, BLOCK=16))
    noting.fail = {}
    raised(LaunchError, r"broken\(x: \*fp32:16\).*for sm_90 does not compile.*no_such_name", lambda: launch(broken, (1,), x))
    raised(DeviceError, "cuda:3: no such device; this machine has 1", lambda: empty((4,), F32, device("cuda", 3)))


def check_memory(noting: NotingDriver) -> None:
    held = runtime.runtime().memory_allocated(0)
    live = len(noting.memory)
    x = from_host(np.arange(6.0).reshape(2, 3), GPU)
    none = empty((0, 4), F32, GPU)
    assert isinstance(x, CudaArray)
    assert (to_host(x.transpose((1, 0))) == np.arange(6.0).reshape(2, 3).T).all()
    assert runtime.runtime().memory_allocated(0) == held + 48
    assert len(noting.memory) == live + 1
    assert to_host(none).shape == (0, 4)
    del x, none
    assert runtime.runtime().memory_allocated(0) == held
    assert len(noting.memory) == live


def main() -> None:
    """Run every check; the first that fails raises."""
    raised(DeviceError, "cuda: .*NVIDIA driver", runtime.runtime) if "--no-gpu" in sys.argv else None
    noting = NotingDriver()
    runtime.use(DriverRuntime(noting))
    assert runtime.runtime().device_name(0) == "Noting 9000"
    assert runtime.runtime().capability(0) == (9, 0)
    check_packing()
    check_launch(noting)
    check_specialization()
    check_shared_memory(noting)
    check_errors(noting)
    check_memory(noting)
    print("all checks passed")


if __name__ == "__main__":
    main()
