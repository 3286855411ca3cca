"""Tensors: the class, its operators, and the public functions by family (each file publishes into `publish.public`)."""

from tritensor.tensor import core as core
from tritensor.tensor import creation as creation
from tritensor.tensor import indexing as indexing
from tritensor.tensor import inplace as inplace
from tritensor.tensor import joining as joining
from tritensor.tensor import linear as linear
from tritensor.tensor import operators as operators
from tritensor.tensor import pointwise as pointwise
from tritensor.tensor import printing as printing
from tritensor.tensor import publish as publish
from tritensor.tensor import random as random
from tritensor.tensor import reductions as reductions
from tritensor.tensor import shaping as shaping
from tritensor.tensor import values as values
