"""Optimizers and learning-rate schedules: SGD, Adam, AdamW, and `lr_scheduler`."""

from tritensor.optim import lr_scheduler as lr_scheduler
from tritensor.optim.adam import Adam as Adam
from tritensor.optim.adamw import AdamW as AdamW
from tritensor.optim.hooks import register_optimizer_step_post_hook as register_optimizer_step_post_hook
from tritensor.optim.hooks import register_optimizer_step_pre_hook as register_optimizer_step_pre_hook
from tritensor.optim.optimizer import Optimizer as Optimizer
from tritensor.optim.sgd import SGD as SGD
