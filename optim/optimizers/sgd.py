"""SGD and ASGD: stochastic gradient descent, with momentum, or with parameters that are averaged."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tritensor.optim.formula_optimizer import FormulaOptimizer
from tritensor.optim.optimizer import refuse_together
from tritensor.optim.plan import Plan


class SGD(FormulaOptimizer):
    """p -= lr * d, where g' = g + weight_decay * p, buf = momentum * buf + (1 - dampening) * g' (g' at first), and d is
    buf, or g' + momentum * buf with nesterov, or g' without momentum (Sutskever et al. 2013, in PyTorch's form).

    `foreach` and `fused` are accepted and change nothing: a step is always one of all parameters. With differentiable=True it can be
    differentiated.

    Args:
        params: parameters or dicts of groups.
        lr, momentum, dampening, weight_decay: numbers, 0 or more. lr may be a tensor of one value; in a CUDA graph, where numbers are
            frozen, it must be one on the GPU to be changed between replays.
        nesterov: needs momentum > 0 and dampening 0.
        maximize: go up the gradient instead of down.

    Raises:
        ValueError: a setting that makes no sense; no parameters; one that is no leaf or is given twice.
        CaptureError: a first step in the capture of a CUDA graph; take one before.

    >>> w = tt.tensor([1.0], requires_grad=True)
    >>> optimizer = tt.optim.SGD([w], lr=0.1)
    >>> (w**2).sum().backward()
    >>> optimizer.step()
    >>> w
    tensor([0.8000], requires_grad=True)
    """

    _formulas = ("sgd.SGD", "sgd.MOMENTUM")
    _not_below_zero = {"momentum": "momentum value"}  # noqa: RUF012

    def __init__(
        self, params: Iterable[Any], lr: float = 1e-3, momentum: float = 0, dampening: float = 0, weight_decay: float = 0, nesterov: bool = False,
        *, maximize: bool = False, foreach: bool | None = None, differentiable: bool = False, fused: bool | None = None,
    ) -> None:  # fmt: skip
        refuse_together("SGD", foreach=foreach, fused=fused, differentiable=differentiable)
        super().__init__(params, {
            "lr": lr, "momentum": momentum, "dampening": dampening, "weight_decay": weight_decay, "nesterov": nesterov, "maximize": maximize,
            "foreach": foreach, "differentiable": differentiable, "fused": fused,
        })  # fmt: skip

    def _check(self, defaults: dict[str, Any]) -> None:
        super()._check(defaults)
        if defaults["nesterov"] and (defaults["momentum"] <= 0 or defaults["dampening"] != 0):
            raise ValueError(
                f"{type(self).__name__}: "
                f"Nesterov momentum requires a momentum and zero dampening, not {defaults['momentum']} and {defaults['dampening']}; give such ones"
            )

    def _update(self, group: dict[str, Any]) -> None:
        params = [p for p in group["params"] if p.grad is not None]
        if not group["momentum"]:
            if params:
                self._step(params, Plan("sgd.SGD", (group["lr"],), **self._decay_settings(group)), group)
            return
        state, settings = self.state, (group["lr"], group["momentum"], group["dampening"])
        # a parameter whose gradient comes late has its first step later: its buffer begins with the gradient, undamped
        begun = [state.get(p, {}).get("momentum_buffer") is not None for p in params]
        for first in {not b for b in begun}:
            some = [p for p, b in zip(params, begun, strict=True) if b is not first]
            self._step(some, Plan("sgd.MOMENTUM", settings, flags=(bool(group["nesterov"]), first), **self._decay_settings(group)), group)


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
