"""Tensors that share memory: views in the graph, writes in place, windows of any strides."""
