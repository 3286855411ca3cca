"""check_kernel: a bare @triton.jit kernel run on poisoned memory, at several offsets and layouts, and compared with what is expected."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

from tritensor.cuda.emulator import last_writer
from tritensor.cuda.launch import launch
from tritensor.ground import dtypes
from tritensor.ground.device import device
from tritensor.ground.errors import ArgumentError, LaunchError
from tritensor.ground.strides import memory_extent
from tritensor.ops.array import CudaArray, element_strides, to_host
from tritensor.tensor.core import Tensor
from tritensor.testing.devices import here
from tritensor.testing.lines.stores import byte_stored_by, never_stored, stored_by
from tritensor.testing.questions.cases import is_floating
from tritensor.testing.questions.layouts import Placed, find_gaps, lay_out, place, poison
from tritensor.testing.questions.question import Finding
from tritensor.testing.questions.tolerance import TABLE, Mismatch, mismatch, wide
from tritensor.testing.report import Report

LAYOUTS = ("transposed", "sliced", "reversed")  # of arrays whose strides the kernel is given by a function of them


class Run(NamedTuple):
    """One launch to be made: what it is called, a layout for the arrays that may have another ("" for theirs), elements before every array."""

    name: str
    layout: str
    offset: int
    second: bool  # poison of another value: False for bools, the smallest integer


def check_kernel(
    kernel: Any,
    grid: tuple[int, ...] | Callable[[dict[str, Any]], tuple[int, ...]],
    args: Sequence[Any] | Mapping[str, Any],
    expected: Mapping[str, Any] | Callable[..., Mapping[str, Any]],
    *,
    updates: Sequence[str] = (),
    repeats: Sequence[str] = (),
    rtol: float | None = None,
    atol: float = 0.0,
    num_warps: int = 4,
    num_stages: int = 3,
    **constexprs: Any,
) -> None:
    """Launch a kernel on the emulated device (or the GPU) several times and compare what it writes; return if all holds.

    Every array is copied there: as it is, at an odd offset in memory whose surroundings are poisoned, and, where the kernel is told the strides
    by functions (below), transposed, in steps and backwards. Results are poisoned before each launch, so that what is not written shows.

    Args:
        grid: one to three ints, or a function of the dict of constexprs, as Triton's.
        args: the kernel's parameters in order, or by name: numpy arrays, Tensors, numbers, None. A function stands for a number that depends on
            how arrays lie: it is given the Tensors of the parameters that it names: `lambda x: x.stride(0)`.
        expected: what the results hold afterwards, by parameter: arrays, or a function that returns such a dict, given the numpy arrays
            and numbers of the parameters that it names: `lambda x: {"y": np.tanh(x)}`. These parameters are the results; no other may change.
        updates: those results whose given values the kernel reads (it works in place, or adds to zeros); they are not poisoned.
        repeats: those results to one element of which several programs may store, the same value, as where each stores its row's maximum.
        rtol, atol: an element may be off by rtol |expected| + atol; when rtol is left out by a few roundings of the type, and of 16 bits, where
            what is expected is wider, by one: half a unit in the last place. Nor may many elements be off the same way.
        constexprs: the kernel's constexpr parameters.

    Raises:
        AssertionError: what does not hold, each kind of finding once, with the line of the kernel.
        ArgumentError: parameters that there are not, or that are missing. DeviceError: no GPU, and device cuda is not emulated.
    """
    __tracebackhide__ = True  # pytest shows the caller's line
    where = here()
    call = _Call.of(kernel, grid, args, expected, (updates, repeats), constexprs, (num_warps, num_stages))
    report = Report()
    for run in call.runs():
        with last_writer.recorded(call.repeats):  # each run anew: a store of the last one explains nothing
            found = call.findings(run, rtol, atol)
        case = f"{run.name}, {where}"
        report.add(call.name, case, [Finding(call.name, case, "launch", line) for line in found])
    if report:
        raise AssertionError("\n".join(report.lines()))


class _Call(NamedTuple):
    """A kernel and what it is called with."""

    kernel: Any
    grid: Any
    given: dict[str, Any]  # parameters by name: numpy arrays or Tensors, numbers, functions
    expected: dict[str, np.ndarray]
    updates: frozenset[str]
    repeats: frozenset[str]
    constexprs: dict[str, Any]
    options: tuple[int, int]

    @classmethod
    def of(
        cls, kernel: Any, grid: Any, args: Any, expected: Any, named: tuple[Any, Any], constexprs: dict[str, Any], options: tuple[int, int]
    ) -> _Call:
        """The call, checked against the kernel's parameters."""
        names = [p for p in inspect.signature(getattr(kernel, "fn", kernel)).parameters if p not in constexprs]
        name = kernel.__name__
        if not isinstance(args, Mapping) and len(args) > len(names):
            raise ArgumentError(
                f"check_kernel {name}: {len(args)} arguments for the parameters {', '.join(names)}; give constexprs by name"
            )
        given = dict(args) if isinstance(args, Mapping) else dict(zip(names, args, strict=False))
        if unknown := [n for n in given if n not in names]:
            raise ArgumentError(f"check_kernel {name}: it has no parameter {unknown[0]!r}; its parameters are {', '.join(names)}")
        values = {n: _host(x) for n, x in given.items() if not callable(x)}
        wanted = dict(_call_by_names(expected, values, name, "expected") if callable(expected) else expected)
        updates, repeats = (frozenset([n] if isinstance(n, str) else n) for n in named)
        for n in [*wanted, *updates, *repeats]:
            if not isinstance(values.get(n), np.ndarray):
                arrays = ", ".join(k for k, v in values.items() if isinstance(v, np.ndarray))
                raise ArgumentError(
                    f"check_kernel {name}: {n!r}, which is expected to be written, is no array among the arguments; {arrays} are"
                )
        for n in wanted:
            wanted[n] = np.asarray(_host(wanted[n]))
            if wanted[n].shape != values[n].shape:
                raise ArgumentError(f"check_kernel {name}: {n} has shape {values[n].shape}, what is expected of it {wanted[n].shape}")
        if not wanted:
            raise ArgumentError(
                f"check_kernel {name}: nothing is expected; name a parameter that the kernel writes, and what it holds afterwards"
            )
        return cls(kernel, grid, given, wanted, updates, repeats, constexprs, options)

    @property
    def name(self) -> str:
        return str(self.kernel.__name__)

    def list_strided(self) -> frozenset[str]:
        """The arrays whose strides the kernel is told by functions."""
        return frozenset(n for x in self.given.values() if callable(x) for n in inspect.signature(x).parameters)

    def runs(self) -> Iterator[Run]:
        """The launches to be made."""
        yield Run("as given", "", 0, False)
        yield Run("at an odd offset", "", 1, True)  # no vector access is aligned, and a kernel that rounds addresses down shows
        for layout in LAYOUTS if self.list_strided() else ():
            yield Run(layout, layout, 0, False)

    def findings(self, run: Run, rtol: float | None, atol: float) -> list[str]:
        """Complaints about one launch."""
        placed = {n: self._place(n, x, run) for n, x in self.given.items() if isinstance(x, np.ndarray | Tensor)}
        tensors = {n: Tensor.wrap(p.array) for n, p in placed.items()}
        values: dict[str, Any] = {}
        for n, x in self.given.items():
            values[n] = placed[n].array if n in placed else _call_by_names(x, tensors, self.name, n) if callable(x) else x
        grid = self.grid(dict(self.constexprs)) if callable(self.grid) else self.grid
        try:
            launch(self.kernel, grid, num_warps=self.options[0], num_stages=self.options[1], **values, **self.constexprs)
            found = []
        except LaunchError as error:
            return [str(error)]
        for n, p in placed.items():
            found += self._find_writes(n, p) if n not in self.expected else self._result(n, p, rtol, atol)
        return found

    def _place(self, name: str, x: Any, run: Run) -> Placed:
        host, on = _host(x), device("cuda", 0)
        if name in self.expected and name not in self.updates:
            spoiled = poison(host.dtype)
            # An integer that is not written may hold the first poison by accident: no accident holds both.
            if run.second and host.dtype.kind in "biu":
                spoiled = np.array(False) if host.dtype.kind == "b" else np.array(np.iinfo(host.dtype).min, host.dtype)
            host = np.full(host.shape, spoiled, host.dtype)  # its given values say only shape and type
        if run.layout and name in self.list_strided():
            return place(host, run.layout, on)
        return place_as(host, element_strides(x._array if isinstance(x, Tensor) else x), run.offset, on)

    def _result(self, name: str, p: Placed, rtol: float | None, atol: float) -> list[str]:
        """Complaints about one of the results, and about the memory around it."""
        found, got, want = [], to_host(p.array), self.expected[name]
        relative = rtol if rtol is not None else TABLE.get(dtypes.of(got.dtype).name, 0.0)
        wrong = (find_double_rounding(got, want, atol) if rtol is None else None) or mismatch(
            got, want, relative, dtype=False, extra=(lambda: np.full(got.shape, atol)) if atol else None, mean=rtol is None and not atol
        )
        missed = never_stored(p.array) if isinstance(p.array, CudaArray) and name not in self.updates else np.zeros(got.shape, bool)
        if missed.any():
            at = tuple(int(i) for i in np.argwhere(missed)[0])
            found.append(f"{name}{list(at) or ''} was not written ({int(missed.sum())} of {missed.size} elements){stored_by(p.array, at)}")
        elif wrong:
            found.append(f"{name}: {wrong}{stored_by(p.array, wrong.at)}")
        return found + self._find_writes(name, p, find_gaps(p), "memory beside ")

    def _find_writes(self, name: str, p: Placed, where: Any = True, what: str = "input ") -> list[str]:
        """A finding if a byte changed that should not have."""
        changed = (to_host(p.base).reshape(-1).view(np.uint8) != p.before) & where
        if not changed.any():
            return []
        assert isinstance(p.base, CudaArray)
        return [f"{what}{name} was written{byte_stored_by(p.base, int(np.argmax(changed)))}"]


