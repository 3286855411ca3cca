"""Pooling over windows: maximum and average."""
