"""The module tree that scripts import, and PyTorch's public names, recorded."""
