"""torch.distributed.nn: collectives that gradients go through."""

from tritensor.distributed.nn.functional import all_gather as all_gather
from tritensor.distributed.nn.functional import all_reduce as all_reduce
from tritensor.distributed.nn.functional import all_to_all as all_to_all
from tritensor.distributed.nn.functional import all_to_all_single as all_to_all_single
from tritensor.distributed.nn.functional import broadcast as broadcast
from tritensor.distributed.nn.functional import gather as gather
from tritensor.distributed.nn.functional import reduce as reduce
from tritensor.distributed.nn.functional import reduce_scatter as reduce_scatter
from tritensor.distributed.nn.functional import scatter as scatter
