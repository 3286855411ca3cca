"""The stub driver itself, through cuda-python: devices, memory, launches, the faults it injects. The runtime's tests rest on it."""

from __future__ import annotations

import ctypes
import struct
import subprocess
import sys
import threading
from typing import Any

import numpy as np
import pytest
from cuda.bindings import driver

from tests.cuda.driver.stub_calls import ask, context, cubin, downloaded, objected, ready, refused, uploaded
from tests.stub import build, control
from tests.stub.child import on_stub


# devices
@on_stub(STUB_DEVICES=2, STUB_CAPABILITY=100, STUB_MEMORY=2**30, STUB_DRIVER_VERSION=12090)
def test_devices() -> None:
    refused("NOT_INITIALIZED", "cuDeviceGetCount")
    context(1)
    assert ask("cuDeviceGetCount") == 2
    assert ask("cuDriverGetVersion") == 12090
    assert ask("cuDeviceGetName", 64, 1).rstrip(b" \0") == b"Stub H100"
    assert ask("cuDeviceTotalMem", 1) == 2**30
    assert int(ask("cuCtxGetDevice")) == 1
    attribute = driver.CUdevice_attribute
    assert ask("cuDeviceGetAttribute", attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0) == 10
    assert ask("cuDeviceGetAttribute", attribute.CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 0) == 227 * 1024
    refused("INVALID_DEVICE", "cuDeviceGet", 2)
    assert ask("cuDeviceCanAccessPeer", 0, 1) == 1
    assert ask("cuGetErrorName", driver.CUresult.CUDA_ERROR_OUT_OF_MEMORY) == b"CUDA_ERROR_OUT_OF_MEMORY"
    assert ask("cuGetErrorString", driver.CUresult.CUDA_ERROR_OUT_OF_MEMORY) == b"out of memory"


@on_stub(STUB_INIT_STATUS=803)
def test_a_driver_that_does_not_start() -> None:
    refused("SYSTEM_DRIVER_MISMATCH", "cuInit", 0)
    refused("SYSTEM_DRIVER_MISMATCH", "cuDeviceGetCount")


@on_stub(STUB_DEVICES=0)
def test_a_driver_without_a_device() -> None:
    refused("NO_DEVICE", "cuInit", 0)


@on_stub()
def test_without_a_context_nothing_goes() -> None:
    ask("cuInit", 0)
    refused("INVALID_CONTEXT", "cuMemAlloc", 16)
    context()
    there = [ask("cuMemAlloc", 16)]
    elsewhere = threading.Thread(target=lambda: there.append(driver.cuMemAlloc(16)[0].name))  # a context belongs to a thread
    elsewhere.start()
    elsewhere.join()
    assert there[1] == "CUDA_ERROR_INVALID_CONTEXT"


@on_stub()
def test_plain_symbols_and_unknown_ones() -> None:
    library = ctypes.CDLL("libcuda.so.1")
    assert library.cuInit(0) == 0
    count, found = ctypes.c_int(), ctypes.c_void_p()
    assert library.cuDeviceGetCount(ctypes.byref(count)) == 0
    assert count.value == 1
    why = ctypes.c_int()
    assert library.cuGetProcAddress_v2(b"cuNoSuchThing", ctypes.byref(found), 13000, ctypes.c_uint64(0), ctypes.byref(why)) == 500
    assert why.value == 1
    assert library.cuGetProcAddress_v2(b"cuLaunchKernelEx", ctypes.byref(found), 11000, ctypes.c_uint64(0), ctypes.byref(why)) == 500
    assert why.value == 2
    assert library.cuGetProcAddress_v2(b"cuInit", ctypes.byref(found), 99000, ctypes.c_uint64(0), None) == 1, "no driver knows the future"
    with pytest.raises(RuntimeError, match="cuLinkCreate"):  # what the stub lacks is missing, not answered at random
        driver.cuLinkCreate(0, [], [])


# memory
@on_stub(STUB_MEMORY=10_000)
def test_memory_is_accounted_and_real() -> None:
    context()
    x = uploaded(np.arange(4, dtype=np.float32))
    y = int(ask("cuMemAlloc", 16))
    assert np.isnan(downloaded(y, 4)).all()
    ask("cuMemcpyDtoD", y + 4, x, 12)
    ask("cuMemsetD32", y, struct.unpack("<I", struct.pack("<f", 7.0))[0], 1)
    assert downloaded(y, 4) == [7, 0, 1, 2]
    assert control.live_allocations() == {x: 16, y: 16}
    assert ask("cuMemGetInfo") == (10_000 - 32, 10_000)
    refused("OUT_OF_MEMORY", "cuMemAlloc", 9_969)
    z = int(ask("cuMemAlloc", 9_968))
    refused("OUT_OF_MEMORY", "cuMemAlloc", 1)
    for address in (x, y, z):
        ask("cuMemFree", address)
    assert control.live_allocations() == {}
    assert control.bytes_in_use() == 0


