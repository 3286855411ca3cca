"""Flash attention: kernels that walk over keys or queries in tiles and never hold the weights."""
