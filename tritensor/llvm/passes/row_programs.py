"""Programs over rows in machine code: passes that sum, take the largest or write, with numbers of the row computed between them.

A row is read once and is in the cache for the passes that follow: what takes numpy ten passes over memory, a normalisation say, takes one."""

from __future__ import annotations

import ctypes
import functools
import itertools
import math
import operator
import struct
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from tritensor.llvm import compiler, threads, workers
from tritensor.llvm.loops import SHARED, STORED, to_compute_type, to_stored_type
from tritensor.llvm.objects.functions import ObjectFunction
from tritensor.llvm.objects.heads import heads
from tritensor.llvm.objects.rows import NEW, agree, rows_entry, types_of
from tritensor.llvm.simd import LLVM, Code, Vector, fold_lanes, select, splat_lines

_SIDE_BY_SIDE = 4  # vectors in one turn of a loop, which do not wait for each other
_WIDTH = {"f32": 16, "f64": 8}


class Operand(NamedTuple):
    """An array of a program: how many elements lie between one row and the next, and between parts of a row, whose elements lie one after the other.
    `one`: for each "row", or for each "part", it has one number alone."""

    array: np.ndarray
    row: int
    part: int = 0
    one: str = ""


class _Array(NamedTuple):
    """What a formula holds of an Operand: its place among the arguments and its type."""

    place: int
    dtype: np.dtype
    one: str


def _as_tuple(x: Any) -> tuple[Any, ...]:
    return x if isinstance(x, tuple) else (x,)


