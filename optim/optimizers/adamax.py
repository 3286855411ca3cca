"""Adamax: Adam by the largest gradient."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tritensor.optim.formula_optimizer import FormulaOptimizer
from tritensor.optim.plan import Plan


class Adamax(FormulaOptimizer):
    """m = b1 m + (1 - b1) g, u = max(b2 u, |g| + eps), p -= lr / (1 - b1^t) m / u (Kingma and Ba 2015, section 7).

    `foreach` and `capturable` are accepted and change nothing.

    Raises:
        ValueError: a setting that makes no sense; no parameters; one that is no leaf or is given twice.
    """

    _formulas = ("adamax.ADAMAX",)

    def __init__(
        self, params: Iterable[Any], lr: float = 2e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8, weight_decay: float = 0,
        foreach: bool | None = None, *, maximize: bool = False, differentiable: bool = False, capturable: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(params, {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "foreach": foreach, "maximize": maximize,
            "differentiable": differentiable, "capturable": capturable,
        })  # fmt: skip

    def _check_group(self, settings: dict[str, Any]) -> None:
        self._refuse_corrections(settings, second=False)

    def _check(self, defaults: dict[str, Any]) -> None:
        super()._check(defaults)
        self._refuse_below(defaults, eps="epsilon value")
        self._check_betas(defaults)

    def _plan(self, group: dict[str, Any]) -> Plan:
        return Plan("adamax.ADAMAX", (group["lr"], *group["betas"], group["eps"]), **self._decay_settings(group))
