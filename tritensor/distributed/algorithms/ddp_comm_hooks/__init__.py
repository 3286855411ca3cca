"""torch.distributed.algorithms.ddp_comm_hooks: ways to communicate gradients, for DistributedDataParallel.register_comm_hook."""
