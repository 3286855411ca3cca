"""torch.nn.parallel.DistributedDataParallel, which stands with the process groups; how arguments are given to replicas."""

from tritensor.distributed.data_parallel import DistributedDataParallel as DistributedDataParallel
from tritensor.nn.parallel import get_a_var as get_a_var
from tritensor.nn.parallel import scatter_kwargs as scatter_kwargs
