"""torch.distributed.tensor.placement_types: Shard, which placements of sharded parameters are, and DTensor, which these are; another name raises."""

import importlib
from typing import Any, NoReturn

from tritensor.distributed.fsdp.sharded_parameter import Shard as Shard
from tritensor.distributed.fsdp.sharded_parameter import Sharded

_tensor = importlib.import_module("tritensor.distributed.tensor")
Placement, Replicate, Partial = _tensor.Placement, _tensor.Replicate, _tensor.Partial


class _Shards(type):
    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, Sharded)  # programs ask `isinstance(p, DTensor)` before p.full_tensor()


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
