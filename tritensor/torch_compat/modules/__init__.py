"""Modules of PyTorch's tree that are small enough to be one file each; `finder.FILES` says which path each answers."""
