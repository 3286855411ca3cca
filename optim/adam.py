"""Adam: steps scaled by running moments of the gradient."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tritensor.optim.counts import counts_of
from tritensor.optim.optimizer import Optimizer, rate_of, refuse_differentiable, zeros_like
from tritensor.table import ops


class Adam(Optimizer):
    """m = b1 m + (1 - b1) g, v = b2 v + (1 - b2) g^2, p -= lr (m / (1 - b1^t)) / (sqrt(v / (1 - b2^t)) + eps) (Kingma and Ba 2015).

    weight_decay is added to the gradient as weight_decay * p; decoupled_weight_decay=True shrinks p by lr * weight_decay instead (AdamW).
    amsgrad divides by the largest v so far (Reddi et al. 2018). One kernel launch per parameter. `foreach` and `fused` are accepted
    and change nothing. `capturable` neither: on a GPU the step counts are always kept there, as float32 tensors, and a step can be
    captured in a CUDA graph. lr may be a tensor of one value; in a graph, where numbers are frozen, it must be one on the GPU to be
    changed between replays.

    Raises:
        ValueError: a setting that makes no sense; no parameters; one that is no leaf or is given twice.
        CaptureError: a first step in the capture of a CUDA graph; take one before.
    """

    _decoupled = False
    _like_params = ("exp_avg", "exp_avg_sq", "max_exp_avg_sq")

    def __init__(
        self, params: Iterable[Any], lr: float = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8, weight_decay: float = 0,
        amsgrad: bool = False, *, foreach: bool | None = None, maximize: bool = False, capturable: bool = False, differentiable: bool = False,
        fused: bool | None = None, decoupled_weight_decay: bool = False,
    ) -> None:  # fmt: skip
        refuse_differentiable(type(self).__name__, differentiable)
        defaults = {"lr": lr, "betas": tuple(betas), "eps": eps, "weight_decay": weight_decay, "amsgrad": amsgrad, "maximize": maximize}
        accepted = {"foreach": foreach, "capturable": capturable, "differentiable": differentiable, "fused": fused}
        super().__init__(params, {**defaults, **accepted, "decoupled_weight_decay": decoupled_weight_decay or self._decoupled})

    def _check(self, group: dict[str, Any]) -> None:
        super()._check(group)
        if not group["eps"] >= 0:
            raise ValueError(f"{type(self).__name__}: Invalid epsilon value: {group['eps']}; it must be 0 or more")
        if len(group["betas"]) != 2:
            raise ValueError(f"{type(self).__name__}: Invalid betas: {group['betas']}; give two numbers")
        for i, beta in enumerate(group["betas"]):
            if not 0 <= beta < 1:
                raise ValueError(f"{type(self).__name__}: Invalid beta parameter at index {i}: {beta}; it must be in [0, 1)")

    def _update(self, group: dict[str, Any]) -> None:
        step, state, amsgrad = ops.adam_step, self.state, group["amsgrad"]
        beta1, beta2 = group["betas"]
        rate, on_device = rate_of(group["lr"], group["params"][0])
        settings = {"beta1": beta1, "beta2": beta2, "eps": group["eps"]}
        settings |= {k: group[k] for k in ("weight_decay", "maximize") if group[k]}
        if group["decoupled_weight_decay"]:
            settings["decoupled"] = True
        gpus: dict[Any, list[Any]] = {}
        for p in group["params"]:
            g = p.grad
            if g is None:
                continue
            entry = state[p]
            if not entry:
                entry["step"] = 0
                entry["exp_avg"], entry["exp_avg_sq"] = zeros_like(p), zeros_like(p)
            if amsgrad and "max_exp_avg_sq" not in entry:
                entry["max_exp_avg_sq"] = zeros_like(p)
            if p.device.type == "cuda":
                gpus.setdefault(p.device, []).append((p, entry))
                continue
            entry["step"] = count = entry["step"] + 1
            step(
                p,
                g,
                entry["exp_avg"],
                entry["exp_avg_sq"],
                entry["max_exp_avg_sq"] if amsgrad else None,
                None,
                lr=rate,
                step=count,
                **settings,
            )
        for found in gpus.values():
            numbers = counts_of(self, found)
            decay = group["weight_decay"] if group["decoupled_weight_decay"] else 0.0
            ops.adam_count(numbers.counts, numbers.scalars, on_device, lr=rate, beta1=beta1, beta2=beta2, decay=float(decay))
            for (p, entry), scalars in zip(found, numbers.rows, strict=True):
                step(p, p.grad, entry["exp_avg"], entry["exp_avg_sq"], entry["max_exp_avg_sq"] if amsgrad else None, scalars, **settings)
