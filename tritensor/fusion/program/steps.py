"""Steps of a call: the elementary formulas and folds that its op's corner is made of, over axes, with the places that each reads and writes."""

from __future__ import annotations

import dis
import math
from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from tritensor.fusion.spaces import Steps, one_step
from tritensor.ground.strides import contiguous_strides, is_dense
from tritensor.kernels.parts import backends
from tritensor.kernels.parts.random_words.draws import signed
from tritensor.kernels.parts.tapes.capture import Captured
from tritensor.kernels.parts.tapes.tape import INDEX
from tritensor.ops.array import CudaArray
from tritensor.ops.replay.steps import Drawn, Folded, Pointwise, Spreading

KINDS = frozenset("biufV")  # of numpy types that a tape's values have; V is bfloat16
FLOATS = frozenset("fV")
# what stands for a call's seed and offset in captures; a draw takes them as the first two of its call's numbers
SEED, OFFSET = 0x5EED_0F_A_CA11, 0x0FF5E7_0F_A_CA11


class Read(NamedTuple):
    """An array that a step reads: argument `source` of the call, counted through tuples, or for ~source what the call has made before.

    strides: of each of the step's axes, in elements of dtype, 0 where the array repeats. first: bytes from the source's first element.
    Of type INDEX: the places of a draw's elements, which no array holds.
    """

    source: int
    first: int
    dtype: np.dtype
    strides: Steps


class Number(NamedTuple):
    """A number that a step takes as kernels get it: a constant `value`, or, of kind `kind`, the call's number `slot`, counted through tuples."""

    value: Any
    slot: int = -1
    kind: Any = None

    @property
    def dtype(self) -> np.dtype:
        return _number_dtype(self.value if self.kind is None else self.kind(0))


class Elementary(NamedTuple):
    """One formula over a space of axes of these sizes (none of 1), or one fold of every row, whose axes are `rows`.

    function: the formula, or a ReductionFunctions. reads, numbers: what it takes; picks count through both. scalars, more: of a fold, the picks of what
    `finish` and `map` take besides. made: for each result which memory of the call's, and its strides along the axes (0 along those of rows).
    """

    function: Any
    sizes: tuple[int, ...]
    rows: frozenset[int]
    reads: tuple[Read, ...]
    numbers: tuple[Number, ...]
    picks: tuple[int, ...]
    scalars: tuple[int, ...]
    more: tuple[int, ...]
    states: tuple[np.dtype, ...]
    dtypes: tuple[np.dtype, ...]
    made: tuple[tuple[int, Steps], ...]
    wide: bool

    @property
    def folds(self) -> bool:
        return bool(self.rows)


class Made(NamedTuple):
    """Memory that a call fills: an array that has all of it."""

    shape: tuple[int, ...]
    strides: Steps
    dtype: np.dtype


class Result(NamedTuple):
    """A result of a call: a view of an argument, or for ~source of what the call has made."""

    source: int
    first: int
    strides: Steps
    shape: tuple[int, ...]
    dtype: np.dtype


class Template(NamedTuple):
    """All calls of a corner with arrays like these: its steps, the memory that they fill, its results (None where there is none)."""

    steps: tuple[Elementary, ...]
    made: tuple[Made, ...]
    results: tuple[Result | None, ...]


class NotElementary(Exception):
    """A corner does what no elementary step says: its text says what."""


def is_taped(dtype: np.dtype) -> bool:
    """Whether a tape has values of a type. Floats of 8 bits are bytes to a kernel."""
    return dtype.kind in KINDS and dtype.itemsize <= 8 and (dtype.kind not in FLOATS or dtype.itemsize > 1)


LONG = 16384  # elements of a row beyond which rows must be many: a program walks each by itself
MANY_ROWS = 128


