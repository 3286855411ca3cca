"""AdamW: Adam with weight decay apart from the moments."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tritensor.optim.adam import Adam


class AdamW(Adam):
    """Adam whose weight decay does not pass through the moments: p shrinks by lr * weight_decay first (Loshchilov and Hutter 2019)."""

    _decoupled = True

    def __init__(
        self, params: Iterable[Any], lr: float = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8, weight_decay: float = 1e-2,
        amsgrad: bool = False, *, maximize: bool = False, foreach: bool | None = None, capturable: bool = False, differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:  # fmt: skip
        super().__init__(
            params, lr, betas, eps, weight_decay, amsgrad, foreach=foreach, maximize=maximize, capturable=capturable,
            differentiable=differentiable, fused=fused,
        )  # fmt: skip
