"""The emulated device: host memory, and launches that Triton's interpreter runs under a sanitizer (TRITON_INTERPRET=1)."""

from __future__ import annotations

import ctypes
import math
import zlib
from functools import lru_cache, partial
from itertools import product
from typing import Any

import numpy as np
import triton.language as tl
from triton.runtime.interpreter import InterpretedFunction, TensorHandle

from tritensor.cuda.compiler.arguments import (
    Constant,
    LaunchCall,
    bind,
    check_one_device,
    check_options,
    is_array,
    pointer_type,
    scalar_type,
)
from tritensor.cuda.compiler.tensor_descriptor import TensorDescriptor
from tritensor.cuda.emulator import dry_launches, last_writer, source_lines
from tritensor.cuda.emulator.interpreter import corrected, install, numpy_type, rebind
from tritensor.cuda.emulator.sanitizer import Sanitizer, SanitizerError, Window
from tritensor.cuda.emulator.streams import Borrowed, EmulatedStreams
from tritensor.cuda.emulator.tensor_descriptors import described
from tritensor.cuda.memory.emulated_stats import Ledger
from tritensor.cuda.memory.storage import HostStorage, Storage
from tritensor.cuda.runtime.interface import Properties
from tritensor.cuda.streams import hidden_waits
from tritensor.ground import device_errors, dtypes
from tritensor.ground.device import gpu
from tritensor.ground.errors import DeviceError, LaunchError
from tritensor.ground.process import locks
from tritensor.ground.thread_state import here

_ALIGN = 256
_POISON = 0xFF  # every byte of fresh memory: NaN as any floating type, -1 as an integer, True as a bool
_TYPES = {f"{star}{d.triton}": tl.str_to_ty(f"{star}{d.triton}", None) for d in dtypes.ALL if d.triton for star in ("", "*")}


