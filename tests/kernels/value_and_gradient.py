"""A function's value and its gradient, at values given as numbers."""

from __future__ import annotations

from typing import Any

import tritensor as tt


def value_and_gradient(f: Any, values: list[Any], where: str, again: bool) -> tuple[tt.Tensor, tt.Tensor]:
    """f(x) and the gradient of its sum, by the kernels or by the rule."""
    x = tt.tensor(values, dtype=tt.float64, device=where, requires_grad=True)
    y = f(x)
    (g,) = tt.autograd.grad(y.sum(), x, create_graph=again)
    return y.detach(), g.detach()
