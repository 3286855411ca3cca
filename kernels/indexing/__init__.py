"""Indexing: picking and putting by index, gather and scatter, embedding."""