class Reader:
    """The reading of one capture."""

    def __init__(self, captured: Captured, numbers: tuple[Any, ...]) -> None:
        self.captured, self.slots = captured, numbers
        self.steps: list[Elementary] = []
        self.made: list[Made] = []
        self.sources: dict[int, tuple[int, int]] = {}  # by storage: source, and bytes up to its first element
        self.outs: dict[int, CudaArray] = {}  # by storage: the array that has filled it
        for k, x in enumerate(_arrays(captured.args)):
            self.sources[id(x.storage)] = k, x.offset * x.itemsize

    def template(self, strides: tuple[Steps | None, ...]) -> Template:
        """All of it. `strides`: of results."""
        found = self.captured.results
        results = found if type(found) is tuple else (found,)
        results = (*results, *(None,) * (len(strides) - len(results)))
        if len(results) > len(strides):
            raise NotElementary
        self.laid = {
            id(y.storage): s for y, s in zip(results, strides, strict=True) if y is not None and s is not None
        }  # strides of what is a result as it is
        self.shown = {id(y.storage): y for y in results if y is not None}
        own = [id(y.storage) for y in results if y is not None and id(y.storage) not in self.sources]
        if len(own) != len(set(own)):
            raise NotElementary
        for step in self.captured.steps:
            if type(step) is Pointwise:
                self.pointwise(step)
            elif type(step) is Folded:
                self.folded(step)
            elif type(step) is Drawn:
                self.drawn(step)
            else:
                self.spreading(step)  # type: ignore[arg-type]
        return Template(tuple(self.steps), tuple(self.made), tuple([None if y is None else self.result(y) for y in results]))

    # -- arrays
    def window(self, x: CudaArray) -> tuple[int, int]:
        """Where an array lies: the source, bytes from its first element."""
        found = self.sources.get(id(x.storage))
        if found is None:
            raise NotElementary
        source, start = found
        return source, x.offset * x.itemsize - start

    def strides_in(self, x: CudaArray) -> Steps:
        """An array's strides in its source: as the capture says, or, of what is laid as a result, as that lies."""
        out = self.outs.get(id(x.storage))
        if out is None or out.strides == (laid := self.made[~self.sources[id(x.storage)][0]].strides):
            return x.strides
        if x.shape == out.shape and x.strides == out.strides and x.offset == out.offset:
            return laid
        raise NotElementary

    def result(self, y: CudaArray) -> Result:
        source, first = self.window(y)
        return Result(source, first, self.strides_in(y), y.shape, y.dtype)

    def read(self, x: CudaArray, shape: tuple[int, ...], axes: Sequence[int]) -> Read:
        """An array that broadcasts to a shape, as a step over its axes reads it."""
        if not is_taped(x.dtype):
            raise NotElementary
        source, first = self.window(x)
        lead = len(shape) - len(x.shape)
        own = self.strides_in(x)
        return Read(source, first, x.dtype, tuple([0 if d < lead or x.shape[d - lead] == 1 else own[d - lead] for d in axes]))

    def new(self, y: CudaArray, dims: Sequence[int | None]) -> tuple[int, Steps]:
        """Memory that a step fills with y: its number, its strides along the step's axes, whose dims in y are `dims`."""
        if (
            not is_taped(y.dtype)
            or id(y.storage) in self.sources
            or y.storage.nbytes != y.size * y.itemsize
            or not is_dense(y.shape, y.strides)
            or y.offset
        ):
            raise NotElementary  # a part of it, or memory that is there
        shown = self.shown.get(id(y.storage))
        strides = y.strides
        if shown is not None and shown.shape == y.shape and shown.strides == y.strides:
            strides = self.laid.get(id(y.storage), strides)
        self.outs[id(y.storage)] = y
        self.sources[id(y.storage)] = ~len(self.made), 0
        self.made.append(Made(y.shape, strides, y.dtype))
        return len(self.made) - 1, tuple([0 if d is None else strides[d] for d in dims])

    def number(self, value: Any) -> Number:
        for k, own in enumerate(self.slots):
            if type(value) is not bool and _as_kind(type(value), own) == value:
                return Number(None, k, type(value))
        _number_dtype(value)
        return Number(value)

    # -- steps
    def pointwise(self, step: Pointwise) -> None:
        shape = step.outs[0].shape
        axes = axes_of(shape)
        given = [self.read(x, shape, axes) if isinstance(x, CudaArray) else self.number(x) for x in step.operands]
        for formula, picks, out in zip(step.formulas, step.picks, step.outs, strict=True):
            self.formula(formula, [given[k] for k in picks], out, shape, axes, step.wide)

    def formula(self, formula: Any, given: Sequence[Any], out: CudaArray, shape: tuple[int, ...], axes: list[int], wide: bool) -> None:
        """A formula's step."""
        reads, numbers, picks = _sorted_out(given)
        if out.shape != shape:
            raise NotElementary
        sizes = tuple([shape[d] for d in axes])
        made = self.new(out, axes)
        self.steps.append(Elementary(formula, sizes, frozenset(), reads, numbers, picks, (), (), (), (out.dtype,), (made,), wide))

    def folded(self, step: Folded) -> None:
        shape = step.xs[0].shape
        axes = axes_of(shape)
        rows = frozenset([k for k, d in enumerate(axes) if d in step.dims])
        if step.ordered or not rows:
            raise NotElementary("it asks for places in a row" if rows else "its rows have one element")
        given = [self.read(x, shape, axes) for x in step.xs]
        reads, numbers, picks = _sorted_out([*given, *map(self.number, step.scalars), *map(self.number, step.numbers)])
        n, s = len(step.xs), len(step.scalars)
        made = []
        for y in step.ys:
            if y.shape == tuple([1 if d in step.dims else m for d, m in enumerate(shape)]):
                place = {d: d for d in range(len(shape))}
            elif y.shape == tuple([m for d, m in enumerate(shape) if d not in step.dims]):
                place = {d: k for k, d in enumerate([d for d in range(len(shape)) if d not in step.dims])}
            else:
                raise NotElementary
            made.append(self.new(y, [None if d in step.dims else place[d] for d in axes]))
        sizes = tuple([shape[d] for d in axes])
        refuse_rows(sizes, rows, [r.strides for r in reads])
        self.steps.append(
            Elementary(
                step.functions, sizes, rows, reads, numbers, picks[:n], picks[n : n + s], picks[n + s :], step.states, tuple([y.dtype for y in step.ys]),
                tuple(made), False,
            )
        )  # fmt: skip

    def drawn(self, step: Drawn) -> None:
        if (step.seed, step.offset) != (SEED, OFFSET):
            raise NotElementary("it draws from elsewhere than its seed and offset say")
        shape = step.out.shape
        axes = axes_of(shape)
        sizes, strides = tuple([shape[d] for d in axes]), contiguous_strides(shape)
        read = Read(0, 0, INDEX, tuple([strides[d] for d in axes]))
        numbers = (Number(None, 0, signed), Number(None, 1, signed))
        made = self.new(step.out, axes)
        self.steps.append(
            Elementary(step.formula, sizes, frozenset(), (read,), numbers, (0, 1, 2), (), (), (), (step.out.dtype,), (made,), False)
        )

    def spreading(self, step: Spreading) -> None:
        """A formula over the tile, where it asks for no place in the row."""
        (out,) = step.ys if len(step.ys) == 1 else (None,)
        if out is None or step.ordered or not _ignores(step.formula, len(step.xs)):
            raise NotElementary
        if out.dtype.kind not in FLOATS or any([x.dtype.kind not in "iufV" for x in step.xs]):
            raise NotElementary
        wide = any([x.dtype == np.float64 for x in step.xs])
        shape = out.shape
        axes = axes_of(shape)
        xs = [self.read(x, shape, axes) for x in step.xs]
        # a kernel's number of 8 bytes is one of 4 beside values of 4
        scalars = [self.number(float(s) if not wide and type(s) is np.float64 else s) for s in step.scalars]
        self.formula(step.formula, [*xs, xs[0], *scalars], out, shape, axes, wide)