@on_stub()
def test_wild_addresses_are_refused() -> None:
    context()
    x = uploaded(np.ones(4, np.float32))
    host = np.zeros(8, np.float32)
    refused("INVALID_VALUE", "cuMemcpyDtoH", host.ctypes.data, x, 20)
    objected("cuMemcpyDtoH: source")
    refused("INVALID_VALUE", "cuMemcpyHtoD", host.ctypes.data, host.ctypes.data, 8)
    objected("is no device address")
    refused("INVALID_VALUE", "cuMemcpyDtoH", x, x, 8)
    objected("is a device address")
    ask("cuMemFree", x)
    refused("INVALID_VALUE", "cuMemFree", x)
    objected("no live allocation")
    refused("INVALID_VALUE", "cuMemsetD8", x, 0, 4)
    objected("not inside one live allocation")


@on_stub(STUB_DEVICES=2)
def test_memory_of_another_device() -> None:
    first = context(0)
    x = uploaded(np.ones(4, np.float32))
    second = context(1)
    host = np.zeros(4, np.float32)
    refused("INVALID_VALUE", "cuMemcpyDtoH", host.ctypes.data, x, 16)
    objected("the memory is device 0's, the context is device 1's")
    y = int(ask("cuMemAlloc", 16))
    ask("cuMemcpyPeer", y, second, x, first, 16)
    assert downloaded(y, 4) == [1, 1, 1, 1]
    refused("INVALID_VALUE", "cuMemcpyPeer", x, second, y, first, 16)
    objected("cuMemcpyPeer")
    assert len(control.live_allocations(0)) == len(control.live_allocations(1)) == 1


@on_stub(STUB_MEMORY=1000)
def test_a_pool_keeps_what_is_freed() -> None:
    context()
    pool = ask("cuDeviceGetDefaultMemPool", 0)
    attribute = driver.CUmemPool_attribute
    ask("cuMemPoolSetAttribute", pool, attribute.CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, driver.cuuint64_t(2**60))
    x = ask("cuMemAllocAsync", 800, 0)
    ask("cuMemFreeAsync", x, 0)
    ask("cuCtxSynchronize")
    assert int(ask("cuMemPoolGetAttribute", pool, attribute.CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT)) == 800
    assert control.live_allocations() == {}
    refused("OUT_OF_MEMORY", "cuMemAlloc", 300)
    ask("cuMemAllocAsync", 700, 0)
    ask("cuMemPoolTrimTo", pool, 0)
    ask("cuMemAlloc", 300)
    assert control.bytes_in_use() == 1000


@on_stub()
def test_pinned_memory() -> None:
    context()
    address = int(ask("cuMemHostAlloc", 64, driver.CU_MEMHOSTALLOC_DEVICEMAP))
    ctypes.memset(address, 0, 64)
    assert int(ask("cuMemHostGetDevicePointer", address, 0)) == address
    assert control.pinned() == (1, 64)
    kind = ask("cuPointerGetAttribute", driver.CUpointer_attribute.CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address)
    assert kind == driver.CUmemorytype.CU_MEMORYTYPE_HOST
    ask("cuMemFreeHost", address)
    refused("INVALID_VALUE", "cuMemFreeHost", address)
    assert control.pinned() == (0, 0)


# launches
@on_stub()
def test_a_launch_is_noted_with_its_parameters() -> None:
    launch = ready()
    control.reset()
    with control.counted() as calls:
        assert launch() == "CUDA_SUCCESS"
    assert calls == {"cuLaunchKernelEx": 1}
    (seen,) = control.launches()
    assert (seen.name, seen.grid, seen.block, seen.cluster) == ("scaled", (2, 1, 1), (128, 1, 1), (1, 1, 1))
    assert [len(b) for b in seen.raw] == [8, 8, 1, 4, 8, 4, 8, 8, 8]
    assert seen.values[:5] == (*launch.values[:2], 3, 100, 2**40)
    assert (seen.floating(5), seen.floating(6)) == (0.5, 0.25)
    assert [i for i, pointer in enumerate(seen.pointers) if pointer] == [0, 1, 7, 8]