class Passes:
    """What a formula writes its program with. `count` is the number of a row's elements, in every way a number of the row: a Vector of one float64."""

    def __init__(self, kind: str) -> None:
        self.kind, self.width = kind, _WIDTH[kind]
        self.lines: list[str] = []
        self.declared: set[str] = set()
        self.scalars = Code(1, "s")
        self.count = Vector(self.scalars, "%count", "f64")
        self.label, self.passes = "row", 0
        self.known: dict[tuple[int, int], Vector] = {}
        self.written: set[int] = set()  # places of the arrays that are
        self.added: set[int] = set()  # and of those that sums over rows are added to, and nothing else

    # numbers of a row
    def read(self, a: _Array, number: int = 0) -> Vector:
        """The row's number of an operand that has one for each, or some, as float64."""
        key = a.place, number
        if key not in self.known:
            self.known[key] = self._load(a, self._address(a, number * a.dtype.itemsize))
        return self.known[key]

    def keep(self, a: _Array | None, x: Vector, number: int = 0) -> None:
        """Write the row's number to such an operand, where it is given."""
        if a is not None:
            self._store(a, self._address(a, number * a.dtype.itemsize), x)

    def pick(self, a: _Array, place: Vector) -> Vector:
        """The row's element at a place, which is one."""
        return self._load(a, self._element(a, place))

    def put(self, a: _Array, place: Vector, x: Vector) -> None:
        """Write the row's element at a place, which is one."""
        self._store(a, self._element(a, place), x)

    def _address(self, a: _Array, ahead: int = 0) -> str:
        start = self.scalars.emit("i64", f"getelementptr i8, ptr %p{a.place}, i64 %r{a.place}").name
        return self.scalars.emit("i64", f"getelementptr i8, ptr {start}, i64 {ahead}").name

    def _element(self, a: _Array, place: Vector) -> str:
        one = self.scalars.emit("i64", f"extractelement <1 x i64> {place.to('i64').name}, i64 0").name
        return self.scalars.emit("i64", f"getelementptr {LLVM[STORED[a.dtype]]}, ptr {self._address(a)}, i64 {one}").name

    def _load(self, a: _Array, at: str) -> Vector:
        x = self.scalars.emit(STORED[a.dtype], f"load {self.scalars.type(STORED[a.dtype])}, ptr {at}, align {a.dtype.itemsize}")
        return to_compute_type(x, a.dtype).to("f64")

    def _store(self, a: _Array, at: str, x: Vector) -> None:
        self.written.add(a.place)
        y = to_stored_type(x if a.dtype.itemsize == 8 else x.to("f32"), a.dtype)
        self.scalars.lines.append(f"  store {self.scalars.type(STORED[a.dtype])} {y.name}, ptr {at}, align {a.dtype.itemsize}")

    # passes over its elements
    def sum(self, formula: Callable[..., Any], *given: Any) -> Any:
        """The sums of what formula gives for every element, one or several: summed by four in the operands' type, those in float64."""
        found = self.walk(formula, *given, sums=None)
        return found if len(found) > 1 else found[0]

    def mean(self, x: _Array) -> Vector:
        """The mean of the elements, so near that a constant row has no deviations: float64 has no wider type to be summed in, and is counted twice, the
        second time from the first mean."""
        mean = self.sum(lambda x: x, x) / self.count
        if self.kind != "f64":
            return mean
        rest = self.sum(lambda x, m: x - m, x, mean) / self.count
        return mean + select(rest - rest == 0, rest, 0.0)  # of an infinite mean nothing is left

    def largest(self, x: _Array) -> Vector:
        """The largest element; NaN is not seen."""
        return self.walk(lambda x: x, x, sums=None, largest=True)[0]

    def each(self, formula: Callable[..., Any], *given: Any, into: Sequence[_Array] = (), onto: Sequence[_Array] = ()) -> None:
        """Write what formula gives for every element to the arrays `into`, then add the rest of it to the elements of `onto`."""
        self.walk(formula, *given, into=into, onto=onto)

    def walk(
        self, formula: Callable[..., Any], *given: Any, into: Sequence[_Array] = (), onto: Sequence[_Array] = (), sums: int | None = 0,
        largest: bool = False,
    ) -> tuple[Vector, ...]:  # fmt: skip
        """One pass: formula(*elements of given arrays, and given numbers of the row) gives `sums` numbers to be summed (None: all), then those to be
        written and added."""
        operands = [
            self._broadcast(self.read(x))
            if isinstance(x, _Array) and x.one == "row"
            else self._broadcast(x)
            if isinstance(x, Vector)
            else x
            for x in given
        ]
        before, k = self.label, f"k{self.passes}"
        self.passes += 1
        stores = (*into, *onto)
        self.written.update([a.place for a in into])
        self.added.update([a.place for a in onto])
        main, tail = _Body(self, k + "m"), _Body(self, k + "t")
        made = [main.run(formula, operands, f"%{k}i", i * self.width, stores, len(onto)) for i in range(_SIDE_BY_SIDE)]
        last = tail.run(formula, operands, f"%{k}t", 0, stores, len(onto), f"%{k}mask")
        many = len(made[0]) if sums is None else sums
        folds = [
            (main.accumulate([m[j] for m in made], f"%{k}m{j}", largest), tail.accumulate([last[j]], f"%{k}u{j}", largest))
            for j in range(many)
        ]
        kind = self.kind if largest else "f64"
        vector = main.code.type(kind)
        start = main.code.constant(-math.inf if largest else 0.0, kind).name
        used = {x.place: x for x in (*operands, *stores) if isinstance(x, _Array)}
        singles = [line for x in used.values() if x.one == "part" for line in self._load_part_number(x, k)]
        self._flush()
        self.lines += [f"  br label %{k}part", f"{k}part:", f"  %{k}q = phi i64 [0, %{before}], [%{k}nextq, %{k}partdone]"]
        self.lines += [f"  %{k}a{j} = phi {vector} [{start}, %{before}], [%{k}e{j}, %{k}partdone]" for j in range(many)]
        for i in used:
            self.lines += [
                f"  %{k}o{i} = mul i64 %{k}q, %part{i}", f"  %{k}s{i} = add i64 %r{i}, %{k}o{i}",
                f"  %{k}b{i} = getelementptr i8, ptr %p{i}, i64 %{k}s{i}",
            ]  # fmt: skip
        self.lines += singles
        self.lines += [
            f"  br i1 %some, label %{k}main, label %{k}rest", f"{k}main:", f"  %{k}i = phi i64 [0, %{k}part], [%{k}nexti, %{k}main]",
            *[f"  %{k}m{j} = phi {vector} [%{k}a{j}, %{k}part], [{folds[j][0].name}, %{k}main]" for j in range(many)],
            *main.code.lines,
            f"  %{k}nexti = add i64 %{k}i, {self.width * _SIDE_BY_SIDE}", f"  %{k}more = icmp slt i64 %{k}nexti, %whole",
            f"  br i1 %{k}more, label %{k}main, label %{k}rest", f"{k}rest:",
            *[f"  %{k}r{j} = phi {vector} [%{k}a{j}, %{k}part], [{folds[j][0].name}, %{k}main]" for j in range(many)],
            f"  br i1 %left, label %{k}tail, label %{k}partdone", f"{k}tail:",
            f"  %{k}t = phi i64 [%whole, %{k}rest], [%{k}nextt, %{k}tail]",
            *[f"  %{k}u{j} = phi {vector} [%{k}r{j}, %{k}rest], [{folds[j][1].name}, %{k}tail]" for j in range(many)],
            *self._mask(k), *tail.code.lines,
            f"  %{k}nextt = add i64 %{k}t, {self.width}", f"  %{k}moret = icmp slt i64 %{k}nextt, %n",
            f"  br i1 %{k}moret, label %{k}tail, label %{k}partdone", f"{k}partdone:",
            *[f"  %{k}e{j} = phi {vector} [%{k}r{j}, %{k}rest], [{folds[j][1].name}, %{k}tail]" for j in range(many)],
            f"  %{k}nextq = add i64 %{k}q, 1", f"  %{k}moreq = icmp slt i64 %{k}nextq, %parts",
            f"  br i1 %{k}moreq, label %{k}part, label %{k}done", f"{k}done:",
        ]  # fmt: skip
        self.declared |= main.code.declared | tail.code.declared
        self.label = f"{k}done"
        return tuple([self._reduce_lanes(f"%{k}e{j}", kind, largest) for j in range(many)])

    def _load_part_number(self, a: _Array, k: str) -> list[str]:
        """The part's number of an operand, in every lane, under a name that its place tells."""
        one, stored = Code(1, f"{k}n{a.place}v"), STORED[a.dtype]
        x = one.emit(stored, f"load {one.type(stored)}, ptr %{k}b{a.place}, align {a.dtype.itemsize}")
        x = to_compute_type(x, a.dtype).to(self.kind)
        return [*one.lines, f"  %{k}n{a.place} = shufflevector {one.type(self.kind)} {x.name}, {one.type(self.kind)} poison, "
                f"<{self.width} x i32> zeroinitializer"]  # fmt: skip

    def _mask(self, k: str) -> list[str]:
        """Which lanes of the rest of a row are inside."""
        whole = f"<{self.width} x i32>"
        order = ", ".join(f"i32 {i}" for i in range(self.width))
        return [
            f"  %{k}room = sub i64 %n, %{k}t", f"  %{k}room32 = trunc i64 %{k}room to i32",
            *splat_lines(f"{k}rooms", f"%{k}room32", "i32", self.width),
            f"  %{k}mask = icmp slt {whole} <{order}>, %{k}rooms",
        ]  # fmt: skip

    def _broadcast(self, x: Vector) -> Vector:
        """A number of the row in every lane, in the type of its elements."""
        x = x.to(self.kind)
        one = self.scalars.type(self.kind)
        text = f"shufflevector {one} {x.name}, {one} poison, <{self.width} x i32> zeroinitializer"
        return self.scalars.emit(self.kind, text)

    def _reduce_lanes(self, name: str, kind: str, largest: bool) -> Vector:
        """The sum, or the largest, of all lanes of a vector, as a number of the row."""
        code = Code(self.width, f"f{self.passes}{name[1:]}")
        vector = code.type(kind)
        y = fold_lanes(Vector(code, name, kind), (lambda a, b: select(b > a, b, a)) if largest else operator.add)
        self.lines += code.lines
        return self.scalars.emit(kind, f"shufflevector {vector} {y.name}, {vector} poison, <1 x i32> zeroinitializer").to("f64")

    def _flush(self) -> None:
        self.lines += self.scalars.lines
        self.scalars.lines = []


