"""Tools for parameters and gradients: clipping by norm or by value, and parameters as one vector."""

from tritensor.nn.utils.clip_grad import clip_grad_norm_ as clip_grad_norm_
from tritensor.nn.utils.clip_grad import clip_grad_value_ as clip_grad_value_
from tritensor.nn.utils.clip_grad import get_total_norm as get_total_norm
from tritensor.nn.utils.convert_parameters import parameters_to_vector as parameters_to_vector
from tritensor.nn.utils.convert_parameters import vector_to_parameters as vector_to_parameters
