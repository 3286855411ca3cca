"""Attention layers: MultiheadAttention and Transformers."""