def find_double_rounding(got: np.ndarray, want: np.ndarray, atol: float) -> Mismatch | None:
    """Complaints about results of 16 bits, where the expected values are wider: a kernel computes them in float32 and rounds once, so that
    each is within half a unit in its last place, and a few units of float32."""
    if got.dtype.itemsize != 2 or not is_floating(got) or not is_floating(want) or want.dtype.itemsize == 2:
        return None
    limits = ml_dtypes.finfo(got.dtype)
    g, w = wide(got), wide(want)
    size = np.maximum(np.abs(np.where(np.isfinite(w), w, 1)), float(limits.smallest_normal))
    half = 0.5 * float(limits.eps) * 2.0 ** np.floor(np.log2(size))  # units grow with each power of two
    bad = np.isfinite(w) & (np.abs(w) <= float(limits.max)) & ~(np.abs(g - w) <= half + TABLE["float32"] * size + atol)
    if not bad.any():
        return None
    at = tuple(int(i) for i in np.unravel_index(int(np.argmax(np.where(bad, np.abs(g - w) / half, 0))), g.shape))
    off = abs(float(g[at] - w[at]) / float(half[at])) / 2
    return Mismatch(
        f"{int(bad.sum())} of {bad.size} elements differ; at {list(at)} got {got[at]!s}, expected {w[at]:g}, {off:.2g} units in the last place "
        f"of {dtypes.of(got.dtype).name} away (allowed 0.5: computed in float32 and rounded once; give rtol where more is right)",
        at,
    )


def place_as(x: np.ndarray, strides: tuple[int, ...], offset: int, on: device) -> Placed:
    """`x` on a device under given strides, `offset` elements from the start of a poisoned buffer, and as many from its end."""
    low, high = memory_extent(x.shape, strides) if x.size else (0, 0)  # a negative stride begins at the far end
    return lay_out(x, on, high - low + 1 + 2 * offset, strides, offset - low)


def _host(x: Any) -> Any:
    return to_host(x._array) if isinstance(x, Tensor) else x


def _call_by_names(function: Callable[..., Any], values: Mapping[str, Any], kernel: str, what: str) -> Any:
    """A function called with the values that its parameters name."""
    names = list(inspect.signature(function).parameters)
    if unknown := [n for n in names if n not in values]:
        raise ArgumentError(f"check_kernel {kernel}: {what} asks for {unknown[0]!r}; it can be given {', '.join(values)}")
    return function(**{n: values[n] for n in names})
