"""Printing as PyTorch does it, as it was recorded: values of every type and shape, under every option, without torch being installed."""
