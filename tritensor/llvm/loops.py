"""Elementwise loops in machine code: a formula of vectors over whole arrays, in one pass, types converted at load and store."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

from tritensor.llvm import compiler, threads, workers
from tritensor.llvm.objects.elementwise import elementwise_entry
from tritensor.llvm.objects.functions import ObjectFunction
from tritensor.llvm.objects.heads import heads
from tritensor.llvm.simd import LLVM, Code, NotVectorizableError, Vector, select, splat_lines

SHARED = 1 << 15  # elements from which threads share a loop
_PIECE = 1024  # elements of a part come in whole pieces
MANY = 2048  # elements from which a call pays for its way through ctypes
_BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
STORED = {
    np.dtype(np.float16): "f16", _BFLOAT16: "i16", np.dtype(np.float32): "f32", np.dtype(np.float64): "f64", np.dtype(np.int32): "i32",
    np.dtype(np.int64): "i64", np.dtype(np.bool_): "i8",
}  # fmt: skip


class Loop:
    """A formula of as many vectors as inputs, compiled when it is first needed, once for each combination of types.

    Floats of 16 bits arrive as float32 and are rounded once, as in the kernels; `formula` is called once for each combination to leave its code behind.
    """

    def __init__(self, formula: Callable[..., Any], names: tuple[str, ...] = ()) -> None:
        """`names` are those of its last inputs, numbers that its functions of objects take by name."""
        self.formula, self.names = formula, names
        self.compiled: dict[tuple[Any, ...], Any] = {}

    def as_function(
        self, name: str, plain: Callable[..., Any], types: Collection[np.dtype], result: np.dtype | None = None
    ) -> ObjectFunction:
        """formula(*inputs), of which the first array's type is one of `types`, as a new array of a type (None: that one); `plain` makes it where machine
        code does not take the inputs: see objects/elementwise.py."""

        def make(given: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...]] | None:
            dtypes = [t for t in given if isinstance(t, np.dtype)]
            if (
                not dtypes
                or dtypes[0] not in types
                or not all([t in STORED if isinstance(t, np.dtype) else t in (int, float) for t in given])
            ):
                return None
            made = result or dtypes[0]
            found = self._of((made, *[t if isinstance(t, np.dtype) else None for t in given]), 1)
            return None if found.call is None else (found.call, (*self.names, made.num, *dtypes))

        return ObjectFunction(name, self.names, plain, make)

    def __call__(self, inputs: Sequence[Any], out: np.ndarray | Sequence[np.ndarray]) -> bool:
        """Write formula(*inputs) to out, which may be several arrays where the formula gives as many results; False where numpy has to compute it,
        and then nothing is written that it needs: of other types or strides than these loops take, of hard numbers.

        An input is an array of out's shape, all contiguous in the same order, or a number.
        """
        outs = (out,) if type(out) is np.ndarray else tuple(out)
        first = outs[0]
        order = "C" if first.flags.c_contiguous else "F"
        shape, types, held, wide = first.shape, [], [], False
        for x in (*outs, *inputs):
            if type(x) is np.ndarray and x.size != 1:
                if x.dtype not in STORED or x.shape != shape or not is_contiguous(x, order):
                    return False
                types.append(x.dtype)
                wide = wide or x.dtype.char == "d"
            elif isinstance(x, np.ndarray | np.generic | float | int):
                types.append(None)
            else:
                return False
            held.append(x)
        found = self._of(tuple(types), len(outs))
        pointers = []
        for i, x in enumerate(held):
            if types[i] is None:
                x = held[i] = _to_array(x, wide)  # kept alive until the call
            pointers.append(x.__array_interface__["data"][0])
        # after the types: a loop that never gives up may write over what it reads, element on element
        if not self._outs_are_apart(outs, held[len(outs) :], pointers, found.gives_up):
            return False
        if first.size >= SHARED and found.address:
            steps = [0 if t is None else t.itemsize for t in types]
            turns = -(-first.size // _PIECE)  # so that parts begin at whole lines of the cache

            def part(low: int, high: int) -> list[int]:
                start = low * _PIECE
                return [min(high * _PIECE, first.size) - start, *[p + start * s for p, s in zip(pointers, steps, strict=True)]]

            answer = threads.call(found.address, turns, part)
            if answer is not None:
                return not answer
        return not found.function(first.size, *pointers)

    @staticmethod
    def _outs_are_apart(outs: tuple[np.ndarray, ...], inputs: list[np.ndarray], pointers: list[int], gives_up: bool) -> bool:
        """Whether no input lies where a result is written but element on element; where the function may give up, none at all."""
        for i, y in enumerate(outs):
            start, end = pointers[i], pointers[i] + y.nbytes
            for x, at in zip(inputs, pointers[len(outs) :], strict=True):
                if at < end and start < at + x.nbytes and (gives_up or at != start or x.itemsize != y.itemsize):
                    return False
        return True

    def _of(self, types: tuple[np.dtype | None, ...], results: int) -> _Compiled:
        """The machine functions of these types, those of the results first."""
        found = self.compiled.get(types)
        if found is None:
            wide = any([t is not None and t.char == "d" for t in types])
            found = self.compiled[types] = self._compile(types, results, "f64" if wide else "f32")
        return found

    def _compile(self, types: tuple[np.dtype | None, ...], results: int, kind: str) -> _Compiled:
        """Those that were never asked for; one that gives up at once where there is none."""
        if compiler.refusal():
            return _NOTHING
        if kind == "f64" and any(t is not None and t.itemsize == 2 for t in types[:results]):
            return _NOTHING  # would be rounded twice
        try:
            module, gives_up = loop_text(self.formula, types, results, kind)
        # made of more than `maths`: a kernel's own language, a branch, a type's attributes
        except (NotVectorizableError, AttributeError, TypeError, ValueError):
            return _NOTHING
        result, *given = types
        at = heads() if results == 1 and any(given) else None
        if at is not None and result is not None:
            module += elementwise_entry(at, given, result, kind, len(self.names), SHARED)
        library = compiler.build_library(module)
        made = library.run
        made.argtypes = [ctypes.c_int64] + [ctypes.c_void_p] * len(types)
        made.restype = ctypes.c_int64
        return _Compiled(made, gives_up, workers.address(made), None if at is None else library.call)


class _Compiled(NamedTuple):
    """A machine function, which answers whether it gave up, whether it ever may, its address, and the same as a function of objects."""

    function: Callable[..., int]
    gives_up: bool
    address: int
    call: Any


_NOTHING = _Compiled(lambda *_: 1, True, 0, None)


def _to_array(x: Any, wide: bool) -> np.ndarray:
    """A number as an array of one, in the type that the loop computes in."""
    return np.asarray(x).reshape(1).astype(np.float64 if wide else np.float32)


def is_contiguous(x: np.ndarray, order: str) -> bool:
    """Whether an array lies in one piece, in C's or Fortran's order."""
    return x.flags.c_contiguous if order == "C" else x.flags.f_contiguous


def takes_rows(x: np.ndarray, least: int = MANY) -> bool:
    """Whether loops over rows take an array: C-ordered, floating, of at least so many elements."""
    return x.size >= least and x.dtype.kind in "fV" and x.dtype in STORED and x.flags.c_contiguous


class _Module(NamedTuple):
    """What the text of a loop is made of: the types of the arrays in memory (the results first; None: a number), the kind of the numbers."""

    formula: Callable[..., Any]
    types: tuple[np.dtype | None, ...]
    results: int
    kind: str
    width: int

    def vector(self, i: int) -> str:
        t = self.types[i]
        return f"<{self.width} x {LLVM[self.kind if t is None else STORED[t]]}>"

    def arrays(self) -> list[int]:
        return [i for i, t in enumerate(self.types) if t is not None]

    def body(self, prefix: str) -> tuple[Code, list[str]]:
        """The formula's code on %<prefix>_in<i>, and the names of its results as they are in memory."""
        code = Code(self.width, prefix)
        given = []
        for i, t in enumerate(self.types[self.results :], self.results):
            name, stored = (f"%{prefix}_in{i}", STORED[t]) if t is not None else (f"%number{i}", self.kind)
            given.append(to_compute_type(Vector(code, name, stored), t))
        made = self.formula(*given)
        made = made if isinstance(made, tuple) else (made,)
        return code, [to_stored_type(y, t).name for y, t in zip(made, self.types[: self.results], strict=True) if t is not None]


