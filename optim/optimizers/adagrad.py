"""Adagrad, RMSprop, Adadelta: steps scaled by the squares of the gradients so far."""

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
    _not_below_zero = {  # noqa: RUF012
        "lr_decay": "lr_decay value", "initial_accumulator_value": "initial_accumulator_value value", "eps": "epsilon value",
    }  # fmt: skip

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

    def _initial_value(self, name: str, p: Any, group: dict[str, Any]) -> float:
        return self.defaults["initial_accumulator_value"] if name == "sum" else 0.0  # type: ignore[no-any-return]

    def share_memory(self) -> None:
        """Nothing: memory is not shared between processes."""

    def _plan(self, group: dict[str, Any]) -> Plan:
        return Plan("adagrad.ADAGRAD", (group["lr"], group["lr_decay"], group["eps"]), **self._decay_settings(group))


class RMSprop(FormulaOptimizer):
    """v = alpha v + (1 - alpha) g^2, d = g / (sqrt(v) + eps), p -= lr d, or with momentum buf = momentum buf + d, p -= lr buf (Hinton 2012).

    centered: the root is of v - mean^2, with a running mean of the gradient (Graves 2013). `foreach` and `capturable` are accepted and
    change nothing.

    Raises:
        ValueError: a setting that makes no sense; no parameters; one that is no leaf or is given twice.
    """

    _formulas = ("rmsprop.RMSPROP", "rmsprop.MOVING", "rmsprop.CENTERED", "rmsprop.CENTERED_MOVING")
    _not_below_zero = {"eps": "epsilon value", "momentum": "momentum value", "alpha": "alpha value"}  # noqa: RUF012

    def __init__(
        self, params: Iterable[Any], lr: float = 1e-2, alpha: float = 0.99, eps: float = 1e-8, weight_decay: float = 0, momentum: float = 0,
        centered: bool = False, capturable: bool = False, foreach: bool | None = None, maximize: bool = False, differentiable: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(params, {
            "lr": lr, "momentum": momentum, "alpha": alpha, "eps": eps, "centered": centered, "weight_decay": weight_decay, "capturable": capturable,
            "foreach": foreach, "maximize": maximize, "differentiable": differentiable,
        })  # fmt: skip

    def _plan(self, group: dict[str, Any]) -> Plan:
        formula = self._formulas[2 * bool(group["centered"]) + (group["momentum"] > 0)]
        return Plan(formula, (group["lr"], group["alpha"], group["eps"], group["momentum"]), **self._decay_settings(group))


class Adadelta(FormulaOptimizer):
    """v = rho v + (1 - rho) g^2, d = sqrt(a + eps) / sqrt(v + eps) g, a = rho a + (1 - rho) d^2, p -= lr d (Zeiler 2012).

    `foreach` and `capturable` are accepted and change nothing.

    Raises:
        ValueError: a setting that makes no sense; no parameters; one that is no leaf or is given twice.
    """

    _formulas = ("adadelta.ADADELTA",)
    _not_below_zero = {"eps": "epsilon value"}  # noqa: RUF012

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
        if not 0 <= defaults["rho"] <= 1:
            raise ValueError(f"{type(self).__name__}: Invalid rho value: {defaults['rho']}; it must be in [0, 1]")

    def _plan(self, group: dict[str, Any]) -> Plan:
        return Plan("adadelta.ADADELTA", (group["lr"], group["rho"], group["eps"]), **self._decay_settings(group))
