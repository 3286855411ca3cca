"""Rprop and Lion: steps that look at signs alone."""

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


class Lion(FormulaOptimizer):
    """p -= lr sign(b1 m + (1 - b1) g), m = b2 m + (1 - b2) g; weight decay shrinks p by lr * weight_decay (Chen et al. 2023).

    Not in PyTorch: the names are those of the authors' own program. A rate of a third to a tenth of Adam's, with a weight decay as much larger,
    is what they advise. `foreach` is accepted and changes nothing.

    >>> w = nn.Parameter(tt.tensor([1.0, -1.0]))
    >>> (w * w).sum().backward()
    >>> tt.optim.Lion([w], lr=0.25).step()
    >>> w.tolist()
    [0.75, -0.75]

    Raises:
        ValueError: a setting that makes no sense; no parameters; one that is no leaf or is given twice.
    """

    _formulas = ("lion.LION",)

    def __init__(
        self, params: Iterable[Any], lr: float = 1e-4, betas: tuple[float, float] = (0.9, 0.99), weight_decay: float = 0.0, *,
        foreach: bool | None = None, maximize: bool = False, differentiable: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(params, {
            "lr": lr, "betas": betas, "weight_decay": weight_decay, "foreach": foreach, "maximize": maximize, "differentiable": differentiable,
        })  # fmt: skip

    def _check(self, defaults: dict[str, Any]) -> None:
        super()._check(defaults)
        self._check_betas(defaults)

    def _plan(self, group: dict[str, Any]) -> Plan:
        return Plan("lion.LION", (group["lr"], *group["betas"]), **self._decay_settings(group, True))
