"""PyTorch's module database walked over tritensor.nn: the same constructor, state, repr, outputs and gradients."""
