"""ASGD: descent whose parameters are averaged."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tritensor.optim.formula_optimizer import FormulaOptimizer
from tritensor.optim.plan import Plan


class ASGD(FormulaOptimizer):
    """p = (1 - lambd eta_t) p - eta_t g with eta_t = lr / (1 + lambd lr t)^alpha; state "ax" is the mean of p after step t0
    (Polyak and Juditsky 1992).

    `foreach` and `capturable` are accepted and change nothing.

    Raises:
        ValueError: a setting that makes no sense; no parameters; one that is no leaf or is given twice.
    """

    _formulas = ("asgd.ASGD",)

    def __init__(
        self, params: Iterable[Any], lr: float = 1e-2, lambd: float = 1e-4, alpha: float = 0.75, t0: float = 1e6, weight_decay: float = 0,
        foreach: bool | None = None, maximize: bool = False, differentiable: bool = False, capturable: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(params, {
            "lr": lr, "lambd": lambd, "alpha": alpha, "t0": t0, "weight_decay": weight_decay, "foreach": foreach, "maximize": maximize,
            "differentiable": differentiable, "capturable": capturable,
        })  # fmt: skip

    def _initial_value(self, name: str, p: Any, group: dict[str, Any]) -> float:
        return {"eta": float(group["lr"]), "mu": 1.0}.get(name, 0.0)

    def _plan(self, group: dict[str, Any]) -> Plan:
        return Plan("asgd.ASGD", (group["lr"], group["lambd"], group["alpha"], group["t0"]), **self._decay_settings(group))
