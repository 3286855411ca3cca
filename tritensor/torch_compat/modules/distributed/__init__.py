"""Modules of torch.distributed that libraries take single names from."""
