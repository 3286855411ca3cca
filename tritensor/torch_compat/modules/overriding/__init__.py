"""PyTorch's modules about what takes functions over: torch.overrides, and torch.utils._python_dispatch, which says that it is not here."""
