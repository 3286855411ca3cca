"""Bases of the losses' modules: the reduction, and a weight that is a buffer."""

from __future__ import annotations

from typing import Any

from tritensor.nn.functional.losses.checks import reduction_name
from tritensor.nn.module import Module
from tritensor.tensor.core import Tensor


class _Loss(Module):
    """A loss and how it is reduced. Losses of users derive from it, under this name of PyTorch's, and may know reductions of their own."""

    reductions: tuple[str, ...] | None = None  # None: any

    def __init__(self, size_average: Any = None, reduce: Any = None, reduction: str = "mean") -> None:
        super().__init__()
        reduction = reduction_name(size_average, reduce, reduction)
        if self.reductions is not None and reduction not in self.reductions:  # said when it is made, not after the first forward
            raise ValueError(
                f"{type(self).__name__}: reduction is {reduction!r}; it is {', '.join(map(repr, self.reductions[:-1]))} or 'none'"
            )
        self.reduction = reduction


class _WeightedLoss(_Loss):
    """A loss with a weight for each class or element."""

    weight: Tensor | None

    def __init__(self, weight: Tensor | None = None, size_average: Any = None, reduce: Any = None, reduction: str = "mean") -> None:
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)  # a buffer: it moves with the module and is in its state_dict


class Loss(_Loss):
    """A loss that is reduced by "mean", "sum" or "none"."""

    reductions: tuple[str, ...] | None = ("mean", "sum", "none")


class WeightedLoss(_WeightedLoss, Loss):
    """Such a loss with a weight for each class or element."""
