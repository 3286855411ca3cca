"""Images: padding by a constant, channels and pixels in other places, distances between vectors, grids."""

from tritensor.tensor.functions.images import distances as distances
from tritensor.tensor.functions.images import padding as padding
from tritensor.tensor.functions.images import sampling as sampling
from tritensor.tensor.functions.images import shuffling as shuffling
