"""The emulated device: host memory, and launches that Triton's interpreter runs under a sanitizer (TRITON_INTERPRET=1)."""

from __future__ import annotations

import ctypes
import threading
import zlib
from itertools import product
from typing import Any

import numpy as np
import triton.language as tl
from triton.runtime.interpreter import InterpretedFunction, TensorHandle

from tritensor import dtypes
from tritensor.cuda.arguments import bind, is_array, pointer_type, scalar_type
from tritensor.cuda.interpreter import install, numpy_type
from tritensor.cuda.sanitizer import Sanitizer, SanitizerError, Window
from tritensor.errors import DeviceError, LaunchError, OutOfMemoryError

_ALIGN = 256
_POISON = 0xFF  # every byte of fresh memory: NaN as any floating type, -1 as an integer, True as a bool
_TYPES = {f"{star}{d.triton}": tl.str_to_ty(f"{star}{d.triton}", None) for d in dtypes.ALL if d.triton for star in ("", "*")}


class EmulatedRuntime:
    """Serves device cuda from host memory. Two devices, so that mixing them is an error here too."""

    def __init__(self) -> None:
        self._memory: dict[int, np.ndarray] = {}
        self._sizes: dict[int, int] = {}
        self._held = [0, 0]
        self._owner: dict[int, int] = {}
        self._builder = install()
        self._lock = threading.RLock()

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

    def allocate(self, nbytes: int, index: int) -> int:
        self._check(index)
        try:
            block = np.empty(nbytes + _ALIGN, np.uint8)
        except MemoryError:
            raise OutOfMemoryError(f"cuda:{index} (emulated): no room for {nbytes} bytes of host memory") from None
        block.fill(_POISON)
        pointer = -(-block.ctypes.data // _ALIGN) * _ALIGN
        with self._lock:
            self._memory[pointer] = block
            self._sizes[pointer] = nbytes
            self._owner[pointer] = index
            self._held[index] += nbytes
        return pointer

    def free(self, pointer: int) -> None:
        with self._lock:
            del self._memory[pointer]
            self._held[self._owner.pop(pointer)] -= self._sizes.pop(pointer)

    def memory_allocated(self, index: int) -> int:
        """Bytes held by live storages of a device."""
        self._check(index)
        return self._held[index]

    def allocation(self, address: int) -> tuple[int, int] | None:
        """(address, bytes) of the live allocation that holds an address, for pointers that a kernel read from memory."""
        return next(((p, n) for p, n in self._sizes.items() if p <= address < p + n), None)

    def copy_to_device(self, pointer: int, source: np.ndarray) -> None:
        _bytes_at(pointer, source.nbytes)[:] = source.reshape(-1).view(np.uint8)

    def copy_to_host(self, into: np.ndarray, pointer: int) -> None:
        into.reshape(-1).view(np.uint8)[:] = _bytes_at(pointer, into.nbytes)

    def synchronize(self, index: int) -> None:
        self._check(index)

    def launch(
        self, kernel: Any, grid: tuple[int, ...], args: tuple[Any, ...], constexprs: dict[str, Any], num_warps: int, num_stages: int
    ) -> None:
        """Run every program of the grid, one after another in a shuffled but repeatable order, under the sanitizer."""
        if not isinstance(kernel, InterpretedFunction):
            raise LaunchError(
                f"launch: {kernel!r} is no interpreted kernel; set TRITON_INTERPRET=1 before kernels are imported, decorate with @triton.jit"
            )
        name = kernel.fn.__name__
        values = {p.name: v if p.constexpr else _value(v, p.name, p.type) for p, v in bind(kernel, args, constexprs)}
        points = list(product(*(range(n) for n in (*grid, 1, 1)[:3])))
        with self._lock, np.errstate(all="ignore"):
            order = np.random.default_rng([zlib.crc32(name.encode()), len(points)]).permutation(len(points))
            watch = Sanitizer(name, len(points), self.allocation)
            builder, run = self._builder, kernel.rewrite()
            builder.set_grid_dim(*(*grid, 1, 1)[:3])
            builder.watch = watch
            try:
                for i in order:
                    watch.program = points[i]
                    watch.number = int(i) + 1
                    builder.set_grid_idx(*points[i])
                    run(**values)
            except Exception as error:
                raise _plain(error, name, points[i]) from error
            finally:
                builder.watch = None


def _bytes_at(pointer: int, nbytes: int) -> np.ndarray:
    """Host memory at an address as bytes."""
    return np.ctypeslib.as_array((ctypes.c_uint8 * nbytes).from_address(pointer))


def _value(value: Any, name: str, forced: str) -> Any:
    """What the interpreter works on for one argument: a tl.tensor of one element, or a tuple of them."""
    if value is None:
        return None
    if isinstance(value, tuple):
        items = [_value(v, f"{name}[{i}]", "") for i, v in enumerate(value)]
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    if is_array(value):
        kind = _TYPES[pointer_type(value)]
        return tl.tensor(TensorHandle(np.array([value.data_ptr()], np.uint64), kind, {"argument": Window.of(name, value)}), kind)
    kind = _TYPES[forced or scalar_type(value, name)]
    return tl.tensor(TensorHandle(np.array([value]).astype(numpy_type(kind)), kind), kind)


def _plain(error: BaseException, kernel: str, program: tuple[int, ...]) -> Exception:
    """The error under the interpreter's wrappings, saying which kernel it was."""
    inner = error
    while inner.__cause__ is not None:
        inner = inner.__cause__
    if isinstance(inner, SanitizerError):
        return inner
    return LaunchError(f"{kernel}: program {program}: {type(inner).__name__}: {inner}")
