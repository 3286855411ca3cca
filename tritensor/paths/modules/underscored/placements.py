"""torch.distributed.tensor.placement_types: Shard, which placements of sharded parameters are; the other names annotate functions, using one raises."""

import importlib

from tritensor.distributed.fsdp.sharded_parameter import Shard as Shard

_tensor = importlib.import_module("tritensor.distributed.tensor")
Placement, Replicate, Partial = _tensor.Placement, _tensor.Replicate, _tensor.Partial
