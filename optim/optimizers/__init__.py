"""The optimizers, a file each."""
