"""A CUDA driver without a GPU: libcuda.c and its neighbours in C, control.py to ask and steer it, child.py to run tests on it."""
