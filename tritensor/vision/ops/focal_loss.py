"""Focal loss of scores (Lin et al. 2017), and how losses of detectors are reduced."""

from __future__ import annotations

from tritensor.ground.errors import ArgumentError
from tritensor.nn import functional as F
from tritensor.tensor.core import Tensor


def reduce_loss(who: str, loss: Tensor, reduction: str, empty_is_zero: bool = True) -> Tensor:
    if reduction == "none":
        return loss
    if reduction == "mean":
        return loss.mean() if loss.numel() > 0 or not empty_is_zero else 0.0 * loss.sum()
    if reduction == "sum":
        return loss.sum()
    raise ArgumentError(f"{who}: Invalid Value for arg 'reduction': {reduction!r}; supported reduction modes: 'none', 'mean', 'sum'")


def sigmoid_focal_loss(inputs: Tensor, targets: Tensor, alpha: float = 0.25, gamma: float = 2, reduction: str = "none") -> Tensor:
    """Cross-entropy of sigmoid scores, weighted down where the score is right (Lin et al. 2017); shapes as the inputs', or a number.

    `alpha` from 0 to 1 weighs what is there against what is not, -1 neither. Raises ValueError for another alpha or reduction.
    """
    if not 0 <= alpha <= 1 and alpha != -1:
        raise ArgumentError(f"sigmoid_focal_loss: Invalid alpha value: {alpha}. alpha must be in the range [0,1] or -1 for ignore.")
    p = inputs.sigmoid()
    entropy = F.binary_cross_entropy_with_logits(inputs, targets, reduction="none")
    right = p * targets + (1 - p) * (1 - targets)
    loss = entropy * (1 - right) ** gamma
    if alpha >= 0:
        loss = (alpha * targets + (1 - alpha) * (1 - targets)) * loss
    return reduce_loss("sigmoid_focal_loss", loss, reduction, empty_is_zero=False)
