"""LengthBucketSampler: batches of samples of similar lengths, so that little is padded."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tritensor.data.sampler import Sampler, permutation
from tritensor.ground.errors import ArgumentError
from tritensor.random import Generator

_MAX_BATCHES = 50  # of a bucket: as random as a long epoch needs
_MIN_BUCKETS = 8  # that a short one is cut into


class LengthBucketSampler(Sampler[list[int]]):
    """Lists of indices of samples of similar lengths, for `DataLoader(data, batch_sampler=LengthBucketSampler(lengths, 32))`.

    The samples stand in the order of their lengths and are cut into buckets. Every epoch shuffles each bucket, cuts it into batches, and
    shuffles all batches, so that the order of lengths is random and a batch is nearly of one length. How many batches there are is the same
    in every epoch.

    Args:
        lengths: the length of every sample: a sequence, numpy array or tensor of positive integers, (n,).
        batch_size: samples in a batch.
        max_tokens: the most that a batch may hold once it is padded: its size times the length of the longest sample of its bucket.
            Give `batch_size`, `max_tokens`, or both: then the smaller batch.
        shuffle: False goes from the longest samples to the shortest, so that memory runs out at once or never.
        drop_last: leave out the one batch that is smaller than its bucket's others.
        seed: the same seed gives the same batches in every epoch on every machine.
        batches_per_bucket: more of them mix better and pad more; None takes what makes at least eight buckets, and at most 50.

    Each iteration is the next epoch; `set_epoch(n)` says which one the next iteration is, so that a run that goes on sees the order that it would have seen.

    Raises:
        ValueError: lengths that are no positive integers, a sample longer than `max_tokens`, neither `batch_size` nor `max_tokens`,
            or one of the counts below 1.
    """

    def __init__(
        self, lengths: Any, batch_size: int | None = None, *, max_tokens: int | None = None, shuffle: bool = True, drop_last: bool = False,
        seed: int = 0, batches_per_bucket: int | None = None,
    ) -> None:  # fmt: skip
        if batch_size is None and max_tokens is None:
            raise ArgumentError("LengthBucketSampler: neither batch_size nor max_tokens says how large a batch is; give one, or both")
        for name, given in (("batch_size", batch_size), ("max_tokens", max_tokens), ("batches_per_bucket", batches_per_bucket)):
            if given is not None and (not isinstance(given, int) or isinstance(given, bool) or given < 1):
                raise ArgumentError(f"LengthBucketSampler: {name} is {given!r}; give an integer of at least 1")
        self.lengths = _check_lengths(lengths)
        self.batch_size, self.max_tokens, self.batches_per_bucket = batch_size, max_tokens, batches_per_bucket
        self.shuffle, self.drop_last, self.seed, self.epoch = shuffle, drop_last, seed, 0
        longest_first = np.argsort(-self.lengths, kind="stable")
        if max_tokens is not None and self.lengths[longest_first[:1]].sum() > max_tokens:
            i = int(longest_first[0])
            raise ArgumentError(
                f"LengthBucketSampler: sample {i} is {self.lengths[i]} long, more than max_tokens={max_tokens}; give at least that, or leave it out"
            )
        self._buckets = self._cut_buckets(longest_first)  # once: every epoch has the same number of batches

    def _cut_buckets(self, longest_first: np.ndarray) -> list[tuple[np.ndarray, int]]:
        """(indices, size of their batches) of each bucket. All buckets but the last are whole batches."""
        batches, at = self.batches_per_bucket, 0
        if batches is None:
            by_size = 0 if self.batch_size is None else len(self.lengths) // self.batch_size
            by_tokens = 0 if self.max_tokens is None else int(self.lengths.sum()) // self.max_tokens
            batches = min(_MAX_BATCHES, max(1, max(by_size, by_tokens) // _MIN_BUCKETS))
        buckets = []
        while at < len(longest_first):
            size = self._batch_size_for(int(self.lengths[longest_first[at]]))
            buckets.append((longest_first[at : at + size * batches], size))
            at += size * batches
        return buckets

    def _batch_size_for(self, longest: int) -> int:
        """Samples in a batch whose longest is this long."""
        fitting = len(self.lengths) if self.max_tokens is None else self.max_tokens // longest
        return fitting if self.batch_size is None else min(self.batch_size, fitting)

    def __iter__(self) -> Iterator[list[int]]:
        generator = Generator().manual_seed(self.seed + (self.epoch << 32))  # seeds of two runs stay apart in all epochs
        self.epoch += 1
        batches: list[list[int]] = []
        for indices, size in self._buckets:
            order = indices[permutation(len(indices), generator)] if self.shuffle else indices
            parts = [order[i : i + size].tolist() for i in range(0, len(order), size)]
            batches += [p for p in parts if len(p) == size or not self.drop_last]
        return iter([batches[i] for i in permutation(len(batches), generator)] if self.shuffle else batches)

    def __len__(self) -> int:
        return sum(len(b) // size if self.drop_last else -(-len(b) // size) for b, size in self._buckets)

    def set_epoch(self, epoch: int) -> None:
        """Set the epoch of the next iteration."""
        self.epoch = epoch


def _check_lengths(given: Any) -> np.ndarray:
    """The lengths as integers, or an error that says which is none."""
    found = np.asarray(given.cpu().numpy() if hasattr(given, "cpu") else given)
    if found.ndim != 1 or (found.dtype.kind not in "iu" and len(found)):
        raise ArgumentError(
            f"LengthBucketSampler: lengths is {tuple(found.shape)} of {found.dtype}; give one integer for each sample: [len(x) for x in dataset]"
        )
    if len(wrong := np.flatnonzero(found < 1)):
        raise ArgumentError(
            f"LengthBucketSampler: the length of sample {wrong[0]} is {found[wrong[0]]}; give lengths of 1 or more, and leave empty samples out"
        )
    return found.astype(np.int64)
