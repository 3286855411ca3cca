"""PyTorch's sample database walked over tritensor: which operations are here, and on which of their samples they answer as PyTorch does."""
