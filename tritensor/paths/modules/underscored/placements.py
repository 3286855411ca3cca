"""torch.distributed.tensor.placement_types: names that annotate functions; using one raises."""

import importlib

_tensor = importlib.import_module("tritensor.distributed.tensor")
Placement, Shard, Replicate, Partial = _tensor.Placement, _tensor.Shard, _tensor.Replicate, _tensor.Partial
