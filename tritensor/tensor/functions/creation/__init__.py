"""Tensors made from data, shapes, memory and random numbers."""

# Imported so that they register: each publishes its functions as it is loaded.
from tritensor.tensor.functions.creation import (  # noqa: F401
    constructors,
    distributions,
    dropout,
    gammas,
    memory,
    multinomial,
    random,
    sequences,
    windows,
)
