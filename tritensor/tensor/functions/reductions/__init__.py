"""Functions over dims: sums, extremes, norms, running sums."""

from tritensor.tensor.functions.reductions import reductions as reductions
