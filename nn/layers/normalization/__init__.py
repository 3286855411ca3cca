"""Layers that normalise: over batches, instances, groups, the last dimensions, neighbouring channels."""
