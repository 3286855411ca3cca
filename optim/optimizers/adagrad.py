"""Adagrad: steps scaled by all gradients so far."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tritensor.optim.formula_optimizer import FormulaOptimizer
from tritensor.optim.optimizer import refuse_together
from tritensor.optim.plan import Plan


class Adagrad(FormulaOptimizer):
    """s += g^2, p -= lr / (1 + (t - 1) lr_decay) g / (sqrt(s) + eps) (Duchi et al. 2011). States are there from the beginning.

    `foreach` and `fused` are accepted and change nothing.

    Raises:
        ValueError: a setting that makes no sense; no parameters; one that is no leaf or is given twice.
    """

    _formulas = ("adagrad.ADAGRAD",)

    def __init__(
        self, params: Iterable[Any], lr: float = 1e-2, lr_decay: float = 0, weight_decay: float = 0, initial_accumulator_value: float = 0,
        eps: float = 1e-10, foreach: bool | None = None, *, maximize: bool = False, differentiable: bool = False, fused: bool | None = None,
    ) -> None:  # fmt: skip
        super().__init__(params, {
            "lr": lr, "lr_decay": lr_decay, "eps": eps, "weight_decay": weight_decay, "initial_accumulator_value": initial_accumulator_value,
            "foreach": foreach, "maximize": maximize, "differentiable": differentiable, "fused": fused,
        })  # fmt: skip
        refuse_together("Adagrad", foreach=foreach, fused=fused, differentiable=differentiable)
        for group in self.param_groups:
            for p in group["params"]:
                self._make_entry(p, self._plan(group), group)

    def _check(self, defaults: dict[str, Any]) -> None:
        super()._check(defaults)
        self._refuse_below(
            defaults, lr_decay="lr_decay value", initial_accumulator_value="initial_accumulator_value value", eps="epsilon value"
        )

    def _initial_value(self, name: str, p: Any, group: dict[str, Any]) -> float:
        return self.defaults["initial_accumulator_value"] if name == "sum" else 0.0  # type: ignore[no-any-return]

    def share_memory(self) -> None:
        """Nothing: memory is not shared between processes."""

    def _plan(self, group: dict[str, Any]) -> Plan:
        return Plan("adagrad.ADAGRAD", (group["lr"], group["lr_decay"], group["eps"]), **self._decay_settings(group))
