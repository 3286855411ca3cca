"""SparseAdam: its settings and refusals; there are no sparse gradients here."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tritensor.optim.optimizer import Optimizer


class SparseAdam(Optimizer):
    """Adam for sparse gradients alone, as PyTorch has it. Gradients are dense here, those of embeddings, too: step refuses them as PyTorch does.

    Raises:
        ValueError: a setting that makes no sense; a complex parameter; no parameters; one that is no leaf or is given twice.
        RuntimeError: step, where a parameter has a gradient.
    """

    _like_params = ("exp_avg", "exp_avg_sq")

    def __init__(
        self, params: Iterable[Any], lr: float = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8, maximize: bool = False
    ) -> None:
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "maximize": maximize})
        found = [[i, k] for i, group in enumerate(self.param_groups) for k, p in enumerate(group["params"]) if p.is_complex()]
        if found:
            raise ValueError(f"Complex params at indices {found}: SparseAdam does not support complex parameters; give real ones")

    _check_group = Optimizer._refuse_corrections

    def _check(self, defaults: dict[str, Any]) -> None:
        self._check_rates(defaults)
        if not float(defaults["lr"]) > 0:
            raise ValueError(f"SparseAdam: Invalid learning rate: {defaults['lr']}; it must be above 0")
        if not defaults["eps"] > 0:
            raise ValueError(f"SparseAdam: Invalid epsilon value: {defaults['eps']}; it must be above 0")
        self._check_betas(defaults)

    def _update(self, group: dict[str, Any]) -> None:
        if any(p.grad is not None for p in group["params"]):
            raise RuntimeError(
                "SparseAdam does not support dense gradients, please consider Adam instead. There are no sparse gradients here, those of "
                "Embedding(sparse=True) are dense, too: optim.Adam(params, lr=...) takes the same settings"
            )
