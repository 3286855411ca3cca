"""SGD: stochastic gradient descent with momentum, Nesterov's form and weight decay."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tritensor.optim.optimizer import Optimizer, rate_of, refuse_differentiable, zeros_like
from tritensor.table import ops


class SGD(Optimizer):
    """p -= lr * d, where g' = g + weight_decay * p, buf = momentum * buf + (1 - dampening) * g' (g' at first), and d is
    buf, or g' + momentum * buf with nesterov, or g' without momentum (Sutskever et al. 2013, in PyTorch's form).

    One kernel launch per parameter, which reads and writes everything once. `foreach` and `fused` are accepted and change nothing.

    Args:
        params: parameters or dicts of groups.
        lr, momentum, dampening, weight_decay: numbers, 0 or more. lr may be a tensor of one value; in a CUDA graph, where numbers are
            frozen, it must be one on the GPU to be changed between replays.
        nesterov: needs momentum > 0 and dampening 0.
        maximize: go up the gradient instead of down.

    Raises:
        ValueError: a setting that makes no sense; no parameters; one that is no leaf or is given twice.
        CaptureError: a first step with momentum in the capture of a CUDA graph; take one before.
    """

    _like_params = ("momentum_buffer",)

    def __init__(
        self, params: Iterable[Any], lr: float = 1e-3, momentum: float = 0, dampening: float = 0, weight_decay: float = 0, nesterov: bool = False,
        *, maximize: bool = False, foreach: bool | None = None, differentiable: bool = False, fused: bool | None = None,
    ) -> None:  # fmt: skip
        refuse_differentiable("SGD", differentiable)
        super().__init__(
            params,
            {
                "lr": lr,
                "momentum": momentum,
                "dampening": dampening,
                "weight_decay": weight_decay,
                "nesterov": nesterov,
                "maximize": maximize,
                "foreach": foreach,
                "differentiable": differentiable,
                "fused": fused,
            },
        )

    def _check(self, group: dict[str, Any]) -> None:
        super()._check(group)
        if not group["momentum"] >= 0:
            raise ValueError(f"{type(self).__name__}: Invalid momentum value: {group['momentum']}; it must be 0 or more")
        if group["nesterov"] and (group["momentum"] <= 0 or group["dampening"] != 0):
            raise ValueError(
                f"{type(self).__name__}: "
                f"Nesterov momentum requires a momentum and zero dampening, not {group['momentum']} and {group['dampening']}; give such ones"
            )

    def _update(self, group: dict[str, Any]) -> None:
        step, state, momentum = ops.sgd_step, self.state, group["momentum"]
        settings = {k: group[k] for k in ("momentum", "dampening", "weight_decay", "nesterov", "maximize") if group[k]}
        settings["lr"], rate = rate_of(group["lr"], group["params"][0])
        for p in group["params"]:
            g = p.grad
            if g is None:
                continue
            if not momentum:
                step(p, g, None, rate, **settings)
                continue
            entry = state[p]
            buf = entry.get("momentum_buffer")
            if buf is None:
                buf = entry["momentum_buffer"] = zeros_like(p)
                step(p, g, buf, rate, first=True, **settings)
            else:
                step(p, g, buf, rate, **settings)
