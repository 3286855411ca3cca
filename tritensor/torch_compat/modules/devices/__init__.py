"""PyTorch's modules of kinds of devices."""
