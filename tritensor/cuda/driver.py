"""The real device: kernels compiled by Triton and run through the CUDA driver by cuda-python, nothing else (no gcc, no torch)."""

from __future__ import annotations

import ctypes
import importlib
import struct
import threading
from typing import Any

import numpy as np

from tritensor import dtypes
from tritensor.cuda.arguments import Specialization, first_array, specialize
from tritensor.cuda.presence import gpus, reason
from tritensor.errors import DeviceError, LaunchError, OutOfMemoryError

_STATIC_SHARED = 48 * 1024  # bytes of shared memory a kernel may have without asking
_SCRATCH_TYPES = ("*", "*")  # Triton's kernels end with two scratch pointers: global and profile
# One 8-byte slot per parameter, so that each is aligned whatever came before.
_SLOTS = {"*": "Q", "i1": "?7x", "i8": "b7x", "u8": "B7x", "i16": "h6x", "u16": "H6x", "i32": "i4x", "u32": "I4x", "i64": "q", "u64": "Q",
          "fp16": "e6x", "bf16": "H6x", "fp32": "f4x", "fp64": "d", "fp8e4nv": "B7x", "fp8e5": "B7x"}  # fmt: skip
_AS_BITS = {d.triton: d.numpy for d in dtypes.ALL if d.triton in ("bf16", "fp8e4nv", "fp8e5")}


class Parameters:
    """The parameter block of one compiled kernel: values in slots of 8 bytes, and the array of their addresses the driver takes."""

    def __init__(self, types: tuple[str, ...]) -> None:
        self.types = types
        self._layout = struct.Struct("<" + "".join(_SLOTS[t] for t in types))
        self._block = ctypes.create_string_buffer(max(self._layout.size, 8))
        start = ctypes.addressof(self._block)
        self._addresses = (ctypes.c_void_p * max(len(types), 1))(*(start + 8 * i for i in range(len(types))))
        self.address = ctypes.addressof(self._addresses)
        self._bits = [(i, _AS_BITS[t]) for i, t in enumerate(types) if t in _AS_BITS]

    def fill(self, values: list[Any]) -> None:
        """Write the values of the next launch; raises LaunchError for one that does not fit its type."""
        for i, dtype in self._bits:
            values[i] = np.asarray(values[i], dtype).view(f"u{dtype.itemsize}").item()
        try:
            self._layout.pack_into(self._block, 0, *values)
        except struct.error as error:
            raise LaunchError(f"launch: values {values} do not fit the kernel's parameters {self.types}: {error}") from None


class _Loaded:
    """A kernel in the memory of one GPU, ready to be launched."""

    __slots__ = ("function", "name", "parameters", "scratch", "shared", "threads")

    def __init__(self, function: Any, name: str, parameters: Parameters, scratch: int, shared: int, threads: int) -> None:
        self.function = function
        self.name = name
        self.parameters = parameters
        self.scratch = scratch
        self.shared = shared
        self.threads = threads


