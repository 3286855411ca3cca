"""Placements of a tensor over the processes of a mesh's dimension, as values: whole on each, or parts of a sum; Shard stands beside the parameters it cuts."""

from __future__ import annotations

from abc import ABC
from dataclasses import dataclass

from tritensor.distributed.fsdp.sharded_parameter import Shard


class Placement(ABC):  # noqa: B024, which Shard is registered as, too
    """What a placement is: programs ask isinstance."""

    def is_shard(self, dim: int | None = None) -> bool:
        """Whether it is cut, along that dimension where one is given."""
        return False

    def is_replicate(self) -> bool:
        """Whether every process has the whole."""
        return False

    def is_partial(self, reduce_op: str | None = None) -> bool:
        """Whether processes have parts of a sum, or of that reduction where one is given."""
        return False


@dataclass(frozen=True)
class Replicate(Placement):
    """Every process has the whole tensor. fully_shard makes no such tensor; tables of plans name it."""

    def is_replicate(self) -> bool:
        """True."""
        return True


@dataclass(frozen=True)
class Partial(Placement):
    """Every process has a tensor of the whole's shape, which are to be reduced. No tensor here is so; tables of plans name it."""

    reduce_op: str = "sum"

    def is_partial(self, reduce_op: str | None = None) -> bool:
        """Whether the reduction is that one; True where none is given."""
        return reduce_op is None or reduce_op == self.reduce_op


Placement.register(Shard)
