"""Names that programs take from `torch` itself and from `torch._C`, and that PyTorch does not document."""
