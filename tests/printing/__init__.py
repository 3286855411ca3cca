"""How PyTorch prints tensors, as it was recorded: values of every type and shape, under every option, without torch being installed."""
