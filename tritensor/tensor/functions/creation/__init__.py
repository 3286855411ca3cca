"""Tensors made from data, shapes, memory and random numbers."""

from tritensor.tensor.functions.creation import constructors as constructors
from tritensor.tensor.functions.creation import distributions as distributions
from tritensor.tensor.functions.creation import dropout as dropout
from tritensor.tensor.functions.creation import gammas as gammas
from tritensor.tensor.functions.creation import memory as memory
from tritensor.tensor.functions.creation import random as random
from tritensor.tensor.functions.creation import sequences as sequences
from tritensor.tensor.functions.creation import windows as windows
