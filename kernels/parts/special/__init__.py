"""Special functions as formulas of kernels, which numpy and Tensors read as well (see spellings): approximations with their sources."""