class _Body:
    """The code of one turn of a loop: of whole vectors, or of one whose lanes beyond the row are masked."""

    def __init__(self, passes: Passes, prefix: str) -> None:
        self.passes, self.code, self.prefix, self.mask = passes, Code(passes.width, prefix + "v"), prefix, ""
        self.addresses = 0

    def run(
        self, formula: Any, operands: list[Any], at: str, ahead: int, stores: Sequence[_Array], added: int, mask: str = ""
    ) -> tuple[Vector, ...]:
        """Load, compute and store one vector; the results that are not stored."""
        self.mask = mask
        code, kind = self.code, self.passes.kind
        values = []
        for x in operands:
            if isinstance(x, _Array) and x.one:
                values.append(Vector(code, f"%{self.prefix[:-1]}n{x.place}", kind))
            elif isinstance(x, _Array):
                values.append(self.load(x, at, ahead).to(kind))
            else:
                values.append(Vector(code, x.name, x.kind))
        made = _as_tuple(formula(*values))
        summed, written = made[: len(made) - len(stores)], made[len(made) - len(stores) :]
        for i, (a, y) in enumerate(zip(stores, written, strict=True)):
            if i >= len(stores) - added:
                before = self.load(a, at, ahead)
                y = before + y.to(before.kind)
            self.store(a, y, at, ahead)
        return summed

    def _address(self, a: _Array, at: str, ahead: int) -> str:
        self.addresses += 1
        name, k = f"%{self.prefix}p{self.addresses}", self.prefix[:-1]
        self.code.lines.append(f"  {name}i = getelementptr {LLVM[STORED[a.dtype]]}, ptr %{k}b{a.place}, i64 {at}")
        self.code.lines.append(f"  {name} = getelementptr i8, ptr {name}i, i64 {ahead * a.dtype.itemsize}")
        return name

    def load(self, a: _Array, at: str, ahead: int) -> Vector:
        stored, code, size = STORED[a.dtype], self.code, a.dtype.itemsize
        pointer, vector = self._address(a, at, ahead), code.type(stored)
        if not self.mask:
            return to_compute_type(code.emit(stored, f"load {vector}, ptr {pointer}, align {size}"), a.dtype)
        function = f"@llvm.masked.load.v{code.width}{stored}.p0"
        truths = code.type("b1")
        code.declared.add(f"declare {vector} {function}(ptr, i32, {truths}, {vector})")
        text = f"call {vector} {function}(ptr {pointer}, i32 {size}, {truths} {self.mask}, {vector} zeroinitializer)"
        return to_compute_type(code.emit(stored, text), a.dtype)

    def store(self, a: _Array, y: Vector, at: str, ahead: int) -> None:
        stored, code, size = STORED[a.dtype], self.code, a.dtype.itemsize
        y, pointer, vector = to_stored_type(y, a.dtype), self._address(a, at, ahead), code.type(stored)
        if not self.mask:
            code.lines.append(f"  store {vector} {y.name}, ptr {pointer}, align {size}")
            return
        function, truths = f"@llvm.masked.store.v{code.width}{stored}.p0", code.type("b1")
        code.declared.add(f"declare void {function}({vector}, ptr, i32, {truths})")
        code.lines.append(f"  call void {function}({vector} {y.name}, ptr {pointer}, i32 {size}, {truths} {self.mask})")

    def accumulate(self, vectors: list[Vector], carry: str, largest: bool) -> Vector:
        """The running total %carry with some vectors more; of a masked one with those lanes that count."""
        code = self.code
        if self.mask:
            nothing = code.constant(-math.inf if largest else 0.0, vectors[0].kind)
            vectors = [select(Vector(code, self.mask, "b1"), x, nothing) for x in vectors]
        while len(vectors) > 1:
            pairs = zip(vectors[::2], vectors[1::2], strict=True)
            vectors = [select(b > a, b, a) if largest else a + b for a, b in pairs]
        x = vectors[0]
        if largest:
            y = Vector(code, carry, x.kind)
            return select(x > y, x, y)
        return Vector(code, carry, "f64") + x.to("f64")


