"""Functions of functions: gradients, products and maps, against loops and against PyTorch."""