class DriverRuntime:
    """Serves device cuda through the CUDA driver, all work in order on the default stream. `api` is cuda.bindings.driver."""

    def __init__(self, api: Any = None) -> None:
        if api is None:
            if not gpus():
                raise DeviceError(f"cuda: {reason()}")
            api = importlib.import_module("cuda.bindings.driver")
        self._api = api
        self._ok = api.CUresult.CUDA_SUCCESS
        self._call("cuInit", 0)
        self._count = int(self._call("cuDeviceGetCount"))
        self._contexts: dict[int, Any] = {}
        self._current = threading.local()
        self._lock = threading.RLock()  # the garbage collector may free a Storage while we hold it
        self._kernels: dict[tuple[Specialization, int], _Loaded] = {}
        self._sizes: dict[int, tuple[int, int]] = {}  # pointer: (bytes, GPU)
        self._held: dict[int, int] = {}
        self._archs: dict[int, tuple[int, int]] = {}

    # what the driver says
    def _call(self, name: str, *args: Any) -> Any:
        """Call the driver; raise what its status means."""
        status, *found = getattr(self._api, name)(*args)
        if status != self._ok:
            raise self._error(name, status)
        return found[0] if len(found) == 1 else tuple(found)

    def _error(self, name: str, status: Any) -> Exception:
        text = f"{name}: {getattr(status, 'name', status)}"
        found, words = self._api.cuGetErrorString(status)
        if found == self._ok and words:
            text += f" ({words.decode() if isinstance(words, bytes) else words})"
        code = getattr(status, "name", "")
        if code in ("CUDA_ERROR_ILLEGAL_ADDRESS", "CUDA_ERROR_LAUNCH_FAILED", "CUDA_ERROR_MISALIGNED_ADDRESS", "CUDA_ERROR_ASSERT"):
            text += "; a kernel launched earlier failed and the process must be restarted; TRITON_INTERPRET=1 shows which access it was"
            return LaunchError(text)
        if code in (
            "CUDA_ERROR_NO_DEVICE",
            "CUDA_ERROR_INVALID_DEVICE",
            "CUDA_ERROR_DEVICE_UNAVAILABLE",
            "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH",
        ):
            return DeviceError(text)
        return LaunchError(text)

    def _enter(self, index: int) -> None:
        """Make GPU `index` the one this thread's calls go to."""
        if getattr(self._current, "index", None) == index:
            return
        if not 0 <= index < self._count:
            raise DeviceError(
                f"cuda:{index}: no such device; this machine has {self._count} ({', '.join(f'cuda:{i}' for i in range(self._count))})"
            )
        with self._lock:
            if index not in self._contexts:
                self._contexts[index] = self._call("cuDevicePrimaryCtxRetain", self._call("cuDeviceGet", index))
        self._call("cuCtxSetCurrent", self._contexts[index])
        self._current.index = index

    def _attribute(self, name: str, index: int) -> int:
        attribute = getattr(self._api.CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_{name}")
        return int(self._call("cuDeviceGetAttribute", attribute, self._call("cuDeviceGet", index)))

    def device_count(self) -> int:
        return self._count

    def device_name(self, index: int) -> str:
        self._enter(index)
        name = self._call("cuDeviceGetName", 256, self._call("cuDeviceGet", index))
        return name.split(b"\0")[0].decode()

    def capability(self, index: int) -> tuple[int, int]:
        if index not in self._archs:
            self._enter(index)
            major, minor = (self._attribute(f"COMPUTE_CAPABILITY_{part}", index) for part in ("MAJOR", "MINOR"))
            self._archs[index] = (major, minor)
        return self._archs[index]

    # memory
    def allocate(self, nbytes: int, index: int) -> int:
        self._enter(index)
        if nbytes == 0:
            return 0
        status, pointer = self._api.cuMemAlloc(nbytes)
        if status == self._api.CUresult.CUDA_ERROR_OUT_OF_MEMORY:
            free, total = self._call("cuMemGetInfo")
            held = self._held.get(index, 0)
            raise OutOfMemoryError(
                f"cuda:{index}: {nbytes} bytes asked, {free} of {total} free, {held} held by this process's tensors; "
                "free tensors, use a smaller batch, or look for other processes with nvidia-smi"
            )
        if status != self._ok:
            raise self._error("cuMemAlloc", status)
        with self._lock:
            self._sizes[int(pointer)] = (nbytes, index)
            self._held[index] = self._held.get(index, 0) + nbytes
        return int(pointer)

    def free(self, pointer: int) -> None:
        with self._lock:
            nbytes, index = self._sizes.pop(pointer)
            self._held[index] -= nbytes
        self._enter(index)
        (status,) = self._api.cuMemFree(pointer)
        if status not in (self._ok, self._api.CUresult.CUDA_ERROR_DEINITIALIZED):  # at exit the driver may be gone before the last tensor
            raise self._error("cuMemFree", status)

    def memory_allocated(self, index: int) -> int:
        """Bytes that live storages of a GPU hold."""
        return self._held.get(index, 0)

    def _enter_for(self, pointer: int) -> None:
        """Make the GPU that holds an address current."""
        if self._count == 1:
            self._enter(0)
            return
        if getattr(self._current, "index", None) is None:
            self._enter(0)
        attribute = self._api.CUpointer_attribute.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
        self._enter(int(self._call("cuPointerGetAttribute", attribute, pointer)))

    def copy_to_device(self, pointer: int, source: np.ndarray) -> None:
        if source.nbytes:
            self._enter_for(pointer)
            self._call("cuMemcpyHtoD", pointer, source.ctypes.data, source.nbytes)

    def copy_to_host(self, into: np.ndarray, pointer: int) -> None:
        if into.nbytes:
            self._enter_for(pointer)
            self._call("cuMemcpyDtoH", into.ctypes.data, pointer, into.nbytes)

    def synchronize(self, index: int) -> None:
        self._enter(index)
        self._call("cuCtxSynchronize")

    # kernels
    def launch(
        self, kernel: Any, grid: tuple[int, ...], args: tuple[Any, ...], constexprs: dict[str, Any], num_warps: int, num_stages: int
    ) -> None:
        """Queue a kernel on the default stream of the GPU that holds its arrays; returns before it has run."""
        spec, typed = specialize(kernel, args, constexprs, num_warps, num_stages)
        array = first_array(args) or first_array(constexprs.values())
        index = (array.storage.device.index or 0) if array is not None else 0
        self._enter(index)
        loaded = self._kernels.get((spec, index))
        if loaded is None:
            loaded = self._load(spec, index, tuple(kind for kind, _ in typed))
        x, y, z = (*grid, 1, 1)[:3]
        scratch = self.allocate(loaded.scratch * x * y * z, index) if loaded.scratch else 0
        config = self._api.CUlaunchConfig()
        config.gridDimX, config.gridDimY, config.gridDimZ = x, y, z
        config.blockDimX, config.blockDimY, config.blockDimZ = loaded.threads, 1, 1
        config.sharedMemBytes = loaded.shared
        config.hStream = 0
        config.numAttrs = 0
        with self._lock:
            loaded.parameters.fill([*(value for _, value in typed), scratch, 0])
            (status,) = self._api.cuLaunchKernelEx(config, loaded.function, loaded.parameters.address, 0)
        if scratch:
            self.free(scratch)  # waits for the kernel
        if status != self._ok:
            error = self._error("cuLaunchKernelEx", status)
            raise LaunchError(
                f"{loaded.name}: grid {grid}, {loaded.threads} threads, {loaded.shared} bytes of shared memory: {error}"
            ) from error

    def _load(self, spec: Specialization, index: int, types: tuple[str, ...]) -> _Loaded:
        """Compile a kernel for a GPU (or take it from Triton's disk cache) and load it there."""
        from tritensor.cuda.compile import compile

        major, minor = self.capability(index)
        compiled = compile(spec, 10 * major + minor)
        metadata = compiled.metadata
        most = self._attribute("MAX_SHARED_MEMORY_PER_BLOCK_OPTIN", index)
        if metadata.shared > most:
            raise LaunchError(
                f"{metadata.name}: needs {metadata.shared} bytes of shared memory, a block on cuda:{index} may have {most}; use smaller tiles or fewer stages"
            )
        module = self._call("cuModuleLoadData", compiled.asm["cubin"])
        function = self._call("cuModuleGetFunction", module, metadata.name.encode())
        if metadata.shared > _STATIC_SHARED:
            attribute = self._api.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            self._call("cuFuncSetAttribute", function, attribute, metadata.shared)
        parameters = Parameters((*types, *_SCRATCH_TYPES))
        loaded = _Loaded(function, metadata.name, parameters, metadata.global_scratch_size or 0, metadata.shared, 32 * metadata.num_warps)
        self._kernels[spec, index] = loaded
        return loaded
