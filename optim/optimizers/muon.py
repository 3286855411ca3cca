"""Muon: momentum whose matrices are made orthogonal."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from tritensor.ground import dtypes
from tritensor.optim.optimizer import Optimizer
from tritensor.optim.state import filled_like, to_number
from tritensor.tensor.core import Tensor

_RATES = (None, "original", "match_rms_adamw")


class Muon(Optimizer):
    """p -= lr' U V^T, with U S V^T the momentum's decomposition, nearly: a few steps of a Newton-Schulz iteration of degree five in bfloat16
    (Jordan et al. 2024). For the matrices inside a network; give vectors, embeddings and the last layer to AdamW.

    Made of operations on each parameter: nearly all of its time are matrix products.

    Args:
        momentum, nesterov: of the running mean of the gradient.
        ns_coefficients, ns_steps, eps: of the iteration, and what the norm is never below.
        adjust_lr_fn: how lr depends on a matrix's shape (A, B): "original" or None, times sqrt(max(1, A / B)); "match_rms_adamw",
            times 0.2 sqrt(max(A, B)).

    Raises:
        ValueError: a setting that makes no sense; a parameter that is no matrix.
    """

    _like_params = ("momentum_buffer",)

    def __init__(
        self, params: Iterable[Any], lr: float = 1e-3, weight_decay: float = 0.1, momentum: float = 0.95, nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = (3.4445, -4.775, 2.0315), eps: float = 1e-7, ns_steps: int = 5, adjust_lr_fn: str | None = None,
    ) -> None:  # fmt: skip
        super().__init__(params, {
            "lr": lr, "weight_decay": weight_decay, "momentum": momentum, "nesterov": nesterov, "ns_coefficients": ns_coefficients, "eps": eps,
            "ns_steps": ns_steps, "adjust_lr_fn": adjust_lr_fn,
        })  # fmt: skip

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """As Optimizer's. Raises ValueError for a parameter that is no matrix."""
        super().add_param_group(param_group)
        for p in param_group["params"]:
            if p.ndim != 2:
                self.param_groups.pop()
                raise ValueError(f"Muon: a parameter of size {tuple(p.shape)}, and Muon only supports 2D parameters; give it to AdamW")

    _check_group = Optimizer._refuse_unusable

    def _check(self, defaults: dict[str, Any]) -> None:
        self._refuse_many(defaults)
        for called, key in (("Learning rate", "lr"), ("momentum", "momentum"), ("weight decay", "weight_decay")):
            if not float(defaults[key]) >= 0:
                raise ValueError(f"Muon: {called} should be >= 0 but is: {defaults[key]}; give such a number")
        if defaults["adjust_lr_fn"] not in _RATES:
            raise ValueError(
                f"Muon: Adjust learning rate function {defaults['adjust_lr_fn']} is not supported; give one of {', '.join(map(repr, _RATES))}"
            )

    def _update(self, group: dict[str, Any]) -> None:
        lr, momentum = to_number(group["lr"]), group["momentum"]
        for p in group["params"]:
            g = p.grad
            if g is None:
                continue
            if p.is_complex():
                raise RuntimeError("Muon does not support complex parameters; keep real and imaginary parts apart")
            entry = self.state[p]
            if "momentum_buffer" not in entry:
                entry["momentum_buffer"] = filled_like(p)
            buf = entry["momentum_buffer"].lerp_(g, 1 - momentum)
            update = orthogonalise(
                g.lerp(buf, momentum) if group["nesterov"] else buf, group["ns_coefficients"], group["ns_steps"], group["eps"]
            )
            rows, columns = p.shape
            factor = _rate_factor(group["adjust_lr_fn"], rows, columns)
            p.mul_(1 - lr * group["weight_decay"])
            p.add_(update, alpha=-lr * factor)


def _rate_factor(adjust_lr_fn: str | None, rows: int, columns: int) -> float:
    """How lr depends on a matrix's shape. Of another name than the constructor takes, which a group may give, not at all, as in PyTorch."""
    if adjust_lr_fn == "match_rms_adamw":
        return 0.2 * math.sqrt(max(rows, columns))
    return math.sqrt(max(1, rows / columns)) if adjust_lr_fn in _RATES else 1.0


def orthogonalise(g: Tensor, coefficients: tuple[float, float, float], steps: int, eps: float) -> Tensor:
    """A matrix (m, n) with its singular values brought near 1, in bfloat16: x = a x + (b s + c s s) x, s = x x^T, `steps` times.

    Raises ValueError for 100 steps or more, or other than three coefficients.
    """
    if steps >= 100:
        raise ValueError("Number of steps must be less than 100 for computational efficiency")
    if len(coefficients) != 3:
        raise ValueError("Coefficients must be a tuple of exactly 3 values")
    a, b, c = coefficients
    x = g.to(dtypes.bfloat16)
    tall = g.shape[0] > g.shape[1]
    # x x^T is the smaller of the two squares then
    if tall:
        x = x.t()
    x = x.div(x.norm().clamp(min=eps))
    for _ in range(steps):
        gram = x @ x.t()
        x = _addmm_rounded_once(x, _addmm_rounded_once(gram, gram, gram, b, c), x, a, 1.0)
    return x.t() if tall else x


def _addmm_rounded_once(c: Tensor, a: Tensor, b: Tensor, beta: float, alpha: float) -> Tensor:
    """beta c + alpha a @ b of bfloat16. On the CPU the product is one of float32 anyway, and need not be rounded on the way."""
    if c.device.type != "cpu":
        return c.addmm(a, b, beta=beta, alpha=alpha)  # type: ignore[no-any-return]
    return c.float().mul_(beta).add_(a.float() @ b.float(), alpha=alpha).to(dtypes.bfloat16)  # type: ignore[no-any-return]
