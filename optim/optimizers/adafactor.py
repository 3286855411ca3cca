"""Adafactor: Adam's second moment as a product of a row and a column."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import ml_dtypes
import numpy as np

from tritensor.autograd.node import version_of
from tritensor.autograd.saved import copy_for_borrowers
from tritensor.ops.lazy_array import compute_now
from tritensor.ops.table import ops
from tritensor.optim.optimizer import Optimizer
from tritensor.optim.state import filled_like, new_step_count, to_number
from tritensor.tensor.core import Tensor


class Adafactor(Optimizer):
    """Steps of a size relative to the parameter's, scaled by running means of g^2 over rows and over columns (Shazeer and Stern 2018), of which
    the memory is that of a vector. Parameters of one dimension or none keep the whole mean.

    A parameter at a time, since its sums need several passes; the others' steps are one launch. `foreach` is accepted and
    changes nothing.

    Args:
        lr: the largest relative step; rho_t = min(lr, 1 / sqrt(t)).
        beta2_decay: means are of weight t^beta2_decay.
        eps: (eps1, eps2), below which neither second moments nor a parameter's size fall; eps1 None is the type's.
        d: a step's root mean square is cut to it.
        weight_decay: p shrinks by lr * weight_decay.

    Raises:
        ValueError: a setting that makes no sense; no parameters; one that is no leaf or is given twice.
        RuntimeError: a complex parameter.
    """

    _scalars = ("step",)

    def __init__(
        self, params: Iterable[Any], lr: float = 1e-2, beta2_decay: float = -0.8, eps: tuple[float | None, float] = (None, 1e-3), d: float = 1.0,
        weight_decay: float = 0.0, *, foreach: bool | None = None, maximize: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(params, {
            "lr": lr, "beta2_decay": beta2_decay, "eps": eps, "d": d, "weight_decay": weight_decay, "foreach": foreach, "maximize": maximize,
        })  # fmt: skip

    _check_group = Optimizer._refuse_unusable

    def _check(self, defaults: dict[str, Any]) -> None:
        self._refuse_many(defaults)
        lr, eps, d, decay, shrinking = (defaults[k] for k in ("lr", "eps", "d", "beta2_decay", "weight_decay"))
        for called, wanted, value, holds in (
            ("Learning rate", ">= 0", lr, float(lr) >= 0), ("beta2_decay", "<= 0", decay, decay <= 0),
            ("epsilon1", ">= 0", eps[0], eps[0] is None or eps[0] >= 0), ("epsilon2", ">= 0", eps[1], eps[1] >= 0),
            ("Clipping threshold d", ">= 1", d, d >= 1), ("weight_decay", ">= 0", shrinking, shrinking >= 0),
        ):  # fmt: skip
            if not holds:
                raise ValueError(f"Adafactor: {called} should be {wanted} but is: {value}; give such a number")

    def _update(self, group: dict[str, Any]) -> None:
        for p in group["params"]:
            if p.grad is None:
                continue
            if p.is_complex():
                raise RuntimeError("Adafactor does not support complex parameters; keep real and imaginary parts apart")
            self._step_one(p, p.grad, self._make_entry(p), group)

    def _make_entry(self, p: Tensor) -> dict[str, Any]:
        entry = self.state[p]
        if not entry:
            entry["step"] = new_step_count()
            if p.ndim > 1:
                shape = tuple(p.shape)
                for name, size in (("row_var", (*shape[:-1], 1)), ("col_var", (*shape[:-2], 1, shape[-1]))):
                    entry[name] = ops.full(shape=size, value=0, dtype=p._array.dtype, device=p.device)
            else:
                entry["variance"] = filled_like(p)
        return entry

    def _step_one(self, p: Tensor, g: Tensor, entry: dict[str, Any], group: dict[str, Any]) -> None:
        t, lr, (eps1, eps2) = entry["step"].item() + 1, to_number(group["lr"]), group["eps"]
        entry["step"].fill_(t)
        # its root mean square would divide by 0; the step is counted all the same
        if p.numel() == 0:
            return
        eps1 = float(ml_dtypes.finfo(p._array.dtype).eps) if eps1 is None else eps1
        weight, relative = t ** group["beta2_decay"], min(lr, 1 / t**0.5)
        compute_now(p, g, *entry.values())
        if isinstance(p._array, np.ndarray):
            from tritensor.kernels.optimizers.adafactor_cpu import Settings, step

            settings = Settings(lr, group["weight_decay"], weight, eps1, eps2, relative, group["d"], group["maximize"])
            moments = [v for k, v in entry.items() if k != "step"]
            for x in (p, *moments):
                copy_for_borrowers(x)
            with np.errstate(all="ignore"):
                step(p._array, g._array, tuple([v._array for v in moments]), settings)
            for x in (p, *moments):
                version_of(x).bump("Adafactor.step")
            return
        size = max(eps2, p.norm(2).item() / p.numel() ** 0.5) * relative
        g = -g if group["maximize"] else g
        if group["weight_decay"]:
            p.mul_(1 - lr * group["weight_decay"])
        if g.ndim > 1:
            for name, dim in (("row_var", -1), ("col_var", -2)):
                entry[name].lerp_(g.norm(2, dim=dim, keepdim=True).square_().div_(g.shape[dim]), weight)
            estimate = entry["row_var"] @ entry["col_var"]
            estimate.div_(entry["row_var"].mean(dim=-2, keepdim=True).clamp_(min=eps1))
        else:
            estimate = entry["variance"].lerp_(g * g, weight).clone()
        update = estimate.clamp_(min=eps1 * eps1).rsqrt_().mul_(g)
        cut = max(1.0, update.norm(2).item() / (update.numel() ** 0.5 * group["d"]))
        p.add_(update, alpha=-size / cut)