def _text(formula: Callable[..., Any], types: tuple[tuple[np.dtype, str] | None, ...], numbers: int) -> tuple[str, set[int], set[int]]:
    """The module, which arrays it writes and which it adds to, of a program over arrays of these types (None: not given). A table tells rows, parts, elements
    of a part, each array's address and two strides in bytes, then the numbers. Elements are computed in the first array's type, 16-bit floats in float32."""
    first = next(t[0] for t in types if t is not None)
    kind = "f64" if first.itemsize == 8 else "f32"
    passes = Passes(kind)
    arrays: list[_Array | None] = []
    for t in types:
        arrays.append(None if t is None else _Array(sum(a is not None for a in arrays), *t))
    known = [a for a in arrays if a is not None]
    formula(passes, *arrays, *[Vector(passes.scalars, f"%number{i}", "f64") for i in range(numbers)])
    passes._flush()
    table = [("i64", "%rows"), ("i64", "%parts"), ("i64", "%n")]
    for a in known:
        table += [("ptr", f"%p{a.place}"), ("i64", f"%step{a.place}"), ("i64", f"%part{a.place}")]
    table += [("<1 x double>", f"%number{i}") for i in range(numbers)]
    chunk = passes.width * _SIDE_BY_SIDE
    module = "\n".join([
        *sorted(passes.declared | passes.scalars.declared),
        "define void @run(ptr %table) {",
        "entry:",
        *[f"  %t{i} = getelementptr i64, ptr %table, i64 {i}\n  {name} = load {kind}, ptr %t{i}, align 8" for i, (kind, name) in enumerate(table)],
        f"  %whole = and i64 %n, {-chunk}",
        "  %some = icmp sgt i64 %whole, 0",
        "  %left = icmp slt i64 %whole, %n",
        "  %elements = mul i64 %parts, %n",
        "  %counted = sitofp i64 %elements to double",
        "  %count = insertelement <1 x double> poison, double %counted, i64 0",
        "  br label %row",
        "row:",
        "  %r = phi i64 [0, %entry], [%nextrow, %rowend]",
        *[f"  %r{a.place} = mul i64 %r, %step{a.place}" for a in known],
        *passes.lines,
        "  br label %rowend",
        "rowend:",
        "  %nextrow = add i64 %r, 1",
        "  %morerows = icmp slt i64 %nextrow, %rows",
        "  br i1 %morerows, label %row, label %end",
        "end:",
        "  ret void",
        "}",
        "",
    ])  # fmt: skip
    return module, passes.written, passes.added


