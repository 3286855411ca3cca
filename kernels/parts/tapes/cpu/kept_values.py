"""Values of a row's elements that walks keep for those after them: what would cost more to compute anew than to write and read."""

from __future__ import annotations

from collections.abc import Sequence

from tritensor.kernels.parts import backends
from tritensor.kernels.parts.cpu.simd_maths import on_vectors
from tritensor.kernels.parts.tapes.tape import Step, Tape
from tritensor.llvm.loops import to_stored_type
from tritensor.llvm.simd import Code, Vector

_DEAR = 16  # instructions for a vector, from which a value is kept: exp has twice as many, a product of a difference two
_SLOW = ("fdiv", "@llvm.sqrt")  # instructions that take as long as so many others
_AS_MANY = 8


def cost(step: Step, kinds: Sequence[str]) -> int:
    """What a step costs of vectors of these kinds, about, in instructions; its rounding counts where it is one."""
    code = Code(1, "x")
    given = [Vector(code, f"%y{k}", kind) for k, kind in enumerate(kinds)]
    made = backends.translate(step.formula, on_vectors)(*given)
    if isinstance(made, Vector) and step.dtype.itemsize == 2 and made.kind[0] == "f":
        to_stored_type(made, step.dtype)
    return len(code.lines) + (_AS_MANY - 1) * len([line for line in code.lines if any([word in line for word in _SLOW])])


def kept_values(tape: Tape, is_element: Sequence[bool], roots: Sequence[Sequence[int]], costs: Sequence[int]) -> list[int]:
    """The values that a walk computes and a later one would have to compute again for more than it costs to keep them.

    is_element: of each value, whether it is computed for every element, and is no input; roots: what each walk asks for; costs: of each value by itself.
    """
    makers: dict[int, Step] = {}
    place = len(tape.inputs) + len(tape.numbers)
    for step in tape.steps:
        if isinstance(step, Step):
            makers[place] = step
        place += 1 if isinstance(step, Step) else len(step.dtypes)
    before: set[int] = set()
    kept: list[int] = []

    def dear(v: int) -> bool:
        """Whether it costs much from what is kept on."""
        seen: set[int] = set()
        left, total = [v], 0
        while left:
            x = left.pop()
            if x in seen or not is_element[x] or (x in kept and x != v):
                continue
            seen.add(x)
            total += costs[x]
            left += makers[x].picks
        return total >= _DEAR

    def ask(v: int, now: set[int]) -> None:
        if v in now or not is_element[v]:
            return
        now.add(v)
        if v in before and (v in kept or dear(v)):
            if v not in kept:
                kept.append(v)
            return
        for pick in makers[v].picks:
            ask(pick, now)

    for asked in roots:
        now: set[int] = set()
        for v in asked:
            ask(v, now)
        before |= now
    return kept
