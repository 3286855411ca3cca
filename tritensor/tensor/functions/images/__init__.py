"""Images: padding by a constant, channels and pixels in other places, distances between vectors, grids."""

# Imported so that they register: each publishes its functions as it is loaded.
from tritensor.tensor.functions.images import distances, padding, sampling, shuffling  # noqa: F401
