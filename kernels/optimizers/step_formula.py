"""StepFormula: an optimizer's step of one parameter, for Triton, numpy, machine code and Tensors."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import triton
import triton.language as tl

from tritensor.kernels.optimizers.decay import DECOUPLED
from tritensor.kernels.parts import backends, maths
from tritensor.kernels.parts.cpu.simd_maths import on_vectors
from tritensor.llvm.address_table import TableLoop


# g' = -g where it is to be maximised; + decay p where DECAY is 1; p' = decay p where it is 2 (decay is then 1 - lr weight_decay)
@triton.jit
def prepare(p, g, decay, MAXIMIZE: tl.constexpr, DECAY: tl.constexpr):
    if MAXIMIZE:
        g = maths.neg(g)
    if DECAY == 1:
        g = g + p * decay
    if DECAY == 2:
        p = p * decay
    return p, g


class StepFormula:
    """What an optimizer does to one parameter.

    Attributes:
        formula: `@triton.jit` over (p, g, *states, *numbers, *flags), which gives (p, *states).
        numbers: `@triton.jit` over (step, *other scalars, lr, *settings), in float64, which gives (*other scalars, *numbers).
        states: names of the tensors of the parameter's shape that it keeps; scalars: of the numbers, the first of them "step".
        settings: names of what a group says, "lr" the first; flags: of constants that the formula is compiled for.
        example: settings as users give them, for tests and timing.
        count: how many numbers formula takes; they and the decay before them are a row of what kernels are given.
    """

    def __init__(
        self, name: str, formula: Any, numbers: Any, states: Sequence[str], scalars: Sequence[str], settings: Sequence[str], flags: Sequence[str],
        example: Sequence[float],
    ) -> None:  # fmt: skip
        self.name, self.formula, self.numbers = name, formula, numbers
        self.states, self.scalars, self.settings, self.flags = tuple(states), tuple(scalars), tuple(settings), tuple(flags)
        self.example = tuple(example)
        taken = backends.body(formula).__code__.co_argcount
        self.count = taken - 2 - len(self.states) - len(self.flags)
        self._loops: dict[tuple[Any, ...], TableLoop] = {}

    @property
    def written(self) -> tuple[int, ...]:
        """The places of what is overwritten among (p, g, *states)."""
        return (0, *range(2, 2 + len(self.states)))

    @functools.cached_property
    def on_host(self) -> Callable[..., Any]:
        """The numbers of Python's floats."""
        return backends.translate(self.numbers, backends.on_numpy)

    def spelled(self, spelling: Any, maximize: bool, decay: int, flags: tuple[Any, ...]) -> Callable[..., Any]:
        """(p, g, *states, decay, *numbers) -> (p, *states) in a spelling of `maths`."""
        before, formula = backends.translate(prepare, spelling), backends.translate(self.formula, spelling)
        states = len(self.states)

        def whole(p: Any, g: Any, *rest: Any) -> Any:
            p, g = before(p, g, rest[states], maximize, decay)
            return formula(p, g, *rest[:states], *rest[states + 1 :], *flags)

        return whole

    def loop(self, variant: tuple[Any, ...]) -> TableLoop:
        """The machine code of a variant, (maximize, decay, flags)."""
        found = self._loops.get(variant)
        if found is None:
            whole = self.spelled(on_vectors, *variant)
            found = self._loops[variant] = TableLoop(whole, 2 + len(self.states), 1 + self.count, self.written, through=1)
        return found

    def row(self, scalars: Sequence[float], settings: Sequence[Any], weight_decay: float, decay: int) -> tuple[list[Any], list[Any]]:
        """(new scalars, numbers) of a step, from the scalars before it."""
        counted = [scalars[0] + 1.0] if self.scalars else []
        with np.errstate(all="ignore"):
            made = self.on_host(*(counted or [0.0]), *scalars[1:], *settings)
        kept = max(len(self.scalars) - 1, 0)
        shrink = 1.0 - settings[0] * weight_decay if decay == DECOUPLED else weight_decay
        return [*counted, *made[:kept]], [shrink, *made[kept:]]
