"""Function transforms, as `torch.func`: derivatives of functions, and functions of one example over batches; all nest."""

from tritensor.func import functions as functions
from tritensor.func import interpreter as interpreter
from tritensor.func import transform as transform
from tritensor.func.forward import jvp as jvp
from tritensor.func.forward import linearize as linearize
from tritensor.func.gradients import grad as grad
from tritensor.func.gradients import grad_and_value as grad_and_value
from tritensor.func.gradients import vjp as vjp
from tritensor.func.jacobians import hessian as hessian
from tritensor.func.jacobians import jacfwd as jacfwd
from tritensor.func.jacobians import jacrev as jacrev
from tritensor.func.mapping import vmap as vmap
from tritensor.func.modules import debug_unwrap as debug_unwrap
from tritensor.func.modules import functional_call as functional_call
from tritensor.func.modules import functionalize as functionalize
from tritensor.func.modules import replace_all_batch_norm_modules_ as replace_all_batch_norm_modules_
from tritensor.func.modules import stack_module_state as stack_module_state
from tritensor.func.rearranging import rearrange as rearrange
