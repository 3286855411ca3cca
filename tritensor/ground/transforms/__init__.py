"""Layers: tensors that stand for what a transform lets a function see (see tritensor/func): one example of a batch, a value with its tangent,
a value that an inner derivative watches, a value whose ops are noted down."""

from tritensor.ground.transforms.levels import GRAD as GRAD
from tritensor.ground.transforms.levels import JVP as JVP
from tritensor.ground.transforms.levels import TRACE as TRACE
from tritensor.ground.transforms.levels import VMAP as VMAP
from tritensor.ground.transforms.levels import Level as Level
from tritensor.ground.transforms.levels import factor_of_draws as factor_of_draws
from tritensor.ground.transforms.levels import running as running
from tritensor.ground.transforms.wrapped_array import LayerArray as LayerArray
