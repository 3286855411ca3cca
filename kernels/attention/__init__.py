"""Attention: softmax(scale q @ k^T + mask) @ v as one op."""
