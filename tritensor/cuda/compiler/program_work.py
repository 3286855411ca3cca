"""Work of one program of a kernel, read off Triton's first form of it (TTIR): passes of loops, bytes through pointers, flops of dots."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

SAMPLED = 8  # programs of a grid that are followed: spread evenly, so that loops whose length is the program's own are averaged


class Passes(NamedTuple):
    """A loop of a kernel: the loop around it (its place among all, -1: none), how many passes one program makes of it in all, and the
    bytes that all of them load and store."""

    parent: int
    passes: float
    bytes: float


class ProgramWork(NamedTuple):
    """What one program does on average over the grid. Masks count as all true.

    `loads` and `stores`: bytes for each array argument by its place among the run-time arguments (-1: through a pointer that cannot
    be traced). `flops`: 2 m n k of every dot by the type that is multiplied ("bf16", "tf32", "f32" where no tensor core can).
    `loops` in the order of the text. `assumed`: what could not be known, in words. `longest`: how much more the program with most to do does
    than the average (1.0: all do the same).
    """

    loads: dict[int, float]
    stores: dict[int, float]
    flops: dict[str, float]
    loops: tuple[Passes, ...]
    assumed: tuple[str, ...]
    longest: float = 1.0

    def moved(self) -> float:
        """Bytes that a program loads and stores."""
        return sum(self.loads.values()) + sum(self.stores.values())


def program_work(ttir: str, values: Sequence[tuple[str, Any]], grid: tuple[int, ...]) -> ProgramWork:
    """Follow a kernel's text for some programs of `grid`, without data.

    Args:
        values: the launch's run-time arguments as specialize() gives them, (kind, value); numbers decide how often loops run.
    Integers that come from arguments, constants and program ids are calculated; what depends on loaded data is not known: a loop of
    unknown length is taken for one pass, a branch for both sides, half each where there are two. `assumed` says so.
    """
    functions = _functions(ttir)
    main = next(iter(functions.values()))
    x, y, z = (*grid, 1, 1)[:3]
    count = max(x * y * z, 1)
    # the first and the last among them, which most often have the short ends
    picked = sorted({i * (count - 1) // max(SAMPLED - 1, 1) for i in range(SAMPLED)})
    runs = []
    for n in picked:
        run = _Run(functions, (n % x, n // x % y, n // (x * y)), (x, y, z))
        run.call(main, _bound(main.parameters, values), 1.0)
        runs.append(run)
    return _mean(runs)


def _mean(runs: list[_Run]) -> ProgramWork:
    def mean(tables: list[dict[Any, float]]) -> dict[Any, float]:
        return {k: sum(t.get(k, 0.0) for t in tables) / len(tables) for k in {k: None for t in tables for k in t}}

    keys = sorted({k for r in runs for k in r.loops})
    place = {k: i for i, k in enumerate(keys)}
    loops = []
    for k in keys:
        found = [r.loops[k] for r in runs if k in r.loops]
        parent = place.get(found[0].parent, -1)
        loops.append(Passes(parent, sum(f.passes for f in found) / len(runs), sum(f.bytes for f in found) / len(runs)))
    assumed = tuple({note: None for r in runs for note in r.assumed})
    done = [sum(r.flops.values()) or r.moved() for r in runs]
    longest = max(done) * len(done) / sum(done) if any(done) else 1.0
    flops = mean([r.flops for r in runs])
    return ProgramWork(mean([r.loads for r in runs]), mean([r.stores for r in runs]), flops, tuple(loops), assumed, longest)


# The text
@dataclass
class _Op:
    """One operation: what it defines, its name, what it uses, the rest of its line, the regions within it."""

    results: list[str]
    name: str
    operands: list[str]
    text: str
    line: int
    regions: list[list[_Op]] = field(default_factory=list)


class _Function(NamedTuple):
    parameters: list[tuple[str, str]]  # name and type
    body: list[_Op]


_RESULT = re.compile(r"(%[\w.$-]+)(?::(\d+))? = ")
_NAME = re.compile(r'"?([a-z_]+\.[\w.]+)"?')
_VALUE = re.compile(r"%[\w.$-]+(?:#\d+)?")
_FUNCTION = re.compile(r"tt\.func \w+ @(?:\"([^\"]+)\"|([\w.$-]+))\(")
_PARAMETER = re.compile(r"(%[\w.$-]+): ((?:[^,<{(]|<(?:[^<>]|<[^<>]*>)*>)+)")


def _functions(ttir: str) -> dict[str, _Function]:
    """The functions of a module, the kernel first."""
    found: dict[str, _Function] = {}
    public = ""
    stack: list[list[_Op]] = []
    for number, raw in enumerate(ttir.splitlines()):
        line = raw.strip()
        if line.startswith(("#", "module", "^")) or not line:
            continue
        head = _FUNCTION.match(line)
        if head is not None:
            name = head[1] or head[2]
            body: list[_Op] = []
            signature = line[head.end() : line.rindex(" {")].partition(" attributes ")[0]
            found[name] = _Function([(n, t.strip()) for n, t in _PARAMETER.findall(signature)], body)
            public = name if line.startswith("tt.func public") else public
            stack = [body]
            continue
        if line.startswith("}"):
            if stack:
                stack.pop()
            if stack and line.endswith("{"):  # "} else {", "} do {", "}, {"
                stack[-1][-1].regions.append([])
                stack.append(stack[-1][-1].regions[-1])
            continue
        if not stack:
            continue
        op = _operation(line, number)
        if op is None:
            continue
        stack[-1].append(op)
        if line.endswith("{"):
            op.regions.append([])
            stack.append(op.regions[0])
    return {public: found[public]} | found


def _operation(line: str, number: int) -> _Op | None:
    at = _RESULT.match(line)
    results: list[str] = []
    rest = line
    if at is not None:
        results = [at[1]] if at[2] is None else [f"{at[1]}#{i}" for i in range(int(at[2]))]
        rest = line[at.end() :]
    name = _NAME.match(rest)
    if name is None:
        return None
    text = rest[name.end() :]
    return _Op(results, name[1], _VALUE.findall(text), text, number)


def _bound(parameters: list[tuple[str, str]], values: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Each parameter's value: ("array", place) for pointers and descriptors, a whole number, or None. A descriptor's shape and strides
    stand behind it in the text and not among the values."""
    bound: dict[str, Any] = {}
    at = rank = 0
    for name, kind in parameters:
        if rank > 0:  # 2 x rank whole numbers behind a descriptor
            rank -= 1
            bound[name] = None
            continue
        given, value = values[at] if at < len(values) else ("", None)
        if kind.startswith("!tt.tensordesc"):
            rank = 2 * len(_sizes(kind)[0])
            bound[name] = ("array", at)
        elif "!tt.ptr" in kind:
            bound[name] = ("array", at)
        else:
            bound[name] = int(value) if value is not None and given[:1] in ("i", "u") else None
        at += 1
    return bound