@on_stub()
def test_a_packing_mistake_is_caught() -> None:
    launch = ready()
    x = launch.values[0]
    for wrong, words in [(x + 1024, "parameter 0"), (x - 1, "parameter 0"), (12345, "parameter 0")]:
        launch.values[0] = wrong
        assert launch() == "CUDA_ERROR_INVALID_VALUE", wrong
        objected(words)
    launch.values[0] = x
    launch.values[4] = x + 2**30  # no pointer by its type, but nothing else looks like that
    assert launch() == "CUDA_ERROR_INVALID_VALUE"
    objected("parameter 4")
    launch.values[4] = 0
    ask("cuMemFree", launch.values[1])
    assert launch() == "CUDA_ERROR_INVALID_VALUE"
    objected("parameter 1")
    (status,) = driver.cuLaunchKernelEx(launch.config, launch.function, 8, 0)
    assert status.name == "CUDA_ERROR_INVALID_VALUE"
    objected("no 9 parameters at 0x8")


@on_stub(STUB_CHECK=0)
def test_unchecked_launches_are_only_counted() -> None:
    launch = ready()
    launch.values[0] = 12345
    assert launch() == "CUDA_SUCCESS"
    assert control.calls("cuLaunchKernelEx") == 1
    assert control.launches() == []


@on_stub()
def test_shapes_and_shared_memory() -> None:
    launch = ready()
    launch.config.gridDimY = 70_000
    assert launch() == "CUDA_ERROR_INVALID_VALUE"
    objected("grid (2, 70000, 1)")
    launch.config.gridDimY, launch.config.blockDimX = 1, 96
    assert launch() == "CUDA_ERROR_INVALID_VALUE"
    objected("block (96, 1, 1)")
    launch.config.blockDimX, launch.config.sharedMemBytes = 128, 50_000
    assert launch() == "CUDA_ERROR_INVALID_VALUE"
    objected("50000 bytes of dynamic shared memory, opted in are 49152")
    attribute = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
    refused("INVALID_VALUE", "cuFuncSetAttribute", launch.function, attribute, 227 * 1024 + 1)
    ask("cuFuncSetAttribute", launch.function, attribute, 50_000)
    assert launch() == "CUDA_SUCCESS"
    assert ask("cuFuncGetAttribute", driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_NUM_REGS, launch.function) > 0
    assert ask("cuOccupancyMaxActiveBlocksPerMultiprocessor", launch.function, 128, 50_000) == 4


@on_stub()
def test_launch_attributes() -> None:
    launch = ready()
    cluster, cooperative = driver.CUlaunchAttribute(), driver.CUlaunchAttribute()
    cluster.id = driver.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
    cluster.value.clusterDim.x, cluster.value.clusterDim.y, cluster.value.clusterDim.z = 2, 1, 1
    cooperative.id = driver.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_COOPERATIVE
    cooperative.value.cooperative = 1
    launch.config.attrs = [cluster, cooperative]
    launch.config.numAttrs = 2
    assert launch() == "CUDA_SUCCESS"
    (seen,) = control.launches()
    assert (seen.cluster, seen.cooperative, seen.programmatic) == ((2, 1, 1), True, False)
    launch.config.gridDimX = 3
    assert launch() == "CUDA_ERROR_INVALID_CLUSTER_SIZE"
    objected("clusters of (2, 1, 1) in a grid of (3, 1, 1)")
    launch.config.gridDimX = 2**20
    assert launch() == "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE"
    objected("cooperative")


@on_stub(STUB_CAPABILITY=80)
def test_a_cubin_of_another_architecture() -> None:
    context()
    refused("NO_BINARY_FOR_GPU", "cuModuleLoadData", cubin(90))
    refused("INVALID_IMAGE", "cuModuleLoadData", b".version 8.0 // PTX is not compiled here" + bytes(64))
    module = ask("cuModuleLoadData", cubin(80))
    refused("NOT_FOUND", "cuModuleGetFunction", module, b"no_such_kernel")
    ask("cuModuleUnload", module)
    refused("INVALID_HANDLE", "cuModuleGetFunction", module, b"scaled")


