"""The examples in PyTorch's docstrings, run under both libraries."""
