"""Vectors: stand-ins for SIMD vectors, with Python's operators, that write down what is done to them in LLVM's intermediate language.

A formula called with vectors in place of arrays leaves its body behind as straight-line code: no loop or branch may depend on a vector.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import numpy as np

LLVM = {"b1": "i1", "i8": "i8", "i16": "i16", "i32": "i32", "i64": "i64", "f16": "half", "f32": "float", "f64": "double"}
_BITS = {"b1": 1, "i8": 8, "i16": 16, "i32": 32, "i64": 64, "f16": 16, "f32": 32, "f64": 64}
_ORDERED = {"lt": "olt", "le": "ole", "gt": "ogt", "ge": "oge", "eq": "oeq", "ne": "une"}
_SIGNED = {"lt": "slt", "le": "sle", "gt": "sgt", "ge": "sge", "eq": "eq", "ne": "ne"}


class NotVectorizableError(Exception):
    """A formula asked a vector for its value, so that no straight-line code can be made of it."""


class Code:
    """The code under construction: `width` lanes a vector; `hard` gathers the lanes that a formula cannot do."""

    def __init__(self, width: int, prefix: str) -> None:
        self.width, self.prefix = width, prefix
        self.lines: list[str] = []
        self.declared: set[str] = set()
        self.hard: Vector | None = None
        self.count = 0

    def type(self, kind: str) -> str:
        return f"<{self.width} x {LLVM[kind]}>"

    def emit(self, kind: str, text: str) -> Vector:
        """One instruction, and the vector that it makes."""
        self.count += 1
        name = f"%{self.prefix}{self.count}"
        self.lines.append(f"  {name} = {text}")
        return Vector(self, name, kind)

    def call(self, name: str, *args: Vector) -> Vector:
        """One of LLVM's functions of vectors, of arguments and a result of one kind."""
        kind = args[0].kind
        function = f"@llvm.{name}.v{self.width}{kind}"
        types = ", ".join([self.type(kind)] * len(args))
        self.declared.add(f"declare {self.type(kind)} {function}({types})")
        given = ", ".join(f"{self.type(kind)} {a.name}" for a in args)
        return self.emit(kind, f"call {self.type(kind)} {function}({given})")

    def constant(self, value: float, kind: str) -> Vector:
        """A number in every lane, rounded to the kind."""
        if kind == "b1":
            text = "true" if value else "false"
        elif kind[0] == "i":
            text = str(int(value))
        else:
            # LLVM writes float constants as doubles, and refuses one that float does not hold
            rounded = float(np.float32(value)) if kind == "f32" else float(value)
            text = f"0x{struct.unpack('<Q', struct.pack('<d', rounded))[0]:016X}"
        return Vector(self, f"splat ({LLVM[kind]} {text})", kind)


