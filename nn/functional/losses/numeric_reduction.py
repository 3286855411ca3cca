"""Losses as PyTorch publishes them under `torch.<name>`: the reduction is a number, 0 none, 1 the mean, 2 the sum.

Unless it is given it is 0, as it comes out in PyTorch, whose stub file says 1.
"""

from __future__ import annotations

from typing import Any

from tritensor.ground.errors import ArgumentError
from tritensor.nn.functional.losses import ctc, pairs, pointwise
from tritensor.nn.functional.losses.checks import REDUCTIONS
from tritensor.tensor.core import Tensor
from tritensor.tensor.public_api.publish import function


def _to_word(name: str, reduction: Any) -> str:
    if isinstance(reduction, bool) or not isinstance(reduction, int):
        raise TypeError(
            f"{name}: reduction is {reduction!r}; give 0 (none), 1 (mean) or 2 (sum), or call nn.functional.{name}, which takes words"
        )
    if reduction not in (0, 1, 2):
        raise ArgumentError(f"{name}: reduction is {reduction}; give 0 (none), 1 (mean) or 2 (sum)")
    return REDUCTIONS[reduction]


@function(method=False)
def binary_cross_entropy_with_logits(
    input: Tensor, target: Tensor, weight: Tensor | None = None, pos_weight: Tensor | None = None, reduction: int = 0
) -> Tensor:
    """nn.functional.binary_cross_entropy_with_logits, the reduction as a number: 0 none, 1 the mean, 2 the sum. 0
    unless it is given, as it comes out in PyTorch, whose stub file says 1."""
    how = _to_word("binary_cross_entropy_with_logits", reduction)
    return pointwise.binary_cross_entropy_with_logits(input, target, weight, reduction=how, pos_weight=pos_weight)  # type: ignore[no-any-return]


@function(method=False)
def kl_div(input: Tensor, target: Tensor, reduction: int = 0, *, log_target: bool = False) -> Tensor:
    """nn.functional.kl_div, the reduction as a number: 0 none, 1 the mean over all elements, 2 the sum."""
    how = _to_word("kl_div", reduction)
    loss = pointwise.kl_div(input, target, reduction="none" if how == "mean" else how, log_target=log_target)
    return loss.mean() if how == "mean" else loss  # type: ignore[no-any-return]


@function(method=False)
def hinge_embedding_loss(input: Tensor, target: Tensor, margin: float = 1.0, reduction: int = 0) -> Tensor:
    """nn.functional.hinge_embedding_loss, the reduction as a number: 0 none, 1 the mean, 2 the sum."""
    return pairs.hinge_embedding_loss(input, target, margin, reduction=_to_word("hinge_embedding_loss", reduction))  # type: ignore[no-any-return]


@function(method=False)
def margin_ranking_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: int = 0) -> Tensor:
    """nn.functional.margin_ranking_loss, the reduction as a number: 0 none, 1 the mean, 2 the sum."""
    return pairs.margin_ranking_loss(input1, input2, target, margin, reduction=_to_word("margin_ranking_loss", reduction))  # type: ignore[no-any-return]


@function(method=False)
def cosine_embedding_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: int = 0) -> Tensor:
    """nn.functional.cosine_embedding_loss, the reduction as a number: 0 none, 1 the mean, 2 the sum."""
    return pairs.cosine_embedding_loss(input1, input2, target, margin, reduction=_to_word("cosine_embedding_loss", reduction))  # type: ignore[no-any-return]


@function(method=False)
def triplet_margin_loss(
    anchor: Tensor, positive: Tensor, negative: Tensor, margin: float = 1.0, p: float = 2, eps: float = 1e-6, swap: bool = False, reduction: int = 0
) -> Tensor:  # fmt: skip
    """nn.functional.triplet_margin_loss, the reduction as a number: 0 none, 1 the mean, 2 the sum."""
    how = _to_word("triplet_margin_loss", reduction)
    return pairs.triplet_margin_loss(anchor, positive, negative, margin, p, eps, swap, reduction=how)  # type: ignore[no-any-return]


@function(method=False)
def poisson_nll_loss(input: Tensor, target: Tensor, log_input: bool, full: bool, eps: float, reduction: int) -> Tensor:
    """nn.functional.poisson_nll_loss, the reduction as a number: 0 none, 1 the mean, 2 the sum."""
    how = _to_word("poisson_nll_loss", reduction)
    return pointwise.poisson_nll_loss(input, target, log_input, full, eps=eps, reduction=how)  # type: ignore[no-any-return]


@function(method=False)
def ctc_loss(
    log_probs: Tensor, targets: Tensor, input_lengths: Any, target_lengths: Any, blank: int = 0, reduction: int = 0,
    zero_infinity: bool = False,
) -> Tensor:  # fmt: skip
    """nn.functional.ctc_loss, the reduction as a number: 0 none, 1 the mean, 2 the sum."""
    return ctc.ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, _to_word("ctc_loss", reduction), zero_infinity)  # type: ignore[no-any-return]
