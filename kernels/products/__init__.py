"""Matrix products: matmul, linear."""
