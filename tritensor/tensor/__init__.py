"""Tensors: the class, its operators, and the public functions by family (each file publishes into `publish.public`)."""

# Imported so that they register: each publishes its functions as it is loaded.
from tritensor.tensor import core, host_values, launch_arguments, printing  # noqa: F401
from tritensor.tensor.aliasing import function_results, inplace  # noqa: F401
from tritensor.tensor.functions import (  # noqa: F401
    creation,
    factorizations,
    images,
    indexing,
    linear,
    pointwise,
    reductions,
    shaping,
    sorting,
    spectral,
    types,
)
from tritensor.tensor.public_api import publish  # noqa: F401
