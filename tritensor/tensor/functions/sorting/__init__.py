"""Functions that order and search: sorts, ranks, quantiles, distinct elements, places in sorted rows, positions of what is not zero."""

# Imported so that they register: each publishes its functions as it is loaded.
from tritensor.tensor.functions.sorting import distinct, masked, ordering, quantiles, searching  # noqa: F401
