"""Layers: tensors that stand for what a transform lets a function see (see tritensor/func): one example of a batch, a value with its tangent,
a value that an inner derivative watches, a value whose ops are noted down."""

from tritensor.layers.array import LayerArray as LayerArray
from tritensor.layers.levels import GRAD as GRAD
from tritensor.layers.levels import JVP as JVP
from tritensor.layers.levels import TRACE as TRACE
from tritensor.layers.levels import VMAP as VMAP
from tritensor.layers.levels import Level as Level
from tritensor.layers.levels import factor_of_draws as factor_of_draws
from tritensor.layers.levels import running as running
