"""Training: the loop of a training script with its callbacks, and the largest batch that a device has room for."""

from tritensor.training.batch_size import find_batch_size as find_batch_size
from tritensor.training.callbacks import Callback as Callback
from tritensor.training.callbacks import EarlyStopping as EarlyStopping
from tritensor.training.callbacks import ProgressBar as ProgressBar
from tritensor.training.trainer import Trainer as Trainer

__all__ = ["Callback", "EarlyStopping", "ProgressBar", "Trainer", "find_batch_size"]
