"""torch.distributed.tensor.placement_types: placements, of which sharded parameters have Shard, and DTensor, which these are."""

from typing import Any, NoReturn

from tritensor.distributed.fsdp.sharded_parameter import Shard as Shard
from tritensor.distributed.fsdp.sharded_parameter import Sharded
from tritensor.distributed.placements import Partial as Partial
from tritensor.distributed.placements import Placement as Placement
from tritensor.distributed.placements import Replicate as Replicate


class _StridedShard:
    """A placement that no tensor here has; programs ask isinstance. Raises NotImplementedError when it is made."""

    def __new__(cls, *args: Any, **kwargs: Any) -> NoReturn:
        raise NotImplementedError("_StridedShard: not in tritensor: tensors are cut by fully_shard alone, along their first dimension")


class _Shards(type):
    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, Sharded) or super().__instancecheck__(
            instance
        )  # programs ask `isinstance(p, DTensor)` before p.full_tensor()


class DTensor(metaclass=_Shards):
    """What a shard of fully_shard's is: programs ask isinstance(p, DTensor) before they call p.full_tensor(). It makes none."""

    def __new__(cls, *args: Any, **kwargs: Any) -> NoReturn:
        raise NotImplementedError(
            "distributed.tensor.DTensor: not in tritensor: tensors are cut by fully_shard alone; a shard is made by it, or by its parameter's like(array)"
        )

    @staticmethod
    def from_local(*args: Any, **kwargs: Any) -> NoReturn:
        """Raises NotImplementedError: fully_shard alone cuts tensors."""
        DTensor()
