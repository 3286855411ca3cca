"""PyTorch's database of optimizers walked over tritensor: each with each of its inputs, step by step on the same gradients, and its bad inputs."""
