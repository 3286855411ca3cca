"""Connectionist temporal classification, ctc_loss: the probability of a sequence of labels without their times."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from tritensor.autograd.modes import state
from tritensor.ground.errors import ArgumentError, DTypeError, ShapeError
from tritensor.nn.functional.losses.checks import check_labels, check_reduction, reduce_loss
from tritensor.ops.table import ops
from tritensor.tensor.core import Tensor
from tritensor.tensor.parsing.data import as_tensor
from tritensor.tensor.public_api.publish import checked

Lengths = Tensor | Sequence[int] | int


def _to_lengths(what: str, given: Any, batch: int) -> list[int]:
    """As whole numbers, one for each sample. Waits for the device where they are there."""
    if isinstance(given, Tensor):
        if given.dtype.kind not in ("int", "uint"):
            raise DTypeError(f"ctc_loss: {what} is {given.dtype.name}; lengths are integers, cast it with .long()")
        given = given.tolist()
    found = [given] if isinstance(given, int) else list(given)
    if len(found) != batch or not all(isinstance(n, int) for n in found):
        raise ShapeError(f"ctc_loss: {what} has {len(found)} lengths for a batch of {batch}; give a whole number for each sample")
    return found


def _pad_targets(targets: Tensor, lengths: list[int]) -> Tensor:
    """Targets (batch, S) from labels one after the other, or as they are. Raises ShapeError where they are fewer than the lengths say."""
    if targets.ndim == 2:
        if targets.shape[0] != len(lengths) or max(lengths, default=0) > targets.shape[1]:
            raise ShapeError(
                f"ctc_loss: targets {tuple(targets.shape)} and target_lengths {lengths[:8]}: give (batch, labels) with room for the longest"
            )
        return targets
    if targets.ndim != 1 or targets.shape[0] < sum(lengths):
        raise ShapeError(
            f"ctc_loss: targets {tuple(targets.shape)} and target_lengths that sum to {sum(lengths)}: give (batch, labels), or all labels one after the other"
        )
    begins = [0, *itertools.accumulate(lengths)][:-1]
    last = max(targets.shape[0] - 1, 0)
    # behind a target's end any label will do: its length cuts it off
    places = [[min(b + k, last) for k in range(max(lengths, default=0))] for b in begins]
    if not targets.shape[0] or not places or not places[0]:
        return ops.full(shape=(len(lengths), 0), value=0, dtype=targets._array.dtype, device=targets.device)
    return targets[as_tensor(places).to(targets.device)]


class _Arguments:
    """The arguments as the op takes them."""

    def __init__(self, log_probs: Tensor, targets: Tensor, input_lengths: Lengths, target_lengths: Lengths) -> None:
        if log_probs.ndim not in (2, 3):
            raise ShapeError(
                f"ctc_loss: log_probs {tuple(log_probs.shape)} has {log_probs.ndim} dimensions; give (time, batch, classes) or (time, classes)"
            )
        if not log_probs.numel():
            raise ShapeError(f"ctc_loss: log_probs {tuple(log_probs.shape)} has no elements; give at least one step, sample and class")
        self.single = log_probs.ndim == 2
        self.log_probs = log_probs.unsqueeze(1) if self.single else log_probs
        time, batch, classes = self.log_probs.shape
        self.times = _to_lengths("input_lengths", input_lengths, batch)
        self.counts = _to_lengths("target_lengths", target_lengths, batch)
        for what, lengths, most in (("input_lengths", self.times, time), ("target_lengths", self.counts, None)):
            wrong = [n for n in lengths if n < 0 or (most is not None and n > most)]
            if wrong:
                said = f"at most {most}, the steps of log_probs, and at least 0" if most is not None else "at least 0"
                raise ArgumentError(f"ctc_loss: {what} holds {wrong[0]}; it must be {said}")
        if self.single and targets.ndim == 1 and targets.shape[0] >= self.counts[0]:
            targets = targets.unsqueeze(0)
        if targets.dtype.kind not in ("int", "uint"):
            check_labels("ctc_loss", targets, classes)
        self.targets = _pad_targets(targets, self.counts).to(log_probs.device)

    def on_device(self, lengths: list[int]) -> Tensor:
        return as_tensor(lengths).reshape((len(lengths),)).long().to(self.log_probs.device)


def _add_slopes(nll: Tensor, given: _Arguments) -> Tensor:
    """nll plus 0 with the slope e^p: PyTorch's gradient by log_probs is that by logits whose log_softmax they are, e^p minus what is passed."""
    log_probs = given.log_probs
    if min(given.times, default=0) >= log_probs.shape[0]:
        powers = ops.exp(log_probs)
    else:  # what lies behind a sample's end has no part in it, whatever is there
        t = ops.arange(start=0, end=given.log_probs.shape[0], step=1, dtype=given.on_device([0])._array.dtype, device=nll.device)
        inside = ops.lt(t.reshape((-1, 1, 1)), given.on_device(given.times).reshape((1, -1, 1)))
        powers = ops.where(inside, ops.exp(ops.where(inside, log_probs, 0.0)), 0.0)
    whole = powers.sum((0, 2))
    return ops.add(nll, ops.sub(whole, whole.detach()))


@checked
def ctc_loss(
    log_probs: Tensor, targets: Tensor, input_lengths: Lengths, target_lengths: Lengths, blank: int = 0, reduction: str = "mean", zero_infinity: bool = False,
) -> Tensor:  # fmt: skip
    """-log of the probability of each target over all ways to place its labels among blanks in time (Graves et al. 2006).

    Args:
        log_probs: (time, batch, classes), or (time, classes) of one sample: log_softmax of what the network gives.
        targets: (batch, S), or all labels one after the other; none of them is `blank`.
        input_lengths, target_lengths: how many steps and labels each sample has.
        reduction: "mean" divides each sample's by its labels first.
        zero_infinity: a target that does not fit into its time counts 0, not infinity, and has no gradient.
    """
    check_reduction("ctc_loss", reduction)
    given = _Arguments(log_probs, targets, input_lengths, target_lengths)
    nll = ops.ctc_loss(given.log_probs, given.targets, given.on_device(given.times), given.on_device(given.counts), blank=int(blank))
    if log_probs._tracked and state.enabled:  # without a gradient the slope is not asked for, and costs nothing
        nll = _add_slopes(nll, given)
    if zero_infinity:
        nll = ops.where(ops.eq(nll, float("inf")), 0.0, nll)  # by where: 0 times infinity would be NaN, in the gradient too
    if given.single:
        nll = nll.squeeze(0)
    if reduction == "mean":
        # an empty target divides by 1, as in PyTorch
        counts = ops.cast(given.on_device([max(n, 1) for n in given.counts]), dtype=nll._array.dtype)
        return reduce_loss("ctc_loss", ops.div(nll, counts.squeeze(0) if given.single else counts), "mean")
    return reduce_loss("ctc_loss", nll, reduction)
