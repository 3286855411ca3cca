"""Names by which types and modules print and pickle: PyTorch's where `import torch` is answered, the library's own elsewhere."""
