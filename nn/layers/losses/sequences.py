"""Losses of sequences and of very many classes: CTCLoss, AdaptiveLogSoftmaxWithLoss."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

from tritensor.ground.errors import ShapeError
from tritensor.nn import functional as F
from tritensor.nn.container import ModuleList, Sequential
from tritensor.nn.functional.losses.checks import check_labels
from tritensor.nn.layers.linear import Linear
from tritensor.nn.layers.losses.base import Loss
from tritensor.nn.module import Module
from tritensor.ops.table import ops
from tritensor.tensor.core import Tensor


class CTCLoss(Loss):
    """-log of the probability of each target over all ways to place its labels among blanks in time; see F.ctc_loss."""

    def __init__(self, blank: int = 0, reduction: str = "mean", zero_infinity: bool = False) -> None:
        super().__init__(reduction=reduction)
        self.blank, self.zero_infinity = blank, zero_infinity

    def forward(self, log_probs: Tensor, targets: Tensor, input_lengths: Any, target_lengths: Any) -> Tensor:
        return F.ctc_loss(log_probs, targets, input_lengths, target_lengths, self.blank, self.reduction, self.zero_infinity)


class _ASMoutput(NamedTuple):  # PyTorch's name, which its repr shows
    """The log-probability of each target, and the loss, minus their mean."""

    output: Tensor
    loss: Tensor


class AdaptiveLogSoftmaxWithLoss(Module):
    """A softmax over very many classes, the frequent ones first: classes below cutoffs[0] and a class for each cluster of the others have a head of full
    width, each cluster a tail of in_features / div_value^i features (Grave et al. 2017).

    Called with input (batch, in_features) and target (batch,) it gives (output, loss): each target's log-probability, and minus their mean.
    """

    def __init__(
        self, in_features: int, n_classes: int, cutoffs: Sequence[int], div_value: float = 4.0, head_bias: bool = False, device: Any = None, dtype: Any = None
    ) -> None:  # fmt: skip
        super().__init__()
        given = list(cutoffs)
        if not given:
            raise ValueError("AdaptiveLogSoftmaxWithLoss: cutoffs is empty; give a sequence of length larger than 0")
        edges = [0, *given, n_classes]
        if any(int(c) != c for c in given) or any(a >= b for a, b in itertools.pairwise(edges)):  # PyTorch takes 3.0 for 3, too
            raise ValueError(
                f"AdaptiveLogSoftmaxWithLoss: cutoffs {given} must be unique integers in rising order between 1 and n_classes-1, {n_classes - 1}"
            )
        self.in_features, self.n_classes, self.cutoffs = in_features, n_classes, [*given, n_classes]
        self.div_value, self.head_bias = div_value, head_bias
        self.shortlist_size, self.n_clusters = self.cutoffs[0], len(self.cutoffs) - 1
        self.head_size = self.shortlist_size + self.n_clusters
        self.head = Linear(in_features, self.head_size, bias=head_bias, device=device, dtype=dtype)
        self.tail = ModuleList()
        for i, (low, high) in enumerate(itertools.pairwise(self.cutoffs), 1):
            width = int(in_features // div_value**i)  # rarer clusters have narrower tails
            first, second = ((in_features, width), (width, high - low))
            self.tail.append(Sequential(*[Linear(a, b, bias=False, device=device, dtype=dtype) for a, b in (first, second)]))

    def reset_parameters(self) -> None:
        """Draw the initial values anew."""
        for part in (self.head, *itertools.chain.from_iterable(self.tail)):
            part.reset_parameters()

    def _check(self, input: Tensor, target: Tensor) -> None:
        if target.ndim not in (0, 1) or input.ndim != target.ndim + 1 or tuple(input.shape[:-1]) != tuple(target.shape):
            raise ShapeError(
                f"AdaptiveLogSoftmaxWithLoss: input {tuple(input.shape)} and target {tuple(target.shape)}: give (batch, features) with (batch,), or "
                "(features,) with ()"
            )
        check_labels("AdaptiveLogSoftmaxWithLoss", target, self.n_classes)

    def forward(self, input_: Tensor, target_: Tensor) -> _ASMoutput:
        self._check(input_, target_)
        single = target_.ndim == 0
        input, target = (input_.unsqueeze(0), target_.unsqueeze(0)) if single else (input_, target_)
        head = F.log_softmax(self.head(input), dim=1)
        place, found = target, head[:, 0] * 0  # zeros in the graph and type of the head's output, to which rows are copied
        for i, (low, high) in enumerate(itertools.pairwise(self.cutoffs)):
            rows = ops.logical_and(ops.ge(target, low), ops.lt(target, high)).nonzero().squeeze(1)
            if not rows.numel():  # no target of this cluster: its tail is not computed, and has no gradient
                continue
            place = place.index_fill(0, rows, self.shortlist_size + i)
            inside = F.log_softmax(self.tail[i](input.index_select(0, rows)), dim=1)
            chosen = inside.gather(1, (target.index_select(0, rows) - low).unsqueeze(1)).squeeze(1)
            found = found.index_copy(0, rows, chosen.to(found.dtype))  # under autocast the tail may have come out in another type
        output = found + head.gather(1, place.unsqueeze(1)).squeeze(1)
        loss = (-output).mean()
        return _ASMoutput(output.squeeze(0) if single else output, loss)

    def _log_probs(self, input: Tensor, head: Tensor) -> Tensor:
        """Log-probabilities of all classes from the head's output."""
        first = F.log_softmax(head, dim=1)
        parts = [first[:, : self.shortlist_size]]
        for i, part in enumerate(self.tail):
            parts.append(F.log_softmax(part(input), dim=1) + first[:, self.shortlist_size + i].unsqueeze(1))
        return ops.cat(*parts, dim=1)

    def log_prob(self, input: Tensor) -> Tensor:
        """Log-probabilities of all classes: (batch, in_features) -> (batch, n_classes)."""
        return self._log_probs(input, self.head(input))

    def predict(self, input: Tensor) -> Tensor:
        """The most probable class of each row, (batch,): of the head alone where that is no cluster."""
        head = self.head(input)
        best = head.argmax(1)
        rows = ops.ge(best, self.shortlist_size).nonzero().squeeze(1)
        if not rows.numel():
            return best
        # of the rows whose best is a cluster alone: the others need no tail
        among = self._log_probs(input.index_select(0, rows), head.index_select(0, rows)).argmax(1)
        return best.index_copy(0, rows, among)