class _Compiled(NamedTuple):
    """A program's machine function, which of its arrays it writes, which it adds to, and the function of objects."""

    function: Any
    address: int
    written: set[int]
    added: set[int]
    call: Any


class RowProgram:
    """A formula over rows, compiled when it is first needed, once for each combination of types: formula(passes, *arrays, *numbers)."""

    def __init__(self, formula: Any, roles: Sequence[str] = (), axes: bool = False, entry: Callable[..., str] = rows_entry) -> None:
        """`roles`, `axes` and `entry`: what operands are as arguments of a function of objects (see objects/rows.py); without them it has none."""
        self.formula, self.roles, self.axes, self.entry = formula, tuple(roles), axes, entry
        self._function = functools.cache(self._compile)

    def as_function(self, name: str, plain: Callable[..., Any], new: Sequence[bool] = ()) -> ObjectFunction:
        """The program as a function of its operands that are not new, None for those that are not there, its numbers and, if `axes`, how many dimensions make
        up a row. It makes those of the new operands for which `new` is True (none given: all), in the first one's type, numbers of rows in its accumulator's;
        `plain` is called where machine code does not take the arguments."""
        wanted = iter(new)
        roles = [role if role not in NEW or next(wanted, True) else "" for role in self.roles]
        places = [k for k, role in enumerate(self.roles) if role not in NEW]
        numbers = self.formula.__code__.co_argcount - 1 - len(roles)

        def make(given: tuple[Any, ...]) -> tuple[Any, Sequence[Any]] | None:
            dtypes, told = [None if t is type(None) else t for t in given[: len(places)]], given[len(places) :]
            if len(told) != numbers + self.axes or not all([t in (int, float) for t in told]):
                return None
            kinds = types_of(roles, dict(zip(places, dtypes, strict=True)))
            found = None if kinds is None else self._function(tuple([t and t[:2] for t in kinds]), numbers)
            if kinds is None or found is None or found.call is None:
                return None
            results = [t.result.num for role, t in zip(roles, kinds, strict=True) if role in NEW and t is not None]
            return found.call, (*[t for t in dtypes if t is not None], *results)

        return ObjectFunction(name, (), plain, make)

    def _compile(self, types: tuple[tuple[np.dtype, str] | None, ...], numbers: int) -> _Compiled | None:
        if compiler.refusal():
            return None
        module, written, added = _text(self.formula, types, numbers)
        at = heads() if self.roles and agree(self.roles, types) else None
        if at is not None:
            module += self.entry(at, self.roles, types, numbers, self.axes, SHARED)
        library = compiler.build_library(module)
        function = library.run
        function.restype, function.argtypes = None, [ctypes.c_char_p]
        return _Compiled(function, workers.address(function), written, added, None if at is None else library.call)

    def __call__(self, shape: tuple[int, int, int], operands: Sequence[Operand | None], numbers: Sequence[float] = ()) -> bool:
        """Run it over (rows, parts of a row, elements of a part), none of which may be 0; False where there is no machine code."""
        types = tuple([None if o is None else (o.array.dtype, o.one) for o in operands])
        found = self._function(types, len(numbers))
        if found is None:
            return False
        arrays: list[tuple[int, int, int]] = []
        sums: dict[int, np.ndarray] = {}  # over the rows: each thread has some of its own
        apart = math.prod(shape) >= SHARED and shape[0] > 1 and threads.free() > 1
        for o in operands:
            if o is not None:
                size, place = o.array.itemsize, len(arrays)
                if o.row == 0 and (place in found.written or place in found.added):
                    # what is written anew for every row one thread has to; 16-bit sums would be rounded once more
                    apart = apart and place not in found.written and size > 2 and o.array.flags.c_contiguous
                    sums[place] = o.array
                arrays.append((o.array.__array_interface__["data"][0], o.row * size, o.part * size))
        packed = _table(len(arrays), len(numbers))
        if not (apart and _by_threads(found.address, shape, arrays, sums, numbers, packed)):
            found.function(packed.pack(*shape, *itertools.chain(*arrays), *numbers))
        return True


