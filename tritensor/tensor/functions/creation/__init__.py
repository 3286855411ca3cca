"""Tensors made from data, shapes and random numbers."""

from tritensor.tensor.functions.creation import constructors as constructors
from tritensor.tensor.functions.creation import random as random
