"""PyTorch's readers of files."""
