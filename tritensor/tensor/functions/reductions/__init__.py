"""Functions over dims: sums, extremes, norms, running sums, differences, statistics, distances."""

# Imported so that they register: each publishes its functions as it is loaded.
from tritensor.tensor.functions.reductions import cumulative, differences, distances, normalized, reductions, statistics  # noqa: F401
