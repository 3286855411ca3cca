"""Functions that order and search: sorts, ranks, quantiles, distinct elements, places in sorted rows, positions of what is not zero."""

from tritensor.tensor.functions.sorting import distinct as distinct
from tritensor.tensor.functions.sorting import masked as masked
from tritensor.tensor.functions.sorting import ordering as ordering
from tritensor.tensor.functions.sorting import quantiles as quantiles
from tritensor.tensor.functions.sorting import searching as searching
