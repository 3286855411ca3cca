"""The CUDA driver through cuda-python: calls, devices, memory, streams, kernels, and the runtime made of them."""
