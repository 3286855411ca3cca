"""Tensors: the class, its operators, and the public functions by family (each file publishes into `publish.public`)."""

from tritensor.tensor import core as core
from tritensor.tensor import host_values as host_values
from tritensor.tensor import launch_arguments as launch_arguments
from tritensor.tensor import printing as printing
from tritensor.tensor.aliasing import inplace as inplace
from tritensor.tensor.functions import creation as creation
from tritensor.tensor.functions import factorizations as factorizations
from tritensor.tensor.functions import images as images
from tritensor.tensor.functions import indexing as indexing
from tritensor.tensor.functions import linear as linear
from tritensor.tensor.functions import pointwise as pointwise
from tritensor.tensor.functions import reductions as reductions
from tritensor.tensor.functions import shaping as shaping
from tritensor.tensor.functions import sorting as sorting
from tritensor.tensor.functions import spectral as spectral
from tritensor.tensor.functions import types as types
from tritensor.tensor.public_api import publish as publish