_BYTES = {"i1": 1, "f16": 2, "bf16": 2, "f32": 4, "f64": 8, "index": 8}
_TENSOR = re.compile(r"tensor<((?:\d+x)*)([^,>]*(?:<[^>]*>)?)[^>]*>")


def _sizes(kind: str) -> tuple[list[int], str]:
    """Shape and element type of "tensor<128x64x!tt.ptr<bf16>>", "!tt.tensordesc<128x64xf16>", "!tt.ptr<f32>"; a scalar has no shape."""
    inner = re.search(r"((?:\d+x)+)(!tt\.ptr<[^>]*>|[A-Za-z]\w*)", kind)
    if inner is None:
        return [], kind.strip()
    return [int(n) for n in inner[1].split("x") if n], inner[2]


def _nbytes(kind: str) -> float:
    shape, element = _sizes(kind)
    element = re.sub(r".*!tt\.ptr<([^,>]*).*", r"\1", element)
    size = _BYTES.get(element)
    if size is None:
        digits = re.search(r"\d+", element)
        size = max(int(digits[0]) // 8, 1) if digits else 4
    total = float(size)
    for n in shape:
        total *= n
    return total


def _quotient(a: int, b: int) -> int:
    """Division as machines have it, towards zero, where Python's goes down."""
    q = abs(a) // abs(b)
    return q if (a < 0) == (b < 0) else -q


_WHOLE: dict[str, Callable[[int, int], int]] = {
    "addi": operator.add, "subi": operator.sub, "muli": operator.mul, "divsi": _quotient, "divui": _quotient, "floordivsi": operator.floordiv,
    "ceildivsi": lambda a, b: -(-a // b), "remsi": lambda a, b: a - b * _quotient(a, b), "remui": lambda a, b: a - b * _quotient(a, b),
    "minsi": min, "minui": min, "maxsi": max, "maxui": max, "andi": operator.and_, "ori": operator.or_, "xori": operator.xor,
    "shli": operator.lshift, "shrsi": operator.rshift, "shrui": operator.rshift,
}  # fmt: skip
_COMPARE: dict[str, Callable[[int, int], bool]] = {
    "eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge,
}  # fmt: skip


class _Run:
    """One program followed through the text. A value is a whole number, ("array", place), or None: not known."""

    def __init__(self, functions: dict[str, _Function], ids: tuple[int, int, int], grid: tuple[int, int, int]) -> None:
        self.functions, self.ids, self.grid = functions, ids, grid
        self.loads: dict[int, float] = {}
        self.stores: dict[int, float] = {}
        self.flops: dict[str, float] = {}
        self.loops: dict[int, Passes] = {}  # by line; parent is a line, too
        self.assumed: list[str] = []
        self.within = -1

    def call(self, function: _Function, bound: dict[str, Any], times: float) -> None:
        self.body(function.body, dict(bound), times)

    def body(self, ops: list[_Op], known: dict[str, Any], times: float) -> list[Any]:
        """Follow a block; returns what it yields."""
        out: list[Any] = []
        for op in ops:
            given = [known.get(o) for o in op.operands]
            if op.name in ("scf.yield", "scf.condition", "tt.return"):
                out = given
            elif op.name == "scf.for":
                self.loop(op, known, times)
            elif op.name == "scf.while":
                self.assumed.append("a while loop is taken for one pass")
                for region in op.regions:
                    self.body(region, known, times)
            elif op.name == "scf.if":
                self.branch(op, known, times)
            elif op.name == "tt.call":
                callee = re.search(r"@(?:\"([^\"]+)\"|([\w.$-]+))", op.text)
                function = self.functions.get((callee[1] or callee[2]) if callee else "")
                if function is not None:
                    self.call(function, {n: v for (n, _), v in zip(function.parameters, given, strict=False)}, times)
            else:
                value = self.value(op, given, times)
                if op.results:
                    known[op.results[0]] = value
        return out

    def loop(self, op: _Op, known: dict[str, Any], times: float) -> None:
        index, start, stop, step = op.operands[:4]
        first, last, by = known.get(start), known.get(stop), known.get(step)
        if isinstance(first, int) and isinstance(last, int) and isinstance(by, int) and by > 0:
            trips = max(0, -(-(last - first) // by))
            known[index] = first + by * (trips // 2)  # the middle pass stands for all: exact where inner loops grow evenly
        else:
            trips = 1
            self.assumed.append("a loop whose length depends on data is taken for one pass")
        carried = re.search(r"iter_args\((.*?)\) ->", op.text)
        pairs = re.findall(r"(%[\w.$-]+) = (%[\w.$-]+(?:#\d+)?)", carried[1]) if carried else []
        for (name, initial), result in zip(pairs, op.results, strict=False):
            value = known.get(initial)
            known[name] = known[result] = value if isinstance(value, tuple) else None  # arrays stay what they are, numbers change
        before, outer = self.moved(), self.within
        self.within = op.line
        # a loop that does not run moves nothing, but stands in the table
        if trips:
            self.body(op.regions[0], known, times * trips)
        self.within = outer
        was = self.loops.get(op.line, Passes(outer, 0.0, 0.0))
        self.loops[op.line] = Passes(outer, was.passes + times * trips, was.bytes + self.moved() - before)

    def branch(self, op: _Op, known: dict[str, Any], times: float) -> None:
        asked = known.get(op.operands[0])
        sides = [r for r in op.regions if r]
        if isinstance(asked, int):
            taken = op.regions[0] if asked else op.regions[1] if len(op.regions) > 1 else []
            yielded = self.body(taken, known, times)
        else:
            self.assumed.append(
                "of a branch that depends on data each side is counted half"
                if len(sides) > 1
                else "a branch that depends on data is counted as taken"
            )
            followed = [self.body(side, known, times / len(sides)) for side in sides]
            yielded = [v if isinstance(v, tuple) else None for v in (followed[0] if followed else [])]
        known.update(zip(op.results, yielded, strict=False))

    def moved(self) -> float:
        return sum(self.loads.values()) + sum(self.stores.values())

    def value(self, op: _Op, given: list[Any], times: float) -> Any:
        """What an operation gives; memory and dots are counted on the way."""
        name, text = op.name, op.text.partition(" loc(")[0]
        family, _, verb = name.partition(".")
        if family == "arith":
            return self.arithmetic(verb, text, given)
        if name in ("tt.get_program_id", "tt.get_num_programs"):
            axis = "xyz".index(text.strip()[0])
            return (self.ids if name == "tt.get_program_id" else self.grid)[axis]
        array = next((g for g in given if isinstance(g, tuple)), None)
        place = array[1] if array else -1
        if name in ("tt.load", "tt.descriptor_load", "tt.descriptor_gather"):
            self.count(self.loads, place, times * _nbytes(text.rpartition("->")[2] if "->" in text else text.rpartition(" : ")[2]))
            return None
        if name in ("tt.store", "tt.descriptor_store", "tt.descriptor_scatter"):
            self.count(self.stores, place, times * _nbytes(_stored(name, text)))
            return None
        if name.startswith(("tt.atomic", "tt.descriptor_reduce")):
            for table in (self.loads, self.stores):
                self.count(table, place, times * _nbytes(text.rpartition("->")[2] if "->" in text else _stored(name, text)))
            return None
        if name in ("tt.dot", "tt.dot_scaled"):
            self.dot(text, times)
            return None
        return array  # what is made of a pointer (splat, addptr, broadcast, a descriptor) points into the same array

    def arithmetic(self, verb: str, text: str, given: list[Any]) -> Any:
        if verb == "constant":
            found = re.match(r"\s*(-?\d+|true|false)\s*(?::|$)", text)
            return None if found is None else {"true": 1, "false": 0}[found[1]] if found[1] in ("true", "false") else int(found[1])
        if verb == "select" and len(given) == 3:
            if isinstance(given[0], int):
                return given[1] if given[0] else given[2]
            return given[1] if isinstance(given[1], tuple) else None
        numbers = [g for g in given if isinstance(g, int)]
        if len(numbers) != len(given):
            return None
        if verb in ("extsi", "extui", "trunci", "index_cast"):
            return numbers[0] if numbers else None
        if verb == "cmpi" and len(numbers) == 2:
            compare = _COMPARE.get(text.strip().partition(",")[0].lstrip("su"))  # slt and ult are alike to Python's integers
            return None if compare is None else int(compare(*numbers))
        whole = _WHOLE.get(verb)
        if whole is None or len(numbers) != 2 or (numbers[1] == 0 and ("div" in verb or "rem" in verb)):
            return None
        return whole(*numbers)

    def dot(self, text: str, times: float) -> None:
        tensors = [_sizes(t[0]) for t in re.finditer(r"tensor<[^<>]*>", text)]
        left, out = tensors[0], tensors[-1]
        flops = 2.0 * left[0][-1]
        for n in out[0]:
            flops *= n
        kind = left[1]
        if kind == "f32":
            asked = re.search(r"inputPrecision = (\w+)", text)
            kind = "f32" if asked is None or asked[1] == "ieee" else "tf32"
            flops *= {"tf32x3": 3, "bf16x3": 3, "bf16x6": 6}.get(asked[1] if asked else "", 1)
        self.flops[kind] = self.flops.get(kind, 0.0) + times * flops

    @staticmethod
    def count(table: dict[int, float], place: int, nbytes: float) -> None:
        table[place] = table.get(place, 0.0) + nbytes


def _stored(name: str, text: str) -> str:
    """The type of what a store writes."""
    kinds = text.rpartition(" : ")[2]
    return kinds.rpartition("tensor<")[1] + kinds.rpartition("tensor<")[2] if name.startswith("tt.descriptor") else kinds
