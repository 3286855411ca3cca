"""RAdam: Adam whose step is rectified while the variance is not known."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tritensor.optim.formula_optimizer import FormulaOptimizer
from tritensor.optim.plan import Plan


class RAdam(FormulaOptimizer):
    """Adam that steps by its momentum alone for the first steps, and then by a rectified adaptive rate (Liu et al. 2020).

    decoupled_weight_decay=True shrinks p by lr * weight_decay instead of adding weight_decay * p to the gradient. `foreach` and `capturable`
    are accepted and change nothing.

    Raises:
        ValueError: a setting that makes no sense; no parameters; one that is no leaf or is given twice.
    """

    _formulas = ("radam.RADAM",)

    def __init__(
        self, params: Iterable[Any], lr: float = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8, weight_decay: float = 0,
        decoupled_weight_decay: bool = False, *, foreach: bool | None = None, maximize: bool = False, capturable: bool = False,
        differentiable: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(params, {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "maximize": maximize, "foreach": foreach, "capturable": capturable,
            "decoupled_weight_decay": decoupled_weight_decay, "differentiable": differentiable,
        })  # fmt: skip

    def _check(self, defaults: dict[str, Any]) -> None:
        super()._check(defaults)
        self._refuse_below(defaults, eps="epsilon value")
        self._check_betas(defaults)

    def _plan(self, group: dict[str, Any]) -> Plan:
        return Plan(
            "radam.RADAM", (group["lr"], *group["betas"], group["eps"]), **self._decay_settings(group, group["decoupled_weight_decay"])
        )
