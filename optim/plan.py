"""Plan: which formula a group's settings mean. Formulas are loaded, and Triton with them, when a step first needs one."""

from __future__ import annotations

import functools
import importlib
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from tritensor.kernels.optimizers.step_formula import StepFormula


@functools.cache
def load_formula(name: str) -> StepFormula:
    """The formula of a name, which is its file's in kernels/optimizers/formulas, a dot, and the constant's in there."""
    file, _, constant = name.partition(".")
    return getattr(importlib.import_module(f"tritensor.kernels.optimizers.formulas.{file}"), constant)  # type: ignore[no-any-return]


@functools.cache
def load_decay_kinds() -> Any:
    """The kinds of weight decay as kernels number them: NONE, COUPLED, DECOUPLED. A kernels' file, so not loaded before there is a step."""
    return importlib.import_module("tritensor.kernels.optimizers.decay")


class Plan(NamedTuple):
    """What a group asks of its step: the formula, its settings ("lr" the first), weight decay and its kind, whether to go up, flags."""

    name: str
    settings: tuple[Any, ...]
    weight_decay: float = 0.0
    decay: int = 0  # one of `decays()`; none
    maximize: bool = False
    flags: tuple[bool, ...] = ()

    @property
    def formula(self) -> StepFormula:
        return load_formula(self.name)

    @property
    def variant(self) -> tuple[Any, ...]:
        return bool(self.maximize), self.decay, tuple([bool(f) for f in self.flags])
