"""The driver that Triton asks where no PyTorch is: which GPU, what it can do, which stream, how a compiled kernel is started.

`triton.runtime.driver.active` is one of these from the moment that Triton is imported beside this library without PyTorch. Launches
themselves do not come this way (see subscript.py), but programs ask it for the device and its properties, Triton's autotuner and
benchmarks for events and a timer, and `CompiledKernel[grid](...)` starts through it.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from triton.backends.compiler import GPUTarget
from triton.backends.driver import DriverBase
from triton.runtime import driver as active_driver

from tritensor import cuda
from tritensor.cuda.compiler.arguments import LaunchCall
from tritensor.cuda.launch import start
from tritensor.cuda.runtime import active
from tritensor.ground.device import device
from tritensor.tensor.functions.creation.constructors import empty
from tritensor.triton_kernels.ownership import other_torch

# Of a multiprocessor, on every GPU since compute capability 3.0 (technical specifications in the CUDA C++ Programming Guide).
_REGISTERS = 65536
_FLUSHED = 256 << 20  # bytes written between timed calls, more than any GPU's second-level cache


class Utilities:
    """What Triton calls its driver's utils: properties of a GPU, and loading of binaries."""

    def get_device_properties(self, index: int) -> dict[str, int]:
        """Of GPU `index`: bytes, counts, and clocks in kHz under the names that Triton gives them."""
        p = cuda.get_device_properties(index)
        return {
            "max_shared_mem": p.shared_memory_per_block_optin, "max_num_regs": _REGISTERS, "multiprocessor_count": p.multi_processor_count,
            "warpSize": p.warp_size, "sm_clock_rate": p.clock_rate_khz, "mem_clock_rate": p.memory_clock_rate_khz,
            "mem_bus_width": p.memory_bus_width,
        }  # fmt: skip

    def load_binary(self, name: str, binary: bytes, shared: int, index: int) -> tuple[Any, Any, int, int, int]:
        """(module, function, registers, spilled bytes, threads at most) of a cubin. It is read, not loaded: launch() loads what it starts."""
        from tritensor.cuda.compiler.kernel_report import resources

        registers, stack = resources(binary)
        # launch() finds the kernel by its specialization, not by this handle
        return self, None, registers, stack, 1024

    def unload_module(self, module: Any) -> None:
        """Nothing was loaded."""


class Launcher:
    """What starts a CompiledKernel: the kernel that it was compiled from, on the current stream, compiled for the arguments if they are of another kind."""

    def __init__(self, source: Any, metadata: Any) -> None:
        self._kernel = source.fn
        self._warps, self._stages = metadata.num_warps, metadata.num_stages

    def __call__(
        self, x: int, y: int, z: int, stream: int, function: Any, packed: Any, metadata: Any, entered: Any, left: Any, *args: Any
    ) -> None:  # fmt: skip
        # Triton's launchers call the hooks themselves, and CompiledKernel counts on it
        if entered is not None:
            entered(metadata)
        with cuda.stream(cuda.ExternalStream(stream)) if stream else cuda.stream(None):
            start(LaunchCall(self._kernel, (x, y, z), args, {}, self._warps, self._stages))
        if left is not None:
            left(metadata)


class TensorDriver(DriverBase):
    """Triton's driver over this library's device cuda, a GPU or an emulated one."""

    launcher_cls = Launcher

    def __init__(self) -> None:
        super().__init__()
        self.utils = Utilities()

    @classmethod
    def is_active(cls) -> bool:
        return cuda.is_available()

    def map_python_to_cpp_type(self, ty: str) -> str:
        from triton.backends.nvidia.driver import ty_to_cpp

        return ty_to_cpp(ty)

    def get_current_device(self) -> int:
        return cuda.current_device()

    def set_current_device(self, index: int) -> None:
        cuda.set_device(index)

    def get_current_stream(self, index: int | None = None) -> int:
        return cuda.current_stream(index).cuda_stream

    def get_device_capability(self, index: int | None = None) -> tuple[int, int]:
        return cuda.get_device_capability(index)

    def get_current_target(self) -> GPUTarget:
        """The GPU that a kernel is being compiled for, which need not be here; else the current one."""
        from tritensor.cuda.compiler.compile import compiled_for  # it may be what imports Triton just now

        arch = compiled_for()
        if arch is None:
            major, minor = cuda.get_device_capability()
            arch = 10 * major + minor
        return GPUTarget("cuda", arch, 32)

    def get_active_torch_device(self) -> device:
        return device("cuda", cuda.current_device())

    def get_device_interface(self) -> ModuleType:
        return cuda

    def get_benchmarker(self) -> Any:
        from triton.testing import do_bench

        return do_bench

    def get_empty_cache_for_benchmark(self) -> Any:
        """A tensor to write to between timed calls, so that none finds its data in the second-level cache; of one element where nothing is cached."""
        from tritensor.ground import dtypes

        return empty(1 if active.emulated() else _FLUSHED // 4, dtype=dtypes.int32, device="cuda")

    def clear_cache(self, cache: Any) -> None:
        cache.zero_()


def _pytorch_has_a_gpu() -> bool:
    return other_torch() and sys.modules["torch"].cuda.is_available()


def install() -> None:
    """Become the driver that Triton asks, unless a PyTorch is there that has a GPU: then Triton's own serves both."""
    # PyTorch's kernels, compiled by inductor, start through Triton's own
    if not _pytorch_has_a_gpu():
        active_driver.set_active(TensorDriver())


def step_aside() -> None:
    """Let Triton choose its own driver: a kernel is started on tensors of PyTorch's."""
    if isinstance(active_driver._active, TensorDriver) and _pytorch_has_a_gpu():
        active_driver._active = None
