"""torch.distributed.algorithms._checkpoint: the package of checkpoint_wrapper, and nothing else."""
