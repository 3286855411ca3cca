"""Fully sharded training: every process keeps a part of the parameters, gradients and optimizer states.

Memory of P parameters of e bytes on N processes, with an optimizer of k states for each parameter (AdamW 2, SGD with momentum 1), between
backward and the optimizer's step, activations not counted:

    one process, or DistributedDataParallel        (2 + k) e P
    ZeRO-1 (ZeroRedundancyOptimizer)               (2 + k / N) e P
    ZeRO-2 (the same with shard_gradients=True)    (1 + (1 + k) / N) e P
    full sharding (fully_shard, every block)       (2 + k) / N e P

Padding comes to these: with full sharding less than N rows for each parameter. While forward and backward run, full sharding also holds the
whole parameters of the root's group and of at most two others (the one in use and the next), once more that of the one which arrives, and in
backward the whole gradients of one group and those of the one that is being reduced. ZeRO-2 holds two buckets besides. MPI adds buffers of its
own to a call that is on its way (MPICH: twice the size of a reduction, once that of a gather).

The method of ZeRO is that of Rajbhandari et al., "ZeRO: Memory Optimizations Toward Training Trillion Parameter Models" (SC 2020), that of
full sharding of Zhao et al., "PyTorch FSDP: Experiences on Scaling Fully Sharded Data Parallel" (VLDB 2023).
"""

from tritensor.distributed.fsdp.clipping import clip_grad_norm_ as clip_grad_norm_
from tritensor.distributed.fsdp.fully_sharded_data_parallel import BackwardPrefetch as BackwardPrefetch
from tritensor.distributed.fsdp.fully_sharded_data_parallel import CPUOffload as CPUOffload
from tritensor.distributed.fsdp.fully_sharded_data_parallel import FullOptimStateDictConfig as FullOptimStateDictConfig
from tritensor.distributed.fsdp.fully_sharded_data_parallel import FullStateDictConfig as FullStateDictConfig
from tritensor.distributed.fsdp.fully_sharded_data_parallel import FullyShardedDataParallel as FullyShardedDataParallel
from tritensor.distributed.fsdp.fully_sharded_data_parallel import MixedPrecision as MixedPrecision
from tritensor.distributed.fsdp.fully_sharded_data_parallel import ShardedOptimStateDictConfig as ShardedOptimStateDictConfig
from tritensor.distributed.fsdp.fully_sharded_data_parallel import ShardedStateDictConfig as ShardedStateDictConfig
from tritensor.distributed.fsdp.fully_sharded_data_parallel import ShardingStrategy as ShardingStrategy
from tritensor.distributed.fsdp.fully_sharded_data_parallel import StateDictType as StateDictType
from tritensor.distributed.fsdp.module import FSDPModule as FSDPModule
from tritensor.distributed.fsdp.module import UnshardHandle as UnshardHandle
from tritensor.distributed.fsdp.policies import CPUOffloadPolicy as CPUOffloadPolicy
from tritensor.distributed.fsdp.policies import MixedPrecisionPolicy as MixedPrecisionPolicy
from tritensor.distributed.fsdp.policies import OffloadPolicy as OffloadPolicy
from tritensor.distributed.fsdp.sharded_parameter import Shard as Shard
from tritensor.distributed.fsdp.sharded_parameter import Sharded as Sharded
from tritensor.distributed.fsdp.sharded_parameter import ShardedParameter as ShardedParameter
from tritensor.distributed.fsdp.sharded_parameter import ShardedTensor as ShardedTensor
from tritensor.distributed.fsdp.sharding import fully_shard as fully_shard
from tritensor.distributed.fsdp.sharding import register_fsdp_forward_method as register_fsdp_forward_method
from tritensor.distributed.fsdp.states import full_state_dict as full_state_dict