def fits(rows: int, n: int) -> bool:
    """Whether one program may take a row of n elements."""
    return n <= LONG or rows >= MANY_ROWS


def refuse_rows(sizes: tuple[int, ...], rows: frozenset[int], reads: Sequence[Steps]) -> None:
    """Refuse to fold rows as they lie: `reads` are the strides of what is folded."""
    n = math.prod([sizes[k] for k in rows])
    if not fits(math.prod(sizes) // n, n):
        raise NotElementary("it needs the whole sum first")
    steps = [s for s in reads[0] if s > 0]
    if steps and not any([reads[0][k] == min(steps) for k in rows]):
        raise NotElementary("it folds leading axes")
    for axes in ([k for k in range(len(sizes)) if k in rows], [k for k in range(len(sizes)) if k not in rows]):
        if not all([one_step([sizes[k] for k in axes], [s[k] for k in axes]) for s in reads]):
            raise NotElementary("its rows lie in several pieces")


def _arrays(args: Any) -> list[CudaArray]:
    """The arrays among arguments, those of tuples too."""
    found: list[CudaArray] = []
    for a in args:
        if isinstance(a, CudaArray):
            found.append(a)
        elif type(a) is tuple:
            found += _arrays(a)
    return found


def axes_of(shape: tuple[int, ...]) -> list[int]:
    """The dims that have more than one element; an array without elements has no steps."""
    if 0 in shape:
        raise NotElementary
    return [d for d, n in enumerate(shape) if n != 1]


def _sorted_out(given: Sequence[Any]) -> tuple[tuple[Read, ...], tuple[Number, ...], tuple[int, ...]]:
    """Arguments as reads, numbers, and the place of each among these."""
    reads = tuple(dict.fromkeys([x for x in given if type(x) is Read]))
    numbers = [x for x in given if type(x) is Number]
    at, picks = 0, []
    for x in given:
        if type(x) is Read:
            picks.append(reads.index(x))
        else:
            picks.append(len(reads) + at)
            at += 1
    return reads, tuple(numbers), tuple(picks)


def _as_kind(kind: type, number: Any) -> Any:
    """A number as a kernel gets it, of a kind (see `scalar` in parts/elementwise.py)."""
    return np.int8(bool(number)) if kind is np.int8 and type(number) is bool else kind(number)


def _number_dtype(value: Any) -> np.dtype:
    """The type of a number that a kernel gets."""
    if type(value) is float:
        return np.dtype(np.float32)
    if isinstance(value, np.generic) and value.dtype.kind in "iufb":
        return value.dtype
    raise NotElementary


@cache
def _ignores(formula: Any, place: int) -> bool:
    """Whether a formula leaves an argument alone."""
    code = backends.body(formula).__code__
    name = code.co_varnames[place]
    return all([i.argval != name for i in dis.get_instructions(code) if i.opname.startswith(("LOAD_FAST", "LOAD_DEREF", "LOAD_CLOSURE"))])
