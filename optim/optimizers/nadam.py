"""NAdam: Adam with Nesterov's momentum."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tritensor.optim.formula_optimizer import FormulaOptimizer
from tritensor.optim.plan import Plan


class NAdam(FormulaOptimizer):
    """Adam whose step looks ahead along the momentum, whose weight mu_t = b1 (1 - 0.96^(t momentum_decay) / 2) grows (Dozat 2016).

    decoupled_weight_decay=True shrinks p by lr * weight_decay instead of adding weight_decay * p to the gradient. `foreach` and `capturable`
    are accepted and change nothing.

    Raises:
        ValueError: a setting that makes no sense; no parameters; one that is no leaf or is given twice.
    """

    _formulas = ("nadam.NADAM",)

    def __init__(
        self, params: Iterable[Any], lr: float = 2e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8, weight_decay: float = 0,
        momentum_decay: float = 4e-3, decoupled_weight_decay: bool = False, *, foreach: bool | None = None, maximize: bool = False,
        capturable: bool = False, differentiable: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(params, {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "momentum_decay": momentum_decay,
            "decoupled_weight_decay": decoupled_weight_decay, "maximize": maximize, "foreach": foreach, "capturable": capturable,
            "differentiable": differentiable,
        })  # fmt: skip

    def _check(self, defaults: dict[str, Any]) -> None:
        super()._check(defaults)
        self._refuse_below(defaults, eps="epsilon value", momentum_decay="momentum_decay value")
        self._check_betas(defaults)

    def _initial_value(self, name: str, p: Any, group: dict[str, Any]) -> float:
        return 1.0 if name == "mu_product" else 0.0

    def _plan(self, group: dict[str, Any]) -> Plan:
        settings = (group["lr"], *group["betas"], group["eps"], group["momentum_decay"])
        return Plan("nadam.NADAM", settings, **self._decay_settings(group, group["decoupled_weight_decay"]))
