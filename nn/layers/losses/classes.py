"""Losses of classes: the target is one class number, or several."""

from __future__ import annotations

import math
from typing import Any

from tritensor.ground.errors import ArgumentError, ShapeError
from tritensor.nn import functional as F
from tritensor.nn.functional.losses.classes import LinearCrossEntropyOptions
from tritensor.nn.layers.linear import Linear
from tritensor.nn.layers.losses.base import Loss, WeightedLoss
from tritensor.tensor.core import Tensor


class CrossEntropyLoss(WeightedLoss):
    """-log softmax(input)[target]: input (batch, classes, ...), target (batch, ...) of class numbers, or of input's shape holding probabilities.

    >>> nn.CrossEntropyLoss()(tt.zeros(2, 4), tt.tensor([3, 0]))  # log(4): four classes
    tensor(1.3863)
    """

    def __init__(
        self, weight: Tensor | None = None, size_average: Any = None, ignore_index: int = -100, reduce: Any = None, reduction: str = "mean",
        label_smoothing: float = 0.0,
    ) -> None:  # fmt: skip
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index, self.label_smoothing = ignore_index, label_smoothing

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.cross_entropy(
            input, target, self.weight, ignore_index=self.ignore_index, reduction=self.reduction, label_smoothing=self.label_smoothing
        )


class NLLLoss(WeightedLoss):
    """-input[target]: input (batch, classes, ...) of log-probabilities, target (batch, ...) of class numbers."""

    def __init__(
        self, weight: Tensor | None = None, size_average: Any = None, ignore_index: int = -100, reduce: Any = None, reduction: str = "mean"
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index = ignore_index

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.nll_loss(input, target, self.weight, ignore_index=self.ignore_index, reduction=self.reduction)


class NLLLoss2d(NLLLoss):
    """NLLLoss under the name that it once had for images; it takes any dimensions."""


class MultiMarginLoss(WeightedLoss):
    """sum over classes j but the target y of max(0, margin - x[y] + x[j])^p, by the number of classes."""

    def __init__(
        self, p: int = 1, margin: float = 1.0, weight: Tensor | None = None, size_average: Any = None, reduce: Any = None,
        reduction: str = "mean",
    ) -> None:  # fmt: skip
        super().__init__(weight, size_average, reduce, reduction)
        if p not in (1, 2):  # the function asks again: a program may set the attribute
            raise ValueError(f"MultiMarginLoss: p is {p}; only p == 1 and p == 2 are supported")
        if weight is not None and weight.ndim != 1:
            raise ShapeError(
                f"MultiMarginLoss: weight {tuple(weight.shape)} has {weight.ndim} dimensions; give a vector of a number for each class"
            )
        self.p, self.margin = p, margin

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.multi_margin_loss(input, target, p=self.p, margin=self.margin, weight=self.weight, reduction=self.reduction)


class MultiLabelMarginLoss(Loss):
    """sum over targets y and classes i that are none of max(0, 1 - x[y] + x[i]), by the number of classes; a row of the target ends at the first -1."""

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.multilabel_margin_loss(input, target, reduction=self.reduction)


class MultiLabelSoftMarginLoss(WeightedLoss):
    """Binary cross-entropy of every class with logits, its mean over the classes."""

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.multilabel_soft_margin_loss(input, target, self.weight, reduction=self.reduction)


class LinearCrossEntropyLoss(WeightedLoss):
    """CrossEntropyLoss of a Linear layer of its own: input (batch, in_features), target (batch, *out_features) of class numbers, or probabilities.

    `options` change nothing.
    """

    def __init__(
        self, in_features: int, num_classes: int, *, out_features: tuple[int, ...] = (), bias: bool = False, device: Any = None, dtype: Any = None,
        reduction: str = "mean", weight: Tensor | None = None, ignore_index: int | None = None, label_smoothing: float = 0.0,
        options: LinearCrossEntropyOptions | None = None,
    ) -> None:  # fmt: skip
        if weight is not None and tuple(weight.shape) != (num_classes,):
            raise ShapeError(
                f"LinearCrossEntropyLoss: expected weight shape to be ({num_classes},), got {tuple(weight.shape)}; give a number for each class"
            )
        if not 0 <= label_smoothing <= 1:
            raise ArgumentError(f"LinearCrossEntropyLoss: label_smoothing is {label_smoothing}; it must be between 0 and 1")
        super().__init__(weight=weight, reduction=reduction)  # PyTorch's has no size_average and reduce: it is newer than their end
        self.num_classes, self.out_features = num_classes, out_features
        self.ignore_index, self.label_smoothing, self.options = ignore_index, label_smoothing, options
        # one product for all outer sizes; forward shapes its weight
        self.linear = Linear(in_features, math.prod(out_features, start=num_classes), bias=bias, device=device, dtype=dtype)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        outer = (self.num_classes, *self.out_features)
        bias = self.linear.bias
        return F.linear_cross_entropy(
            input, self.linear.weight.reshape((*outer, self.linear.in_features)), target, linear_bias=None if bias is None else bias.reshape(outer),
            weight=self.weight, reduction=self.reduction, ignore_index=self.ignore_index, label_smoothing=self.label_smoothing, options=self.options,
        )  # fmt: skip

    def extra_repr(self) -> str:
        shown = {name: getattr(self, name) for name in ("num_classes", "out_features")}
        shown = {"in_features": self.linear.in_features, **shown, "bias": self.linear.bias is not None}
        shown |= {name: getattr(self, name) for name in ("reduction", "ignore_index", "label_smoothing", "options")}
        return ", ".join(f"{name}={value}" for name, value in shown.items())
