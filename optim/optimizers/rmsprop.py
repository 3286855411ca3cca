"""RMSprop: steps scaled by a running mean of squared gradients."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tritensor.optim.formula_optimizer import FormulaOptimizer
from tritensor.optim.plan import Plan


class RMSprop(FormulaOptimizer):
    """v = alpha v + (1 - alpha) g^2, d = g / (sqrt(v) + eps), p -= lr d, or with momentum buf = momentum buf + d, p -= lr buf (Hinton 2012).

    centered: the root is of v - mean^2, with a running mean of the gradient (Graves 2013). `foreach` and `capturable` are accepted and
    change nothing.

    Raises:
        ValueError: a setting that makes no sense; no parameters; one that is no leaf or is given twice.
    """

    _formulas = ("rmsprop.RMSPROP", "rmsprop.MOVING", "rmsprop.CENTERED", "rmsprop.CENTERED_MOVING")

    def __init__(
        self, params: Iterable[Any], lr: float = 1e-2, alpha: float = 0.99, eps: float = 1e-8, weight_decay: float = 0, momentum: float = 0,
        centered: bool = False, capturable: bool = False, foreach: bool | None = None, maximize: bool = False, differentiable: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(params, {
            "lr": lr, "momentum": momentum, "alpha": alpha, "eps": eps, "centered": centered, "weight_decay": weight_decay, "capturable": capturable,
            "foreach": foreach, "maximize": maximize, "differentiable": differentiable,
        })  # fmt: skip

    def _check(self, defaults: dict[str, Any]) -> None:
        super()._check(defaults)
        self._refuse_below(defaults, eps="epsilon value", momentum="momentum value", alpha="alpha value")

    def _plan(self, group: dict[str, Any]) -> Plan:
        formula = self._formulas[2 * bool(group["centered"]) + (group["momentum"] > 0)]
        return Plan(formula, (group["lr"], group["alpha"], group["eps"], group["momentum"]), **self._decay_settings(group))
