"""torch.distributed.algorithms: training with uneven numbers of batches, and hooks on how gradients are communicated."""

from tritensor.distributed.algorithms.join import Join as Join
from tritensor.distributed.algorithms.join import Joinable as Joinable
from tritensor.distributed.algorithms.join import JoinHook as JoinHook
