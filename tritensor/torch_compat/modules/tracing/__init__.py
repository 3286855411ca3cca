"""PyTorch's modules that trace programs, as far as libraries ask them whether they are at work."""