@functools.cache
def _table(arrays: int, numbers: int) -> struct.Struct:
    """The table that a program reads."""
    return struct.Struct(f"{3 + 3 * arrays}q{numbers}d")


def _by_threads(
    function: int, shape: tuple[int, int, int], arrays: list[tuple[int, int, int]], sums: dict[int, np.ndarray], numbers: Sequence[float],
    packed: struct.Struct,
) -> bool:  # fmt: skip
    """A program, some of the rows for each thread; False where others are at work."""
    (rows, parts, n), count, each = shape, min(threads.count(), shape[0]), packed.size
    room = bytearray(count * each)
    at = ctypes.addressof(ctypes.c_char.from_buffer(room))
    others = [{k: np.zeros_like(x) for k, x in sums.items()} for _ in range(count - 1)]
    low, mine = 0, arrays
    for i in range(count):
        high = rows * (i + 1) // count
        if i:
            mine = [(a + low * row, row, part) for a, row, part in arrays]
            for k, x in others[i - 1].items():
                mine[k] = (x.__array_interface__["data"][0], 0, arrays[k][2])
        packed.pack_into(room, i * each, high - low, parts, n, *itertools.chain(*mine), *numbers)
        low = high
    if threads.call_parts(function, [(at + i * each,) for i in range(count)]) is None:
        return False
    for own in others:
        for k, x in own.items():
            np.add(sums[k], x, out=sums[k])
    return True
