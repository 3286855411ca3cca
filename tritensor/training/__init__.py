"""Training: the loop of a training script with its callbacks, and the largest batch that a device has room for."""

from typing import Any

from tritensor.training import callbacks
from tritensor.training.batch_size import find_batch_size as find_batch_size
from tritensor.training.callbacks import Callback as Callback
from tritensor.training.callbacks import EarlyStopping as EarlyStopping
from tritensor.training.callbacks import ModelCheckpoint as ModelCheckpoint
from tritensor.training.callbacks import ProgressBar as ProgressBar
from tritensor.training.callbacks import WeightAveraging as WeightAveraging
from tritensor.training.trainer import Trainer as Trainer

__all__ = ["Callback", "EarlyStopping", "ModelCheckpoint", "ProgressBar", "TensorBoard", "Trainer", "WeightAveraging", "find_batch_size"]


def __getattr__(name: str) -> Any:
    """TensorBoard, imported when it is asked for: it loads its writer."""
    if name == "TensorBoard":
        return callbacks.TensorBoard
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
