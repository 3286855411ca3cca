"""Machine code on arrays that end, or begin, at memory which nobody may touch: a program that lives only if nothing beyond them is read or written.

Run as `python -m tests.llvm.guard_pages`; tests/llvm/test_guard_pages.py does, in a process of its own.
"""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Callable, Iterator
from typing import Any

import ml_dtypes
import numpy as np

from tritensor.kernels.convolution import cpu as convolution
from tritensor.kernels.convolution.geometry import geometry
from tritensor.kernels.parts.random_words import philox_llvm
from tritensor.kernels.pooling import cpu_llvm as pooling
from tritensor.kernels.pooling.windows import pooling_windows
from tritensor.llvm.loops import MANY, Loop
from tritensor.llvm.passes import rows, softmaxes, sums
from tritensor.llvm.passes.gather_rows import add_rows, max_rows
from tritensor.llvm.passes.reduce import FormulaSum
from tritensor.llvm.passes.row_programs import Operand, RowProgram
from tritensor.llvm.row_recurrence import WIDTH, RowRecurrence
from tritensor.llvm.strided_rows import WindowLoop

HALVES = (np.float16, ml_dtypes.bfloat16)
FLOATS = (*HALVES, np.float32, np.float64)
LENGTHS = (1, 7, 15, 16, 17, 31, 63, 65, 1000)  # of rows: around the widths of vectors
_libc = ctypes.CDLL(None, use_errno=True)
_libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
_held: list[mmap.mmap] = []


def fenced(x: np.ndarray, at_end: bool) -> np.ndarray:
    """A copy of x between two pages that nobody may touch, against the second, or against the first."""
    page = mmap.PAGESIZE
    inner = max(-(-x.nbytes // page), 1) * page
    memory = mmap.mmap(-1, inner + 2 * page)
    _held.append(memory)
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    for fence in (start, start + page + inner):
        if _libc.mprotect(fence, page, 0):
            raise OSError(ctypes.get_errno(), "mprotect")
    y = np.frombuffer(memory, x.dtype, x.size, page + (inner - x.nbytes if at_end else 0)).reshape(x.shape)
    y[...] = x
    return y


def _numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape)


def _tall(n: int) -> int:
    """So many rows of n that machine code takes them."""
    return -(-MANY // n) + 1


def _loops(place: Callable[[np.ndarray], np.ndarray], dtype: Any) -> None:
    plus, total, window = Loop(lambda a, b: a + b), FormulaSum(lambda a, b: a * b), WindowLoop(lambda a, b: (a + b,))
    for more in (0, 1, 7, 15, 17, 63):
        x = place(_numbers(MANY + more).astype(dtype))
        assert plus((x, 1.5), place(np.zeros_like(x)))
        assert total((x, 2.0)) is not None
    for n in LENGTHS:
        x, y = (place(_numbers(5, n).astype(dtype)) for _ in range(2))
        run = window.bind([y], [x, x[:1]], [True, True, False])
        assert run is not None
        run(1, 4)


def _along(p: Any, x: Any, s: Any, y: Any) -> None:
    p.keep(s, p.sum(lambda x: x, x) + p.largest(x))
    p.each(lambda x: x + 1.0, x, into=(y,))


_PROGRAM = RowProgram(_along)


def _passes(place: Callable[[np.ndarray], np.ndarray], dtype: Any) -> None:
    for n in LENGTHS:
        x = place(_numbers(_tall(n), n).astype(dtype))
        count = len(x)
        assert rows.products(x) is not None
        assert rows.running_sums(x) is not None
        y, s = place(np.zeros_like(x)), place(np.zeros(count, np.float32))
        assert _PROGRAM((count, 1, n), [Operand(x, n), Operand(s, 1, one="row"), Operand(y, n)])
        for cube in (x.reshape(count, n, 1), x.reshape(1, count, n)):
            if softmaxes.takes(cube):
                peaks = [place(v) for v in softmaxes.peaks(cube)]
                softmaxes.powers(cube, *peaks)
    if dtype in HALVES:
        sums.total(place(_numbers(3 * sums.CHUNK + 5).astype(dtype)))


def _numbered(place: Callable[[np.ndarray], np.ndarray], dtype: Any) -> None:
    to, places = place(np.array([0, 0, 1, 3, 3, 3])), place(np.array([4, 0, 4, 2, 4, 1]))
    for n in LENGTHS:
        x = place(_numbers(5, n).astype(dtype))
        out = place(np.zeros((4, n), np.float64 if dtype is np.float64 else np.float32))
        assert add_rows(out, x, place(np.ones(6, out.dtype)), to, places, (-1, 2))
        assert max_rows(out, place(np.full((4, n), -1)), x, to, places, (-1, 2))


def _convolutions(place: Callable[[np.ndarray], np.ndarray], dtype: Any) -> None:
    for x, w, stride, groups in (
        ((2, 3, 9, 17), (9, 3, 3, 3), 1, 1), ((2, 4, 7, 5), (4, 2, 2, 3), 2, 2), ((3, 5, 8, 33), (5, 1, 3, 3), 1, 5), ((2, 2, 31), (3, 2, 5), 1, 1),
    ):  # fmt: skip
        n = len(x) - 2
        s = geometry(x, w, (stride,) * n, (1,) * n, (1,) * n, groups)
        image, weight, g = (place(_numbers(*shape).astype(dtype)) for shape in (x, w, (s.batch, s.out, *s.outs)))
        convolution.correlate(image, weight, place(_numbers(s.out).astype(dtype)), s)
        convolution.input_gradient(g, weight, None, s)
        convolution.weight_gradient(image, g, s)


def _pooling(place: Callable[[np.ndarray], np.ndarray], dtype: Any) -> None:
    for n in (2, 3, 5, 8, 9, 17, 33):
        for kernel, stride, padding in ((2, 2, 0), (3, 1, 1), (3, 2, 1), (2, 1, 0), (3, 3, 0)):
            s = pooling_windows((1, 1, 3, n), (2, kernel), (1, stride), (0, padding))
            if min(s.outs) < 1:
                continue
            found = pooling.largest(place(_numbers(3, 3, n).astype(dtype)), s)
            assert found is not None
            assert pooling.scatter(place(found[0]), place(found[1]), s.size) is not None


def _others(place: Callable[[np.ndarray], np.ndarray]) -> None:
    for kind, dtype in philox_llvm.TYPES.items():
        philox_llvm.fill(kind, place(np.zeros(4 * philox_llvm.BLOCKS * 3 + 7, dtype)), 3, 5)
    recursion = RowRecurrence(lambda a, b, c, p: a + b * c + p)
    for dtype in (np.float32, np.float64):
        n = 3 * WIDTH
        assert recursion(place(_numbers(4, n + 2).astype(dtype)), place(_numbers(n).astype(dtype)), place(_numbers(4, n).astype(dtype)))


def main() -> Iterator[str]:
    for at_end in (True, False):

        def place(x: np.ndarray, at_end: bool = at_end) -> np.ndarray:
            return fenced(x, at_end)

        for dtype in FLOATS:
            _loops(place, dtype)
            _passes(place, dtype)
            _numbered(place, dtype)
            if dtype not in HALVES:
                _convolutions(place, dtype)
                _pooling(place, dtype)
            yield f"{np.dtype(dtype).name} {'before' if at_end else 'behind'} a fence"
        _others(place)


if __name__ == "__main__":
    for line in main():
        print(line, flush=True)
