"""Static reports: what compiled kernels use, read without a GPU; the committed table of every launch, and configs side by side."""