def to_compute_type(x: Vector, dtype: np.dtype | None) -> Vector:
    """16-bit floats as float32, all else as it is."""
    if dtype == _BFLOAT16:
        return (x.zero_extend("i32") << 16).bits("f32")
    return x.to("f32") if x.kind == "f16" else x


def to_stored_type(y: Vector, dtype: np.dtype) -> Vector:
    """Rounded to the type in memory, to nearest, ties to even."""
    if dtype == np.bool_:
        return y.to("i8")
    if dtype.itemsize == 2 and y.kind == "f64":
        y = y.to("f32")  # as numpy's blocks and the kernels have it
    if dtype != _BFLOAT16:
        return y.to(STORED[dtype])
    bits = y.bits("i32")
    rounded = bits + (bits.unsigned_shift(16) & 1) + 0x7FFF
    kept = select(y != y, bits | 0x400000, rounded)  # NaN stays one
    return kept.unsigned_shift(16).to("i16")


def loop_text(
    formula: Callable[..., Any], types: tuple[np.dtype | None, ...], results: int, kind: str, thinner: int = 1
) -> tuple[str, bool]:
    """The module of a loop over arrays of these types, those of the results first: whole vectors, then the rest through room for one on the stack.
    And whether it may give up. `thinner` divides the lanes of one turn, for formulas that keep many values."""
    m = _Module(formula, types, results, kind, compiler.lanes() // (2 if kind == "f64" else 1) // thinner)
    main, made = m.body("v")
    hard = (main.constant(0, "b1") if main.hard is None else main.hard).name
    truths = f"<{m.width} x i1>"
    arrays, outs = m.arrays(), range(results)
    inputs = arrays[results:]
    size = {i: types[i].itemsize for i in arrays}  # type: ignore[union-attr]
    numbers = [i for i, t in enumerate(types) if t is None]
    parts = [
        *sorted(main.declared),
        "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)",
        f"define i64 @run(i64 %n, {', '.join(f'ptr %p{i}' for i in range(len(types)))}) {{",
        "entry:",
        *[f"  %room{i} = alloca {m.vector(i)}, align 64" for i in arrays],
        *[line for i in numbers for line in _broadcast_number(i, m)],
        f"  %whole = and i64 %n, {-m.width}",
        "  %some = icmp sgt i64 %whole, 0",
        "  br i1 %some, label %loop, label %tail",
        "loop:",
        "  %i = phi i64 [0, %entry], [%next, %loop]",
        f"  %before = phi {truths} [zeroinitializer, %entry], [%met, %loop]",
        *[f"  %o{i} = mul i64 %i, {size[i]}\n  %a{i} = getelementptr i8, ptr %p{i}, i64 %o{i}" for i in arrays],
        *[f"  %v_in{i} = load {m.vector(i)}, ptr %a{i}, align {size[i]}" for i in inputs],
        *main.lines,
        *[f"  store {m.vector(i)} {made[i]}, ptr %a{i}, align {size[i]}" for i in outs],
        f"  %met = or {truths} %before, {hard}",
        f"  %next = add i64 %i, {m.width}",
        "  %more = icmp slt i64 %next, %whole",
        "  br i1 %more, label %loop, label %tail",
        "tail:",
        f"  %all = phi {truths} [zeroinitializer, %entry], [%met, %loop]",
        "  %left = sub i64 %n, %whole",
        "  %none = icmp eq i64 %left, 0",
        "  br i1 %none, label %done, label %last",
        *_tail_text(m, *[[line.replace("%v", "%r") for line in lines] for lines in (main.lines, made, [hard])]),
        "done:",
        f"  %found = phi {truths} [%all, %tail], [%lastmet, %last]",
        f"  %bits = bitcast {truths} %found to i{m.width}",
        f"  %any = icmp ne i{m.width} %bits, 0",
        "  %answer = zext i1 %any to i64",
        "  ret i64 %answer",
        "}",
    ]
    return "\n".join(parts) + "\n", main.hard is not None


def _tail_text(m: _Module, lines: list[str], made: list[str], hard: list[str]) -> list[str]:
    """The elements behind the last whole vector, by way of room for one; `%lastmet`: whether a lane that is an element cannot be computed."""
    arrays, truths, copy = m.arrays(), f"<{m.width} x i1>", "call void @llvm.memcpy.p0.p0.i64(ptr"
    outs, inputs = range(m.results), arrays[m.results :]
    size = {i: m.types[i].itemsize for i in arrays}  # type: ignore[union-attr]
    return [
        "last:",
        *[
            f"  %d{i} = mul i64 %whole, {size[i]}\n  %b{i} = getelementptr i8, ptr %p{i}, i64 %d{i}\n  %s{i} = mul i64 %left, {size[i]}"
            for i in arrays
        ],
        *[f"  store {m.vector(i)} zeroinitializer, ptr %room{i}, align 64" for i in inputs],
        *[f"  {copy} %room{i}, ptr %b{i}, i64 %s{i}, i1 false)" for i in inputs],
        *[f"  %r_in{i} = load {m.vector(i)}, ptr %room{i}, align 64" for i in inputs],
        *lines,
        *[f"  store {m.vector(i)} {made[i]}, ptr %room{i}, align 64\n  {copy} %b{i}, ptr %room{i}, i64 %s{i}, i1 false)" for i in outs],
        *_inside_mask(m),
        f"  %lasthard = and {truths} %inside, {hard[0]}",
        f"  %lastmet = or {truths} %all, %lasthard",
        "  br label %done",
    ]


def _inside_mask(m: _Module) -> list[str]:
    """Which lanes of the last vector are elements: what lies behind them is 0, with which a formula may be unable to do anything."""
    places = f"<{m.width} x i64>"
    return [
        *splat_lines("lefts", "%left", "i64", m.width),
        f"  %inside = icmp slt {places} <{', '.join(f'i64 {k}' for k in range(m.width))}>, %lefts",
    ]


def _broadcast_number(i: int, m: _Module) -> list[str]:
    """A number in every lane."""
    element = LLVM[m.kind]
    return [f"  %n{i} = load {element}, ptr %p{i}", *splat_lines(f"number{i}", f"%n{i}", element, m.width)]


def rows_loop_text(
    step: int, start: Sequence[str], loop: Sequence[str], tail: Sequence[str], one: Sequence[str], end: Sequence[str] = ()
) -> str:
    """The module of a loop over `rows` rows of n elements: `loop` for each `step` elements from %i on, `tail` behind them, `one` for each element %j
    that is left, `start` and `end` at the ends of a row %r. Each part begins with the phi instructions that it needs."""
    return "\n".join([
        "define void @run(ptr %out, ptr %in, i64 %rows, i64 %n) {",
        "entry:",
        f"  %whole = and i64 %n, {-step}",
        "  br label %row",
        "row:",
        "  %r = phi i64 [0, %entry], [%nextrow, %rowdone]",
        "  %start = mul i64 %r, %n",
        *start,
        "  %some = icmp sgt i64 %whole, 0",
        "  br i1 %some, label %loop, label %tail",
        "loop:",
        "  %i = phi i64 [0, %row], [%next, %loop]",
        *loop,
        f"  %next = add i64 %i, {step}",
        "  %more = icmp slt i64 %next, %whole",
        "  br i1 %more, label %loop, label %tail",
        "tail:",
        *tail,
        "  %rest = icmp slt i64 %whole, %n",
        "  br i1 %rest, label %one, label %rowdone",
        "one:",
        "  %j = phi i64 [%whole, %tail], [%nextj, %one]",
        *one,
        "  %nextj = add i64 %j, 1",
        "  %morej = icmp slt i64 %nextj, %n",
        "  br i1 %morej, label %one, label %rowdone",
        "rowdone:",
        *end,
        "  %nextrow = add i64 %r, 1",
        "  %morerows = icmp slt i64 %nextrow, %rows",
        "  br i1 %morerows, label %row, label %done",
        "done:",
        "  ret void",
        "}",
        "",
    ])  # fmt: skip
