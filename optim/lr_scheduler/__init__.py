"""Learning-rate schedules: after each epoch (or step) `scheduler.step()` sets every group's "lr"."""

from tritensor.optim.lr_scheduler.base import EPOCH_DEPRECATION_WARNING as EPOCH_DEPRECATION_WARNING
from tritensor.optim.lr_scheduler.base import LRScheduler as LRScheduler
from tritensor.optim.lr_scheduler.base import _LRScheduler as _LRScheduler
from tritensor.optim.lr_scheduler.cycles import CyclicLR as CyclicLR
from tritensor.optim.lr_scheduler.cycles import OneCycleLR as OneCycleLR
from tritensor.optim.lr_scheduler.factors import ConstantLR as ConstantLR
from tritensor.optim.lr_scheduler.factors import CosineAnnealingLR as CosineAnnealingLR
from tritensor.optim.lr_scheduler.factors import CosineAnnealingWarmRestarts as CosineAnnealingWarmRestarts
from tritensor.optim.lr_scheduler.factors import ExponentialLR as ExponentialLR
from tritensor.optim.lr_scheduler.factors import LambdaLR as LambdaLR
from tritensor.optim.lr_scheduler.factors import LinearLR as LinearLR
from tritensor.optim.lr_scheduler.factors import MultiplicativeLR as MultiplicativeLR
from tritensor.optim.lr_scheduler.factors import MultiStepLR as MultiStepLR
from tritensor.optim.lr_scheduler.factors import PolynomialLR as PolynomialLR
from tritensor.optim.lr_scheduler.factors import StepLR as StepLR
from tritensor.optim.lr_scheduler.joined import ChainedScheduler as ChainedScheduler
from tritensor.optim.lr_scheduler.joined import SequentialLR as SequentialLR
from tritensor.optim.lr_scheduler.plateau import ReduceLROnPlateau as ReduceLROnPlateau
from tritensor.optim.optimizer import Optimizer as Optimizer
