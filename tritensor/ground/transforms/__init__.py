"""Transforms as the lower floors know them: levels, wrapped tensors, the protocol of whoever makes these."""

from tritensor.ground.transforms.levels import DISPATCH as DISPATCH
from tritensor.ground.transforms.levels import GRAD as GRAD
from tritensor.ground.transforms.levels import JVP as JVP
from tritensor.ground.transforms.levels import TRACE as TRACE
from tritensor.ground.transforms.levels import VMAP as VMAP
from tritensor.ground.transforms.levels import Level as Level
from tritensor.ground.transforms.levels import factor_of_draws as factor_of_draws
from tritensor.ground.transforms.levels import running as running
from tritensor.ground.transforms.wrapped_array import WrappedArray as WrappedArray