class Vector:
    """`width` values of one kind: b1, i8, i16, i32, i64, f16, f32 or f64."""

    __slots__ = ("code", "kind", "name")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, code: Code, name: str, kind: str) -> None:
        self.code, self.name, self.kind = code, name, kind

    def __bool__(self) -> bool:
        raise NotVectorizableError("a branch on a lane")

    def _to_common_kind(self, other: Any) -> tuple[Vector, Vector]:
        """Both operands as one kind: a number takes the vector's, float32 beside float64 becomes float64."""
        if not isinstance(other, Vector):
            return self, self.code.constant(other, self.kind)
        if self.kind == other.kind:
            return self, other
        if {self.kind, other.kind} == {"f32", "f64"}:
            return self.to("f64"), other.to("f64")
        raise NotVectorizableError(f"lanes of {self.kind} and {other.kind}")

    def _arithmetic(self, floating: str, whole: str, other: Any, swapped: bool = False) -> Vector:
        a, b = self._to_common_kind(other)
        if swapped:
            a, b = b, a
        how = floating if a.kind[0] == "f" else whole
        if not how:
            raise NotVectorizableError(f"no such operation on lanes of {a.kind}")
        return self.code.emit(a.kind, f"{how} {self.code.type(a.kind)} {a.name}, {b.name}")

    def __add__(self, other: Any) -> Vector:
        return self._arithmetic("fadd", "add", other)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Vector:
        return self._arithmetic("fsub", "sub", other)

    def __rsub__(self, other: Any) -> Vector:
        return self._arithmetic("fsub", "sub", other, swapped=True)

    def __mul__(self, other: Any) -> Vector:
        return self._arithmetic("fmul", "mul", other)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Vector:
        return self._arithmetic("fdiv", "", other)

    def __rtruediv__(self, other: Any) -> Vector:
        return self._arithmetic("fdiv", "", other, swapped=True)

    def __neg__(self) -> Vector:
        if self.kind[0] == "f":
            return self.code.emit(self.kind, f"fneg {self.code.type(self.kind)} {self.name}")
        return 0 - self

    def _compare(self, name: str, other: Any) -> Vector:
        a, b = self._to_common_kind(other)
        how = f"fcmp {_ORDERED[name]}" if a.kind[0] == "f" else f"icmp {_SIGNED[name]}"
        return self.code.emit("b1", f"{how} {self.code.type(a.kind)} {a.name}, {b.name}")

    def __lt__(self, other: Any) -> Vector:
        return self._compare("lt", other)

    def __le__(self, other: Any) -> Vector:
        return self._compare("le", other)

    def __gt__(self, other: Any) -> Vector:
        return self._compare("gt", other)

    def __ge__(self, other: Any) -> Vector:
        return self._compare("ge", other)

    def __eq__(self, other: Any) -> Vector:  # type: ignore[override]
        return self._compare("eq", other)

    def __ne__(self, other: Any) -> Vector:  # type: ignore[override]
        return self._compare("ne", other)

    def __and__(self, other: Any) -> Vector:
        return self._arithmetic("", "and", other)

    __rand__ = __and__

    def __or__(self, other: Any) -> Vector:
        return self._arithmetic("", "or", other)

    __ror__ = __or__

    def __xor__(self, other: Any) -> Vector:
        return self._arithmetic("", "xor", other)

    def __invert__(self) -> Vector:
        return self ^ (1 if self.kind == "b1" else -1)

    def __lshift__(self, other: Any) -> Vector:
        return self._arithmetic("", "shl", other)

    def __rshift__(self, other: Any) -> Vector:
        """The sign's bit moves in."""
        return self._arithmetic("", "ashr", other)

    def to(self, kind: str) -> Vector:
        """As another kind: floats round to nearest, floats to integers truncate. What does not fit, NaN too, becomes the least integer of 32 or 64 bits, as
        the processor has it: frozen, since without that LLVM may take whatever is made of it for anything; narrower integers are its low bits."""
        if kind == self.kind:
            return self
        kinds = self.kind[0], kind[0]
        # processors convert to 32 and 64 bits alone: of narrower ones the low bits are kept
        if kinds == ("f", "i") and _BITS[kind] < 32:
            return self.to("i32").to(kind)
        known = {
            ("f", "f"): "fpext" if _BITS[kind] > _BITS[self.kind] else "fptrunc",
            ("f", "i"): "fptosi", ("i", "f"): "sitofp", ("b", "f"): "uitofp", ("b", "i"): "zext",
            ("i", "i"): "sext" if _BITS[kind] > _BITS[self.kind] else "trunc",
        }  # fmt: skip
        if kinds not in known:
            raise NotVectorizableError(f"lanes of {self.kind} as {kind}")
        y = self.code.emit(kind, f"{known[kinds]} {self.code.type(self.kind)} {self.name} to {self.code.type(kind)}")
        # without the last LLVM makes of copysign's sign, rounded from 64 to 32 bits, one of 16 bits by a function that is not there
        if kinds == ("f", "i") or (self.kind, kind) == ("f64", "f32"):
            return self.code.emit(kind, f"freeze {self.code.type(kind)} {y.name}")
        return y

    def zero_extend(self, kind: str) -> Vector:
        """An integer as a wider one, its sign's bit a digit."""
        return self.code.emit(kind, f"zext {self.code.type(self.kind)} {self.name} to {self.code.type(kind)}")

    def bits(self, kind: str) -> Vector:
        """The same bits read as another kind of the same size."""
        return self.code.emit(kind, f"bitcast {self.code.type(self.kind)} {self.name} to {self.code.type(kind)}")

    def unsigned_shift(self, places: int) -> Vector:
        """To the right, zeros moving in."""
        return self._arithmetic("", "lshr", places)


def select(condition: Vector, a: Any, b: Any) -> Vector:
    """a where condition, else b; one of them may be a number."""
    if isinstance(a, Vector):
        a, b = a._to_common_kind(b)
    elif isinstance(b, Vector):
        b, a = b._to_common_kind(a)
    else:
        raise NotVectorizableError("a choice between two numbers, whose type nothing tells")
    code = condition.code
    return code.emit(a.kind, f"select {code.type('b1')} {condition.name}, {code.type(a.kind)} {a.name}, {code.type(b.kind)} {b.name}")


def splat_lines(name: str, number: str, element: str, width: int) -> list[str]:
    """%<name> is a number of an LLVM type in every lane. LLVM itself has `splat` for constants alone."""
    vector = f"<{width} x {element}>"
    return [
        f"  %{name}.one = insertelement {vector} poison, {element} {number}, i64 0",
        f"  %{name} = shufflevector {vector} %{name}.one, {vector} poison, <{width} x i32> zeroinitializer",
    ]


def fold_lanes(y: Vector, combine: Callable[[Vector, Vector], Vector]) -> Vector:
    """All lanes of a vector combined by halves, the result in every lane."""
    code, vector, half = y.code, y.code.type(y.kind), y.code.width // 2
    while half:
        order = ", ".join(f"i32 {(i + half) % code.width}" for i in range(code.width))
        y = combine(y, code.emit(y.kind, f"shufflevector {vector} {y.name}, {vector} poison, <{code.width} x i32> <{order}>"))
        half //= 2
    return y


def fma(a: Vector, b: Any, c: Any) -> Vector:
    """a b + c, rounded once."""
    b = b if isinstance(b, Vector) else a.code.constant(b, a.kind)
    c = c if isinstance(c, Vector) else a.code.constant(c, a.kind)
    kind = "f64" if "f64" in (a.kind, b.kind, c.kind) else a.kind
    return a.code.call("fma", a.to(kind), b.to(kind), c.to(kind))


def give_up(condition: Vector) -> None:
    """Where the condition holds in a lane, the formula is not good: numpy does the whole call."""
    code = condition.code
    code.hard = condition if code.hard is None else code.hard | condition
