"""Draws in machine code: the places of elements, and random numbers of whole blocks for the vectors of a turn."""

from __future__ import annotations

from tritensor.kernels.parts.random_words.draws_on_cpu import MAKERS, words_of
from tritensor.llvm.simd import LLVM, Code, Vector, splat_lines


def places(code: Code, start: str, at: str, ahead: int, each: bool) -> Vector:
    """How far elements lie from address 0: of those at `start`, or each of a vector of them from number `at` and so many ahead on."""
    one = code.emit("i64", f"getelementptr i8, ptr {start}, i64 {at if each else 0}").name
    name = code.emit("i64", f"ptrtoint ptr {one} to i64").name[1:]
    code.lines += splat_lines(f"{name}.all", f"%{name}", "i64", code.width)
    place = Vector(code, f"%{name}.all", "i64")
    return place + Vector(code, f"<{', '.join([f'i64 {ahead + k}' for k in range(code.width)])}>", "i64") if each else place


def by_fours(name: str, place: Vector, seed: Vector, offset: Vector) -> list[Vector] | None:
    """The numbers of four vectors of places in a row, of which `place` is the first, beginning with a multiple of four: each block computed once.
    None where there is no such formula."""
    make = MAKERS.get(name)
    if make is None:
        return None
    code = place.code
    n, whole = code.width, code.type("i64")
    first = code.emit("i64", f"shufflevector {whole} {place.name}, {whole} poison, <{n} x i32> zeroinitializer")
    block = first.unsigned_shift(2) + offset + Vector(code, f"<{', '.join([f'i64 {k}' for k in range(n)])}>", "i64")
    a, b, c, d = make(words_of(block, seed))
    kind, vector, element = a.kind, code.type(a.kind), LLVM[a.kind]
    pair = ", ".join([f"i32 {k}" for k in range(2 * n)])
    left, right = [
        code.emit(kind, f"shufflevector {vector} {x.name}, {vector} {y.name}, <{2 * n} x i32> <{pair}>").name for x, y in ((a, b), (c, d))
    ]
    found = []
    for part in range(4):  # elements part n to (part + 1) n of a0 b0 c0 d0 a1 b1 ...
        order = ", ".join([f"i32 {k % 4 * n + k // 4}" for k in range(part * n, (part + 1) * n)])
        found.append(code.emit(kind, f"shufflevector <{2 * n} x {element}> {left}, <{2 * n} x {element}> {right}, <{n} x i32> <{order}>"))
    return found


def part(found: list[Vector] | None, which: int, code: Code) -> Vector | None:
    """The numbers of one vector of the four, in the code of another in the same block."""
    return None if found is None else Vector(code, found[which].name, found[which].kind)
