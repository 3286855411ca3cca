"""The machine code of a tape over a space of four axes: loops over rows, walks over a row that fold or write, numbers of a row between them.

Each value is computed where it belongs: numbers once, what is one per row or per part of a row once for it, the others for every element. A walk
computes anew what it needs of a row's elements, which are in the cache, or reads what a walk before it has kept of the row because it was dear. Sums and
moments are kept in float64.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tritensor.kernels.parts import backends
from tritensor.kernels.parts.cpu.simd_maths import on_vectors
from tritensor.kernels.parts.tapes.cpu import draws
from tritensor.kernels.parts.tapes.cpu.arrangement import FOURS, PART, ROW, TILE
from tritensor.kernels.parts.tapes.cpu.folds import FoldCode, State, as_states
from tritensor.kernels.parts.tapes.cpu.kept_values import cost, kept_values
from tritensor.kernels.parts.tapes.tape import INDEX, Fold, Step, Tape
from tritensor.llvm import simd_functions as native
from tritensor.llvm.loop_nest import LoopNest
from tritensor.llvm.loops import STORED, to_compute_type, to_stored_type
from tritensor.llvm.simd import LLVM, Code, NotVectorizableError, Vector, select, splat_lines

LANES = 16  # of a vector, whatever the type, so that sums add in one order
_FOLDED = 4  # vectors that a fold takes in one turn, which do not wait for each other
ONCE, A_ROW, A_PART, AN_ELEMENT = range(4)  # how often a value is computed
_PLACES = {ROW: A_ROW, PART: A_PART}
NUMBERS = {**{d: "f64" for d in STORED if d.kind in "fV"}, np.dtype(np.int32): "i64", np.dtype(np.int64): "i64", np.dtype(np.bool_): "i64"}


class MachineText(NamedTuple):
    """A module whose `run(table)` answers whether some value was too hard, whether it ever may answer so, and the bytes of the elements of each array
    that it keeps values of a row in, behind its other arrays."""

    module: str
    gives_up: bool
    kept: tuple[int, ...]


class _Scope:
    """Where values are computed: the code, those that are known in it, as they are computed with and as they are stored."""

    def __init__(self, often: int, code: Code, outer: _Scope | None, tag: str = "") -> None:
        self.often, self.code, self.outer, self.tag = often, code, outer, tag
        self.values: dict[int, Vector] = {}
        self.stored: dict[int, Vector] = {}
        self.spread: dict[tuple[int, int], Vector] = {}
        self.at, self.ahead, self.mask = "", 0, ""  # of elements: their number, those before them in the same turn, which of them there are

    def home(self, often: int) -> _Scope:
        """The scope of values that are computed so often."""
        scope = self
        while scope.often > often:
            assert scope.outer is not None
            scope = scope.outer
        return scope


class _Writer:
    def __init__(self, tape: Tape, kinds: tuple[str, ...], turn: int) -> None:
        self.tape, self.turn = tape, turn
        self.types = (*[tape.dtypes()[v] for v in tape.stores], *tape.inputs)  # of arrays, the results first
        self.kinds, self.results = kinds, len(tape.stores)
        self.dtypes = tape.dtypes()
        self.nest = LoopNest()
        self.declared: set[str] = set()
        self.gives_up = False
        self.once = _Scope(ONCE, Code(1, "e"), None)
        self.row = _Scope(A_ROW, Code(1, "s"), self.once)
        self.known_folds: dict[int, State] = {}
        self.drawn: dict[tuple[str, int], list[Vector] | None] = {}  # numbers for all vectors of a turn, by walk and value
        self._place_values()
        self.written: set[int] = set()  # kept values that walks before this one have written
        kept = self._kept()
        self.kept = {v: len(self.types) + k for k, v in enumerate(kept)}
        self.types += tuple([self.dtypes[v] for v in kept])
        self.kinds += (TILE,) * len(kept)

    def _place_values(self) -> None:
        """How often each value is computed, which walk it is known after, which step makes it."""
        tape = self.tape
        self.often = [_PLACES.get(k, AN_ELEMENT) for k in self.kinds[self.results :]] + [ONCE] * len(tape.numbers)
        self.after = [0] * len(self.often)
        self.maker: list[tuple[int, int]] = [(-1, 0)] * len(self.often)
        self.walks: list[list[int]] = []  # the folds of each walk
        for k, step in enumerate(tape.steps):
            if isinstance(step, Step):
                self.often.append(max([self.often[p] for p in step.picks], default=ONCE))
                self.after.append(max([self.after[p] for p in step.picks], default=0))
                self.maker.append((k, 0))
                continue
            walk = max([self.after[p] for p in (*step.picks, *step.numbers)], default=0)
            while len(self.walks) <= walk:
                self.walks.append([])
            self.walks[walk].append(k)
            known = max([walk + 1, *[self.after[p] for p in step.scalars]])
            for j in range(len(step.dtypes)):
                self.often.append(A_ROW)
                self.after.append(known)
                self.maker.append((k, j))
            if any(self.often[p] > A_ROW for p in step.scalars) or any(self.often[p] > A_ROW for p in step.numbers):
                raise NotVectorizableError("numbers of a fold that differ within a row")

    def _kept(self) -> list[int]:
        """The values that a walk keeps for later ones."""
        if not self.walks:
            return []
        steps = self.tape.steps
        element = [o == AN_ELEMENT and k >= 0 for o, (k, _) in zip(self.often, self.maker, strict=True)]
        costs = [0] * len(element)
        for v, (k, _) in enumerate(self.maker):
            step: Any = steps[k]
            if element[v]:
                costs[v] = cost(step, [_compute_kind(self.dtypes[p], step.wide) for p in step.picks])
        roots: list[Sequence[int]] = [[p for k in folds for p in steps[k].picks] for folds in self.walks]
        roots.append([v for v, kind in zip(self.tape.stores, self.kinds, strict=False) if kind == TILE])
        return kept_values(self.tape, element, roots, costs)

    # --- values
    def value(self, v: int, scope: _Scope) -> Vector:
        """A value in the type that is computed with: 16-bit floats as float32."""
        found = scope.values.get(v)
        if found is None:
            home = scope.home(self.often[v])
            found = self._make(v, scope) if home is scope else self._spread(v, home, scope)
            scope.values[v] = found
        return found

    def _spread(self, v: int, home: _Scope, scope: _Scope) -> Vector:
        """A value of an outer scope in every lane: spread there, outside of the loop."""
        x, width = self.value(v, home), scope.code.width
        if width == 1:
            return Vector(scope.code, x.name, x.kind)
        if (v, width) not in home.spread:
            one = home.code.type(x.kind)
            home.spread[v, width] = home.code.emit(x.kind, f"shufflevector {one} {x.name}, {one} poison, <{width} x i32> zeroinitializer")
        y = home.spread[v, width]
        return Vector(scope.code, y.name, y.kind)

    def _make(self, v: int, scope: _Scope) -> Vector:
        count = len(self.tape.inputs)
        if v < count and self.tape.inputs[v] == INDEX:
            start = f"%b{v + self.results}" if scope.often == A_ROW else f"%{scope.tag}c{v + self.results}"
            return draws.places(scope.code, start, scope.at, scope.ahead, scope.often == AN_ELEMENT)
        if v < count:
            return to_compute_type(self._load(v + self.results, scope), self.tape.inputs[v])
        if v < count + len(self.tape.numbers):
            return self._number(v - count)
        if v in self.written:
            scope.stored[v] = self._load(self.kept[v], scope)
            return to_compute_type(scope.stored[v], self.dtypes[v])
        k, place = self.maker[v]
        step = self.tape.steps[k]
        if isinstance(step, Fold):
            made = self._finished(k, step, scope)
            return made[place]
        args = [_widened(self.value(p, scope), step.wide) for p in step.picks]
        found = self._by_fours(v, step, args, scope)
        y = self._rounded(v, backends.translate(step.formula, on_vectors)(*args) if found is None else found, scope)
        if v in self.kept:
            self._write(self.kept[v], scope.stored[v], scope)
        return y

    def _by_fours(self, v: int, step: Step, args: Sequence[Vector], scope: _Scope) -> Vector | None:
        """A draw in a turn of four vectors that begins with a whole block: its part of what is computed for all of them; None of any other step."""
        if scope.mask or not any([p < len(self.tape.inputs) and self.kinds[p + self.results] == FOURS for p in step.picks]):
            return None
        if not scope.ahead:
            self.drawn[scope.tag, v] = draws.by_fours(step.formula.__name__, *args)
        return draws.part(self.drawn[scope.tag, v], scope.ahead // LANES, scope.code)

    def _rounded(self, v: int, made: Any, scope: _Scope) -> Vector:
        """What a step has made, rounded to its type in memory and widened again, as it is for one that reads it there."""
        dtype, code = self.dtypes[v], scope.code
        if not isinstance(made, Vector):
            made = code.constant(made, "i8" if dtype == np.bool_ else "f32" if dtype.itemsize == 2 else STORED[dtype])
        if dtype == np.bool_:
            y = made.to("i8") if made.kind == "b1" else (made != 0).to("i8")
        elif dtype == np.float16 and made.kind == "f64":
            y = _rounded_to_odd(made).to("f16")
        else:
            y = to_stored_type(made.to("f32") if dtype.itemsize == 2 and made.kind[0] != "f" else made, dtype)
        scope.stored[v] = y
        return to_compute_type(y, dtype)

    def _number(self, k: int) -> Vector:
        dtype, code = self.tape.numbers[k], self.once.code
        x = Vector(code, f"%number{k}", NUMBERS[dtype])
        return x.to("i8" if dtype == np.bool_ else "f32" if dtype.itemsize == 2 else STORED[dtype])

    def _finished(self, k: int, fold: Fold, scope: _Scope) -> list[Vector]:
        """What a fold gives for the row, once its walk is done."""
        code = FoldCode(fold.functions, fold.states)
        state = self.known_folds[k]
        found = code.finished(state, [self.value(p, scope) for p in fold.scalars])
        first = next(v for v, (maker, _) in enumerate(self.maker) if maker == k)
        for j, y in enumerate(found):
            scope.values[first + j] = self._rounded(first + j, y, scope)
        return [scope.values[first + j] for j in range(len(found))]

    # --- memory
    def _pointer(self, i: int, scope: _Scope) -> str:
        code = scope.code
        if scope.often == A_ROW:
            return f"%b{i}"
        if scope.often == A_PART:
            return f"%{scope.tag}c{i}"
        at = code.emit("i64", f"getelementptr {LLVM[STORED[self.types[i]]]}, ptr %{scope.tag}c{i}, i64 {scope.at}").name
        ahead = scope.ahead * self.types[i].itemsize
        return at if not ahead else code.emit("i64", f"getelementptr i8, ptr {at}, i64 {ahead}").name

    def _load(self, i: int, scope: _Scope) -> Vector:
        code, kind, size = scope.code, STORED[self.types[i]], self.types[i].itemsize
        at, vector = self._pointer(i, scope), scope.code.type(kind)
        if not scope.mask:
            return code.emit(kind, f"load {vector}, ptr {at}, align {size}")
        function, truths = f"@llvm.masked.load.v{code.width}{kind}.p0", code.type("b1")
        code.declared.add(f"declare {vector} {function}(ptr, i32, {truths}, {vector})")
        return code.emit(kind, f"call {vector} {function}(ptr {at}, i32 {size}, {truths} {scope.mask}, {vector} zeroinitializer)")

    def _store(self, results: Sequence[int], scope: _Scope) -> None:
        """Write values to results, once all of them are known: a result may lie where an input of another does."""
        found = [self.value(self.tape.stores[i], scope) for i in results]
        stored = [
            scope.stored[v] if v in scope.stored else to_stored_type(x, self.types[i])
            for i, x, v in zip(results, found, [self.tape.stores[i] for i in results], strict=True)
        ]
        for i, y in zip(results, stored, strict=True):
            self._write(i, y, scope)

    def _write(self, i: int, y: Vector, scope: _Scope) -> None:
        code = scope.code
        at, vector, size = self._pointer(i, scope), code.type(y.kind), self.types[i].itemsize
        if not scope.mask:
            code.lines.append(f"  store {vector} {y.name}, ptr {at}, align {size}")
            return
        function, truths = f"@llvm.masked.store.v{code.width}{y.kind}.p0", code.type("b1")
        code.declared.add(f"declare void {function}({vector}, ptr, i32, {truths})")
        code.lines.append(f"  call void {function}({vector} {y.name}, ptr {at}, i32 {size}, {truths} {scope.mask})")

    # --- the function
    def text(self) -> MachineText:
        nest = self.nest
        arrays = range(len(self.types))
        with nest.loop("a", "%size0"), nest.loop("b", "%size1"):
            for i in arrays:
                nest.offset_pointer(f"b{i}", f"%p{i}", ("%a", f"%x{i}"), ("%b", f"%y{i}"))
            for w, folds in enumerate(self.walks):
                self._walk(f"w{w}", folds)
            tiles = [i for i in range(self.results) if self.kinds[i] != ROW]
            if tiles:
                self._walk("w", [], tiles)
            # last, since a result may lie where an input does
            self._store([i for i in range(self.results) if self.kinds[i] == ROW], self.row)
            self._flush(self.row)
        self.nest.lines.append("  %answer = load i64, ptr %flag, align 8")
        self._finish(self.once.code)
        words = ["size0", "size1", "size2", "n", *[f"{c}{i}" for i in arrays for c in "pxyz"]]
        table = [("ptr" if w[0] == "p" else "i64", f"%{w}") for w in words]
        table += [(f"<1 x {LLVM[NUMBERS[d]]}>", f"%number{k}") for k, d in enumerate(self.tape.numbers)]
        entry = [
            f"  %t{i} = getelementptr i64, ptr %table, i64 {i}\n  {name} = load {kind}, ptr %t{i}, align 8"
            for i, (kind, name) in enumerate(table)
        ]
        entry += ["  %flag = alloca i64, align 8", "  store i64 0, ptr %flag, align 8"]
        entry += [f"  %whole{turn} = and i64 %n, {-turn}" for turn in {LANES * _FOLDED, LANES * self.turn}]
        nest.lines[1:1] = [*entry, *self.once.code.lines]
        module = "\n".join([*sorted(self.declared), self.nest.text("ptr %table", returns="i64 %answer")])
        return MachineText(module, self.gives_up, tuple([self.dtypes[v].itemsize for v in self.kept]))

    def _finish(self, code: Code, mask: str = "") -> None:
        """Note what is declared, and the lanes that are too hard."""
        self.declared |= code.declared
        if code.hard is not None:
            self.gives_up = True
            hard = code.hard & Vector(code, mask, "b1") if mask else code.hard
            name = hard.name[1:]
            code.lines += [
                f"  %{name}.bits = bitcast {code.type('b1')} {hard.name} to i{code.width}",
                f"  %{name}.any = icmp ne i{code.width} %{name}.bits, 0",
                f"  %{name}.word = zext i1 %{name}.any to i64",
                f"  %{name}.before = load i64, ptr %flag, align 8",
                f"  %{name}.after = or i64 %{name}.before, %{name}.word",
                f"  store i64 %{name}.after, ptr %flag, align 8",
            ]
            code.hard = None

    def _flush(self, scope: _Scope) -> None:
        self._finish(scope.code)
        self.nest.lines += scope.code.lines
        scope.code.lines = []

    def _body(
        self,
        tag: str,
        part: _Scope,
        at: str,
        ahead: int,
        mask: str,
        folds: Sequence[FoldCode],
        places: Sequence[int],
        stores: Sequence[int],
    ) -> tuple[_Scope, list[State]]:
        """One vector of a walk: what each fold maps its elements to, and the stores."""
        scope = _Scope(AN_ELEMENT, Code(LANES, f"{tag}{'t' if mask else f'm{ahead}'}v"), part, tag)
        scope.at, scope.ahead, scope.mask = at, ahead, mask
        mapped = []
        for fold, k in zip(folds, places, strict=True):
            step: Any = self.tape.steps[k]
            given = [*[self.value(p, scope) for p in step.picks], _index(fold, scope), *[self.value(p, scope) for p in step.numbers]]
            state = as_states(fold.map(*given), fold.kinds, scope.code)
            mapped.append(fold.masked(state, Vector(scope.code, mask, "b1")) if mask else state)
        self._store(stores, scope)
        return scope, mapped

    def _walk(self, tag: str, places: Sequence[int], stores: Sequence[int] = ()) -> None:
        """One pass over the elements of a row, which folds or writes."""
        folds = [FoldCode(self.tape.steps[k].functions, self.tape.steps[k].states) for k in places]  # type: ignore[union-attr]
        turn = _FOLDED if folds else self.turn
        part = _Scope(A_PART, Code(1, f"{tag}p"), self.row, tag)
        main = [self._body(tag, part, f"%{tag}i", r * LANES, "", folds, places, stores) for r in range(turn)]
        tail, last = self._body(tag, part, f"%{tag}t", 0, f"%{tag}mask", folds, places, stores)
        self.written |= {v for v in self.kept if v in tail.values}
        accs = [(j, s, kind) for j, fold in enumerate(folds) for s, kind in enumerate(fold.kept)]
        joined: dict[str, list[State]] = {"m": [], "u": []}
        for j, fold in enumerate(folds):
            for c, scope, states in (("m", main[-1][0], [m[1][j] for m in main]), ("u", tail, [last[j]])):
                total = tuple([Vector(scope.code, f"%{tag}{c}{j}.{s}", kind) for s, kind in enumerate(fold.kept)])
                joined[c].append(fold.joined(scope.code, total, states))
        for scope, _ in main:
            self._finish(scope.code)
        self._finish(tail.code, f"%{tag}mask")
        self._flush(self.row)
        starts = {(j, s): fold.nothing(tail.code, fold.kept)[s].name for j, fold in enumerate(folds) for s in range(len(fold.kept))}
        vectors = {(j, s): tail.code.type(kind) for j, s, kind in accs}
        carried = {f"{tag}a{j}.{s}": (vectors[j, s], starts[j, s], f"%{tag}e{j}.{s}") for j, s, _ in accs}
        nest, whole = self.nest, f"%whole{turn * LANES}"
        with nest.loop(f"{tag}q", "%size2", **carried):
            for i in self._touched(tag, part, main, tail):
                nest.offset_pointer(f"{tag}c{i}", f"%b{i}", (f"%{tag}q", f"%z{i}"))
            self._flush(part)
            head = nest.label

            def phis(name: str, first: str, left: str, block: str, before: str = "") -> list[str]:
                return [
                    f"  %{tag}{name}{j}.{s} = phi {vectors[j, s]} [%{tag}{first}{j}.{s}, %{before or head}], [{joined[left][j][s].name}, %{block}]"
                    for j, s, _ in accs
                ]

            nest.lines += [
                f"  %{tag}some = icmp sgt i64 {whole}, 0", f"  br i1 %{tag}some, label %{tag}main, label %{tag}rest",
                f"{tag}main:", f"  %{tag}i = phi i64 [0, %{head}], [%{tag}nexti, %{tag}main]", *phis("m", "a", "m", f"{tag}main"),
                *[line for scope, _ in main for line in scope.code.lines],
                f"  %{tag}nexti = add i64 %{tag}i, {turn * LANES}", f"  %{tag}more = icmp slt i64 %{tag}nexti, {whole}",
                f"  br i1 %{tag}more, label %{tag}main, label %{tag}rest",
                f"{tag}rest:", *phis("r", "a", "m", f"{tag}main"),
                f"  %{tag}left = icmp slt i64 {whole}, %n", f"  br i1 %{tag}left, label %{tag}tail, label %{tag}end",
                f"{tag}tail:", f"  %{tag}t = phi i64 [{whole}, %{tag}rest], [%{tag}nextt, %{tag}tail]", *phis("u", "r", "u", f"{tag}tail", f"{tag}rest"),
                *_mask(tag), *tail.code.lines,
                f"  %{tag}nextt = add i64 %{tag}t, {LANES}", f"  %{tag}moret = icmp slt i64 %{tag}nextt, %n",
                f"  br i1 %{tag}moret, label %{tag}tail, label %{tag}end",
                f"{tag}end:", *phis("e", "r", "u", f"{tag}tail", f"{tag}rest"),
            ]  # fmt: skip
            nest.label = f"{tag}end"
        self._fold_lanes(tag, folds, places)

    def _fold_lanes(self, tag: str, folds: Sequence[FoldCode], places: Sequence[int]) -> None:
        """What the lanes of folds come to, as numbers of the row."""
        code = Code(LANES, f"{tag}f")
        for j, (fold, k) in enumerate(zip(folds, places, strict=True)):
            state = fold.over_lanes(tuple([Vector(code, f"%{tag}e{j}.{s}", kind) for s, kind in enumerate(fold.kept)]))
            found = []
            for x in state:
                vector = code.type(x.kind)
                y = code.emit(x.kind, f"shufflevector {vector} {x.name}, {vector} poison, <1 x i32> zeroinitializer")
                found.append(Vector(self.row.code, y.name, y.kind))
            self.known_folds[k] = tuple(found)
        self._finish(code)
        self.nest.lines += code.lines

    def _touched(self, tag: str, part: _Scope, main: Sequence[tuple[_Scope, Any]], tail: _Scope) -> list[int]:
        """The arrays that a walk reads or writes."""
        lines = [line for code in (part.code, tail.code, *[s.code for s, _ in main]) for line in code.lines]
        text = "\n".join(lines)
        return [i for i in range(len(self.types)) if f"%{tag}c{i}," in text]


def _rounded_to_odd(y: Vector) -> Vector:
    """float64 as a float32 that rounds to float16 as the float64 itself would: cut, with the last bit set where something was cut off (Boldo and
    Melquiond, IEEE Transactions on Computers 57, 2008)."""
    near = y.to("f32")
    back, bits = near.to("f64"), near.bits("i32")
    cut = bits - (native.absolute(back) > native.absolute(y)).to("i32")
    return select(back != y, cut | 1, bits).bits("f32")


def _compute_kind(dtype: np.dtype, wide: bool) -> str:
    """The kind of a value as a formula takes it."""
    return ("f64" if wide else "f32") if dtype.kind in "fV" else STORED[dtype]


def _widened(x: Vector, wide: bool) -> Vector:
    """A float as float64 or float32, all else as it is."""
    return x.to("f64" if wide else "f32") if x.kind[0] == "f" else x


def _index(fold: FoldCode, scope: _Scope) -> Vector | None:
    """The places in the row of the elements of a vector, where the reduction asks for them."""
    if not fold.indexed:
        return None
    code, tag = scope.code, scope.tag
    before = code.emit("i64", f"mul i64 %{tag}q, %n").name
    first = code.emit("i64", f"add i64 {before}, {scope.at}").name
    name = code.emit("i64", f"add i64 {first}, {scope.ahead}").name[1:]
    code.lines += splat_lines(f"{name}.all", f"%{name}", "i64", LANES)
    order = Vector(code, f"<{', '.join(f'i64 {i}' for i in range(LANES))}>", "i64")
    return Vector(code, f"%{name}.all", "i64") + order


def _mask(tag: str) -> list[str]:
    """Which lanes of the rest of a row are inside."""
    whole, order = f"<{LANES} x i32>", ", ".join(f"i32 {i}" for i in range(LANES))
    return [
        f"  %{tag}room = sub i64 %n, %{tag}t", f"  %{tag}room32 = trunc i64 %{tag}room to i32",
        *splat_lines(f"{tag}rooms", f"%{tag}room32", "i32", LANES), f"  %{tag}mask = icmp slt {whole} <{order}>, %{tag}rooms",
    ]  # fmt: skip


def machine_text(tape: Tape, kinds: tuple[str, ...], turn: int) -> MachineText | None:
    """The module of a tape over arrays of these kinds (see arrangement.py), the results first, `turn` vectors in one turn of the walk that writes.

    None where there is no straight-line code: other types than loops store, formulas of more than `maths`.
    """
    if not all([d in STORED or d == INDEX for d in (*tape.inputs, *[tape.dtypes()[v] for v in tape.stores])]) or not all(
        [d in NUMBERS for d in tape.numbers]
    ):
        return None
    try:
        return _Writer(tape, kinds, turn).text()
    # made of more than `maths`: a kernel's own language, a branch, a type's attributes; a type that is not stored
    except (NotVectorizableError, AttributeError, TypeError, ValueError, KeyError):
        return None