class EmulatedRuntime(EmulatedStreams):
    """Serves device cuda from host memory. Two devices, so that mixing them is an error here too."""

    def __init__(self) -> None:
        super().__init__()
        self._memory: dict[int, np.ndarray] = {}
        self._sizes: dict[int, int] = {}
        self._pinned: dict[int, np.ndarray] = {}
        self._ledgers = [Ledger(0), Ledger(1)]
        self._owner: dict[int, int] = {}
        self._errors: dict[int, _ErrorRecord] = {}
        self._builder = install()
        self._lock = locks.rlock()

    def device_count(self) -> int:
        return 2

    def device_name(self, index: int) -> str:
        self._check(index)
        return "Triton interpreter (emulated on the host)"

    def _check(self, index: int) -> None:
        if not 0 <= index < 2:
            raise DeviceError(f"cuda:{index}: no such device; there are 2 emulated ones, cuda:0 and cuda:1")

    def capability(self, index: int) -> tuple[int, int]:
        """Compute capability that kernels may choose their shapes by."""
        self._check(index)
        return (9, 0)

    def properties(self, index: int) -> Properties:
        """An H100's, but for the name and the memory, which is the host's."""
        return Properties(
            name=self.device_name(index), capability=(9, 0), total_memory=self.allocator(index).info()[1], multi_processor_count=132,
            shared_memory_per_block_optin=227 << 10, max_threads_per_multi_processor=2048, warp_size=32, l2_cache_size=50 << 20,
            clock_rate_khz=1_980_000, memory_clock_rate_khz=2_619_000, memory_bus_width=5120, driver_version=0,
        )  # fmt: skip

    def allocate(self, nbytes: int, index: int) -> HostStorage:
        self._check(index)
        ledger = self._ledgers[index]
        ledger.admit(nbytes)
        try:
            block = np.empty(nbytes + _ALIGN, np.uint8)
        except MemoryError:
            raise ledger.full(nbytes) from None
        block.fill(_POISON)
        pointer = -(-block.ctypes.data // _ALIGN) * _ALIGN
        with self._lock:
            self._memory[pointer] = block
            self._sizes[pointer] = nbytes
            self._owner[pointer] = index
            ledger.add(pointer, nbytes)
            self.block_made(pointer, index)
            # numpy may hand out an address again
            last_writer.forget(pointer)
        return HostStorage(pointer, nbytes, gpu(index), self.free)

    def free(self, pointer: int) -> None:
        with self._lock:
            self.block_freed(pointer, self._memory.pop(pointer))
            del self._sizes[pointer]
            self._ledgers[self._owner.pop(pointer)].remove(pointer)

    def allocator(self, index: int) -> Ledger:
        """The books of a device."""
        self._check(index)
        return self._ledgers[index]

    def allocators(self) -> list[Ledger]:
        return list(self._ledgers)

    def pinned_allocate(self, nbytes: int) -> int:
        """Host memory, as all memory here."""
        block = np.empty(nbytes + _ALIGN, np.uint8)
        pointer = -(-block.ctypes.data // _ALIGN) * _ALIGN
        self._pinned[pointer] = block
        return pointer

    def pinned_free(self, pointer: int) -> None:
        del self._pinned[pointer]

    def empty_cache(self) -> None:
        """Nothing is kept: what is freed is the host's again at once."""

    def allocation(self, address: int) -> tuple[int, int] | None:
        """(address, bytes) of the live allocation that holds an address, for pointers that a kernel read from memory."""
        return next(((p, n) for p, n in self._sizes.items() if p <= address < p + n), None)

    def copy_to_device(self, storage: Storage, offset: int, source: np.ndarray, wait: bool = True) -> None:
        index = storage.device.index or 0
        if wait and here.capture is not None:
            here.capture.refuse_write(index)
        if wait:
            hidden_waits.note("copy to device")
        call = partial(self.copy_to_device, Borrowed(storage), offset, source, wait)
        if not self.recorded(index, "a copy to the device", call, (storage,)):
            _bytes_at(storage.pointer + offset, source.nbytes)[:] = source.reshape(-1).view(np.uint8)

    def copy_to_host(self, into: np.ndarray, storage: Storage, offset: int, wait: bool = True) -> None:
        if here.capture is not None:
            here.capture.refuse_read(storage.device.index or 0)
        if dry_launches.dry():
            raise dry_launches.ValuesAsked
        into.reshape(-1).view(np.uint8)[:] = _bytes_at(storage.pointer + offset, into.nbytes)
        if wait:
            hidden_waits.note("copy to host")
            self.check_errors(storage.device.index or 0)

    def copy_on_device(self, target: Storage, target_offset: int, source: Storage, source_offset: int, nbytes: int) -> None:
        call = partial(self.copy_on_device, Borrowed(target), target_offset, Borrowed(source), source_offset, nbytes)
        if not self.recorded(target.device.index or 0, "a copy on the device", call, (target, source)):
            ctypes.memmove(target.pointer + target_offset, source.pointer + source_offset, nbytes)

    def error_storage(self, index: int) -> Storage:
        """The record for device_errors.py: host memory of its own, which counts as nobody's tensor."""
        found = self._errors.get(index)
        if found is None:
            self._check(index)
            found = self._errors.setdefault(index, _ErrorRecord(index))
        return found

    def check_errors(self, index: int) -> None:
        """Raise what a kernel has reported."""
        found = self._errors.get(index)
        if found is not None:
            device_errors.check(found)

    def synchronize(self, index: int) -> None:
        self._check(index)
        if here.capture is not None:
            here.capture.refuse_wait(index)
        hidden_waits.note("synchronize")
        self.check_errors(index)

    def launch(self, call: LaunchCall) -> None:
        """Run every program of the grid, one after another in a shuffled but repeatable order, under the sanitizer."""
        kernel, grid = call.kernel, call.grid
        if not isinstance(kernel, InterpretedFunction):
            raise LaunchError(
                f"launch: {kernel!r} is no interpreted kernel; set TRITON_INTERPRET=1 before kernels are imported, decorate with @triton.jit"
            )
        name = kernel.fn.__name__
        bound = bind(call)
        check_options(kernel, call.options, self.capability(0), "the emulated device")
        check_one_device(kernel, bound)
        if dict(call.options).get("launch_cooperative_grid") and math.prod(grid) > 1:
            raise LaunchError(
                f"launch {name}: a cooperative grid of {math.prod(grid)} programs: the emulated device runs one program after "
                "another, so one that waits for the others would wait for ever; launch a grid of one program here"
            )
        if self.recorded_launch(call):
            return
        if dry_launches.dry():
            return
        points = list(product(*(range(n) for n in (*grid, 1, 1)[:3])))
        # one launch at a time: the interpreter keeps its grid and builder in globals
        with self._lock, np.errstate(all="ignore"):  # a float beyond its type is infinite there, as on a GPU
            values = {p.name: corrected(v) if p.constexpr else _value(v, p.name, p.type, name) for p, v in bound}
            watch = Sanitizer(name, points, call.num_warps, self.allocation, frozenset([e.pointer for e in self._errors.values()]))
            rebind(kernel.fn)
            builder, run = self._builder, kernel.rewrite()
            builder.set_grid_dim(*(*grid, 1, 1)[:3])
            builder.watch, builder.num_warps = watch, call.num_warps
            try:
                for i in _order(name, len(points)):
                    watch.begin(i + 1)
                    builder.set_grid_idx(*points[i])
                    run(**values)
            except Exception as error:
                raise _innermost_error(error, name, points[i]) from error
            finally:
                builder.watch = None


class _ErrorRecord(Storage):
    """The error record of one device, zeros at first."""

    __slots__ = ("_memory",)
    permanent = True

    def __init__(self, index: int) -> None:
        self._memory = np.zeros(device_errors.NBYTES + _ALIGN, np.uint8)
        self.pointer = -(-self._memory.ctypes.data // _ALIGN) * _ALIGN
        self.nbytes = device_errors.NBYTES
        self.device = gpu(index)


@lru_cache(1 << 10)
def _order(kernel: str, programs: int) -> list[int]:
    """The order in which a kernel's programs run."""
    # not in the grid's order: a kernel that counts on a neighbour's having run fails here as it may on a GPU; always the same, so that it
    # can be debugged
    return [int(i) for i in np.random.default_rng([zlib.crc32(kernel.encode()), programs]).permutation(programs)]


def _bytes_at(pointer: int, nbytes: int) -> np.ndarray:
    """Host memory at an address as bytes."""
    return np.ctypeslib.as_array((ctypes.c_uint8 * nbytes).from_address(pointer))


def _value(value: Any, name: str, forced: str, kernel: str) -> Any:
    """What the interpreter works on for one argument: a tl.tensor of one element, or a tuple of them."""
    if value is None:
        return None
    if type(value) is Constant:
        return _value(value.value, name, forced, kernel) if isinstance(value.value, int) else value.value
    if isinstance(value, tuple):
        items = [_value(v, f"{name}[{i}]", "", kernel) for i, v in enumerate(value)]
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    if is_array(value):
        kind = _TYPES[pointer_type(value)]
        known = {"argument": Window.of(name, value)} if value.storage.bounded else {}
        return tl.tensor(TensorHandle(np.array([value.data_ptr()], np.uint64), kind, known), kind)
    if type(value) is TensorDescriptor:
        return described(_value(value.array, name, "", kernel), value)
    kind = _TYPES[forced or scalar_type(value, name, kernel)]
    return tl.tensor(TensorHandle(np.array([value]).astype(numpy_type(kind)), kind), kind)


def _innermost_error(error: BaseException, kernel: str, program: tuple[int, ...]) -> Exception:
    """The error under the interpreter's wrappings, saying which kernel it was."""
    inner = error
    while inner.__cause__ is not None:
        inner = inner.__cause__
    if isinstance(inner, SanitizerError):
        return inner
    return LaunchError(f"{kernel}: program {program}: {type(inner).__name__}: {inner}{source_lines.raised(error)}")
