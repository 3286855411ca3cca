"""Optimizers and learning-rate schedules: SGD, Adam, AdamW and the others of PyTorch, Lion, and `lr_scheduler`."""

from tritensor.optim import lr_scheduler as lr_scheduler
from tritensor.optim.hooks import register_optimizer_step_post_hook as register_optimizer_step_post_hook
from tritensor.optim.hooks import register_optimizer_step_pre_hook as register_optimizer_step_pre_hook
from tritensor.optim.optimizer import Optimizer as Optimizer
from tritensor.optim.optimizers.adafactor import Adafactor as Adafactor
from tritensor.optim.optimizers.adagrad import Adadelta as Adadelta
from tritensor.optim.optimizers.adagrad import Adagrad as Adagrad
from tritensor.optim.optimizers.adagrad import RMSprop as RMSprop
from tritensor.optim.optimizers.adam import Adam as Adam
from tritensor.optim.optimizers.adam import Adamax as Adamax
from tritensor.optim.optimizers.adam import AdamW as AdamW
from tritensor.optim.optimizers.adam import NAdam as NAdam
from tritensor.optim.optimizers.adam import RAdam as RAdam
from tritensor.optim.optimizers.lbfgs import LBFGS as LBFGS
from tritensor.optim.optimizers.muon import Muon as Muon
from tritensor.optim.optimizers.rprop import Lion as Lion
from tritensor.optim.optimizers.rprop import Rprop as Rprop
from tritensor.optim.optimizers.sgd import ASGD as ASGD
from tritensor.optim.optimizers.sgd import SGD as SGD
from tritensor.optim.optimizers.sparse_adam import SparseAdam as SparseAdam
from tritensor.optim.swapping import swap_in_optimizer_params_and_state as swap_in_optimizer_params_and_state
