"""DistributedSampler: every process reads its own share of a dataset."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sized

from tritensor.data.sampler import Sampler, permutation
from tritensor.ground.errors import ArgumentError
from tritensor.ground.providers import provider
from tritensor.random import Generator


class DistributedSampler(Sampler[int]):
    """The indices rank, rank + num_replicas, ... of a dataset in an order that all ranks share: `seed` and `set_epoch` set it.

    The last indices are given twice, or left out with drop_last, so that all ranks read as many. num_replicas and rank are the process
    group's where they are left out.

    Raises ValueError for a rank that is not in [0, num_replicas), and where either is left out and there is no process group to ask.
    """

    def __init__(
        self, dataset: Sized, num_replicas: int | None = None, rank: int | None = None, shuffle: bool = True, seed: int = 0,
        drop_last: bool = False,
    ) -> None:  # fmt: skip
        if num_replicas is None or rank is None:
            group = provider("distributed")  # few programs need it
            if not group.is_initialized():
                raise ArgumentError(
                    "DistributedSampler: no process group has been initialised; give num_replicas and rank, or init_process_group first"
                )
            num_replicas = group.get_world_size() if num_replicas is None else num_replicas
            rank = group.get_rank() if rank is None else rank
        assert num_replicas is not None
        assert rank is not None
        if not 0 <= rank < num_replicas:
            raise ValueError(f"DistributedSampler: rank {rank} is not between 0 and num_replicas - 1 = {num_replicas - 1}")
        self.dataset, self.num_replicas, self.rank = dataset, num_replicas, rank
        self.shuffle, self.seed, self.drop_last, self.epoch = shuffle, seed, drop_last, 0
        short = len(dataset) - num_replicas if drop_last and len(dataset) % num_replicas else len(dataset)
        self.num_samples = math.ceil(short / num_replicas)
        self.total_size = self.num_samples * num_replicas

    def __iter__(self) -> Iterator[int]:
        n = len(self.dataset)
        order = [int(i) for i in permutation(n, Generator().manual_seed(self.seed + self.epoch))] if self.shuffle else list(range(n))
        if self.drop_last:
            order = order[: self.total_size]
        elif n:
            order = (order * math.ceil(self.total_size / n))[: self.total_size]
        return iter(order[self.rank : self.total_size : self.num_replicas])

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Another order for every epoch, the same on all ranks."""
        self.epoch = epoch
