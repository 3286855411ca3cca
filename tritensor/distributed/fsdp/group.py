"""ParameterGroup: the parameters of one fully_shard, which are gathered, used, given back and reduced together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tritensor.autograd.node import version_of
from tritensor.distributed.fsdp.flat import FlatShards, Member, Reduction
from tritensor.distributed.fsdp.policies import MixedPrecisionPolicy
from tritensor.distributed.process_group import ProcessGroup
from tritensor.ground.errors import GradError
from tritensor.ground.thread_state import run_waiting
from tritensor.tensor.core import Tensor

RESHARD = "fully_shard's reshard"  # the writer that a message names where backward meets a parameter that was given back


class Ranks(NamedTuple):
    """The processes that share the parameters out, and those that have the same shards (None where nobody else has)."""

    shard: ProcessGroup
    replicas: ProcessGroup | None = None

    @property
    def size(self) -> int:
        """The number of processes whose gradients are averaged."""
        return self.shard.size() * (1 if self.replicas is None else self.replicas.size())


class ParameterGroup:
    """See the module. `is_whole`: the whole parameters are there; `is_coming`: they were asked for and not used yet.

    While the memory of whole parameters is given back, their version counters say that they were overwritten: a backward that reaches them
    without passing an output of the module raises GradError in place of computing with zeros. Gathered again unchanged, they are as before.
    """

    def __init__(self, name: str, members: Sequence[Member], ranks: Ranks, policy: MixedPrecisionPolicy) -> None:
        self.name, self.members, self.ranks = name, list(members), ranks
        compute, reduce = (None if t is None else np.dtype(t.numpy) for t in (policy.param_dtype, policy.reduce_dtype))
        self._settings = (ranks.shard, compute, reduce)
        self._lay_out()
        self.factor = float(ranks.size)
        self.syncs = self.reshards_after_backward = True
        self.is_whole = self.is_coming = self.summoned = False  # summoned: summon_full_params has put others in the places
        # What is gathered while this group is used in forward and in backward; None: what follows as the order of forward was.
        self.ahead: list[ParameterGroup] | None = None
        self.ahead_in_backward: list[ParameterGroup] | None = None
        self.came: set[int] = set()  # members whose gradient has come in this backward
        self.inputs_left = 0  # inputs of forward, of a group with frozen parameters, whose gradient is to come
        self._values: tuple[int, ...] = ()  # version counters of the shards when they were last gathered
        self._kept: list[tuple[int, int, str]] = []  # those of the whole parameters while they are given back
        for m in self.members:
            m.register(m.shard)

    # what the schedule asks
    @property
    def has_trainable(self) -> bool:
        """Whether any parameter takes gradients."""
        return any(m.shard._tracked for m in self.members)

    @property
    def is_frozen_in_part(self) -> bool:
        """Whether some parameters take none."""
        return not all(m.shard._tracked for m in self.members)

    def is_complete(self) -> bool:
        """Whether all gradients have come."""
        return all(i in self.came or not m.shard._tracked for i, m in enumerate(self.members))

    def keeps_address(self) -> bool:
        """Whether a graph can look at memory that is given back meanwhile."""
        return all(f.keeps_address for f in self.flats)

    def holds(self, t: Tensor) -> bool:
        """Whether a tensor lies in the whole parameters' memory."""
        return any(f.holds(t) for f in self.flats)

    def has_changed(self) -> bool:
        """Whether the shards were written since they were gathered."""
        return self._values != self._versions()

    def _versions(self) -> tuple[int, ...]:
        return tuple([version_of(m.shard).value for m in self.members])

    # whole parameters
    def begin_gather(self) -> None:
        """Ask for the whole parameters, where they are not there and were not asked for."""
        if self.is_whole or self.is_coming or not self.members:
            return
        self.lay_out_again()
        self.is_coming = True
        now = self._versions()
        if now != self._values:
            self._kept = []  # other values than a graph may have saved: the counters stay what they are
        self._values = now
        for f in self.flats:
            f.begin_gather()

    def lay_out_again(self) -> None:
        """Lay shards anew that were moved or cast."""
        if all([f.is_laid_out() for f in self.flats]):
            return
        self._kept = []
        self._lay_out()

    def _lay_out(self) -> None:
        alike: dict[np.dtype, list[Member]] = {}  # one piece of memory is of one type
        for m in self.members:
            alike.setdefault(m.shard._array.dtype, []).append(m)
        self.flats = [FlatShards(found, *self._settings) for found in alike.values()]

    def gather(self) -> None:
        """The whole parameters, in the places of the shards."""
        self.begin_gather()
        if self.is_whole or not self.members:
            return
        for f in self.flats:
            f.end_gather()
        for m, (value, stamp, writer) in zip(self.members, self._kept, strict=False):
            version = version_of(m.whole)
            version.value, version.stamp, version.writer = value, stamp, writer
        self._kept = []
        self.is_whole, self.is_coming = True, False
        for m in self.members:
            if m.whole._tracked != m.shard._tracked:
                m.whole.requires_grad_(m.shard._tracked)
            m.register(m.whole)

    def reshard(self) -> None:
        """The shards, in the places of the whole parameters, whose memory is freed."""
        if self.is_coming:
            for f in self.flats:
                f.cancel_gather()
            self.is_coming = False
        if not self.is_whole:
            return
        self.is_whole = False
        run_waiting()
        for m in self.members:
            m.register(m.shard)
            version = version_of(m.whole)
            self._kept.append((version.value, version.stamp, version.writer))
            version.bump(RESHARD)
        for f in self.flats:
            f.give_back()

    def refuse_changed(self) -> None:
        """Raise GradError where the shards are no more what forward was computed with."""
        if not self.is_whole and self.has_changed():
            raise GradError(
                f"backward: the parameters of {self.name} were changed between forward and backward, and would be gathered with other values than "
                "forward saw; call backward before the optimizer's step"
            )

    # gradients
    def begin_reduce(self) -> list[Reduction]:
        """Send the gradients to the processes that keep them; nothing where they are to be accumulated."""
        return [r for f in self.flats if (r := f.begin_reduce(self.factor)) is not None]

    def forget_gradients(self) -> None:
        """Drop what the whole parameters hold."""
        for m in self.members:
            m.whole._grad = None

    def has_gradients(self) -> bool:
        """Whether a whole parameter holds a gradient that was not reduced."""
        return any(m.whole._grad is not None for m in self.members)
