"""Our signatures against PyTorch's, as they were recorded."""
