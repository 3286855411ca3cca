"""Functions over dims: sums, extremes, norms, running sums, differences, statistics, distances."""

from tritensor.tensor.functions.reductions import cumulative as cumulative
from tritensor.tensor.functions.reductions import differences as differences
from tritensor.tensor.functions.reductions import distances as distances
from tritensor.tensor.functions.reductions import masked as masked
from tritensor.tensor.functions.reductions import normalized as normalized
from tritensor.tensor.functions.reductions import reductions as reductions
from tritensor.tensor.functions.reductions import statistics as statistics
