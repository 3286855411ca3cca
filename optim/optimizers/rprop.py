"""Rprop: step sizes that only the signs of gradients change."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tritensor.optim.formula_optimizer import FormulaOptimizer
from tritensor.optim.plan import Plan


class Rprop(FormulaOptimizer):
    """Each element's step grows by etas[1] while its gradient keeps its sign and shrinks by etas[0] where that turns, within step_sizes
    (Riedmiller and Braun 1993). lr is the first step size. For whole data sets, not for noisy gradients.

    `foreach` and `capturable` are accepted and change nothing.

    Raises:
        ValueError: a setting that makes no sense; no parameters; one that is no leaf or is given twice.
    """

    _formulas = ("rprop.RPROP",)

    def __init__(
        self, params: Iterable[Any], lr: float = 1e-2, etas: tuple[float, float] = (0.5, 1.2), step_sizes: tuple[float, float] = (1e-6, 50),
        *, capturable: bool = False, foreach: bool | None = None, maximize: bool = False, differentiable: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(params, {
            "lr": lr, "etas": etas, "step_sizes": step_sizes, "foreach": foreach, "maximize": maximize, "differentiable": differentiable,
            "capturable": capturable,
        })  # fmt: skip

    def _check(self, defaults: dict[str, Any]) -> None:
        super()._check(defaults)
        if len(defaults["etas"]) != 2 or not 0 < defaults["etas"][0] < 1 < defaults["etas"][1]:
            given = ", ".join(map(str, defaults["etas"]))
            raise ValueError(f"{type(self).__name__}: Invalid eta values: {given}; give one in (0, 1) and one above 1")

    def _initial_value(self, name: str, p: Any, group: dict[str, Any]) -> float:
        return float(group["lr"]) if name == "step_size" else 0.0

    def _plan(self, group: dict[str, Any]) -> Plan:
        return Plan("rprop.RPROP", (group["lr"], *group["etas"], *group["step_sizes"]), maximize=group["maximize"])
