"""Adadelta: steps in the measure of the steps before."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tritensor.optim.formula_optimizer import FormulaOptimizer
from tritensor.optim.plan import Plan


class Adadelta(FormulaOptimizer):
    """v = rho v + (1 - rho) g^2, d = sqrt(a + eps) / sqrt(v + eps) g, a = rho a + (1 - rho) d^2, p -= lr d (Zeiler 2012).

    `foreach` and `capturable` are accepted and change nothing.

    Raises:
        ValueError: a setting that makes no sense; no parameters; one that is no leaf or is given twice.
    """

    _formulas = ("adadelta.ADADELTA",)

    def __init__(
        self, params: Iterable[Any], lr: float = 1.0, rho: float = 0.9, eps: float = 1e-6, weight_decay: float = 0, foreach: bool | None = None,
        *, capturable: bool = False, maximize: bool = False, differentiable: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(params, {
            "lr": lr, "rho": rho, "eps": eps, "weight_decay": weight_decay, "maximize": maximize, "capturable": capturable, "foreach": foreach,
            "differentiable": differentiable,
        })  # fmt: skip

    def _check(self, defaults: dict[str, Any]) -> None:
        super()._check(defaults)
        self._refuse_below(defaults, eps="epsilon value")
        if not 0 <= defaults["rho"] <= 1:
            raise ValueError(f"{type(self).__name__}: Invalid rho value: {defaults['rho']}; it must be in [0, 1]")

    def _plan(self, group: dict[str, Any]) -> Plan:
        return Plan("adadelta.ADADELTA", (group["lr"], group["rho"], group["eps"]), **self._decay_settings(group))
