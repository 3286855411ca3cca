"""torch.distributed._composable.fsdp: an older path of fully_shard and what goes with it."""

from tritensor.distributed.fsdp import CPUOffloadPolicy as CPUOffloadPolicy
from tritensor.distributed.fsdp import FSDPModule as FSDPModule
from tritensor.distributed.fsdp import MixedPrecisionPolicy as MixedPrecisionPolicy
from tritensor.distributed.fsdp import OffloadPolicy as OffloadPolicy
from tritensor.distributed.fsdp import UnshardHandle as UnshardHandle
from tritensor.distributed.fsdp import fully_shard as fully_shard
from tritensor.distributed.fsdp import register_fsdp_forward_method as register_fsdp_forward_method
