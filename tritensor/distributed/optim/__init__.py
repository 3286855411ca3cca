"""torch.distributed.optim's names: ZeroRedundancyOptimizer, of which every process keeps the states of its share of the parameters."""

from tritensor.distributed.optim.zero_redundancy_optimizer import ZeroRedundancyOptimizer as ZeroRedundancyOptimizer