# faults
@on_stub()
def test_a_fault_comes_at_its_call_and_only_there() -> None:
    context()
    control.fail_at("cuMemAlloc", 2, control.OUT_OF_MEMORY)
    ask("cuMemAlloc", 16)
    refused("OUT_OF_MEMORY", "cuMemAlloc", 16)
    ask("cuMemAlloc", 16)
    assert len(control.live_allocations()) == 2
    control.fail_at("*", 3, control.UNKNOWN, times=2)
    ask("cuMemAlloc", 16)
    ask("cuCtxSynchronize")
    assert control.faults_left() == 1
    refused("UNKNOWN", "cuCtxSynchronize")
    refused("UNKNOWN", "cuMemGetInfo")
    ask("cuMemGetInfo")
    assert control.faults_left() == 0
    with pytest.raises(ValueError, match="no function 'cuMemAllock'"):
        control.fail_at("cuMemAllock", 1, 2)


@on_stub()
def test_a_lost_context_stays_lost() -> None:
    launch = ready()
    control.fail_at("cuLaunchKernelEx", 1, control.ILLEGAL_ADDRESS, sticky=True)
    assert launch() == "CUDA_ERROR_ILLEGAL_ADDRESS"
    refused("ILLEGAL_ADDRESS", "cuMemAlloc", 16)
    refused("ILLEGAL_ADDRESS", "cuCtxSynchronize")
    assert ask("cuDeviceGetCount") == 1
    assert ask("cuGetErrorString", driver.CUresult.CUDA_ERROR_ILLEGAL_ADDRESS) == b"an illegal memory access was encountered"
    control.no_faults()
    assert launch() == "CUDA_SUCCESS"


@on_stub()
def test_a_tensor_map_is_checked() -> None:
    context()
    x = int(ask("cuMemAlloc", 4096))
    room = ctypes.create_string_buffer(256)
    aligned = (ctypes.addressof(room) + 63) // 64 * 64  # cuda-python's own CUtensorMap is not aligned as the driver's manual asks

    def encode(stride: int = 128, box: int = 32, address: int = x, into: int = aligned) -> int:
        wide, narrow = ctypes.c_uint64 * 2, ctypes.c_uint32 * 2
        shape = (wide(32, 32), wide(stride, 0), narrow(box, 8), narrow(1, 1))
        modes = (0, 3, 2, 0)  # not interleaved, swizzled by 128 bytes, promoted to 128 bytes, zeros outside
        float32 = 7
        return ctypes.CDLL("libcuda.so.1").cuTensorMapEncodeTiled(
            ctypes.c_void_p(into), float32, 2, ctypes.c_void_p(address), *shape, *modes
        )

    assert encode() == 0
    for bad, words in [
        ({"stride": 120}, "no multiple of 16"),
        ({"box": 64}, "a box row of 256 bytes"),
        ({"address": x + 8}, "(of 16)"),
        ({"address": 4096}, "no live allocation"),
        ({"into": aligned + 16}, "(of 64)"),
    ]:
        assert encode(**bad) == control.INVALID_VALUE, bad
        objected(words)


# the harness
def _outcome(body: str, **stub: object) -> Any:
    """Run one of the functions below as @on_stub() does, without failing this test."""
    from tests.stub import child

    request = child.Request(__file__, __name__, body, (), {}, {k: str(v) for k, v in stub.items()}, 3)
    return child._server().run(request)


def _false() -> None:
    meaning = 41
    print("said before")
    assert meaning == 42


def _crash() -> None:
    context()
    ctypes.string_at(int(ask("cuMemAlloc", 16)), 1)  # the host cannot touch device memory


def _hang() -> None:
    threading.Event().wait()


def _careless() -> None:
    context()
    driver.cuMemFree(64)


def test_the_harness_reports_what_went_wrong() -> None:
    failed = _outcome("_false")
    assert "assert meaning == 42" in failed.failure
    assert "_false: meaning = 41" in failed.failure
    assert failed.output == "said before\n"
    assert "SIGSEGV" in _outcome("_crash").failure
    assert "_hang" in _outcome("_hang").failure
    assert "0x40 is no live allocation" in _outcome("_careless").failure
    assert "no attribute '_missing'" in _outcome("_missing").failure


def test_without_a_compiler_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build.shutil, "which", lambda name: None)
    with pytest.raises(RuntimeError, match=r"needs a C compiler.*install gcc"):
        build.driver_folder.__wrapped__()


def test_a_process_on_the_stub_interprets_nothing() -> None:
    code = "import os; from tests.stub import control; print(control.total(), 'TRITON_INTERPRET' in os.environ)"
    done = subprocess.run([sys.executable, "-c", code], env=build.environment(), capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["0", "False"], done.stderr
