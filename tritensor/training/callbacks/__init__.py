"""Callbacks of a training run: the base, and the usual ones."""

from typing import Any

from tritensor.training.callbacks.base import HOOKS as HOOKS
from tritensor.training.callbacks.base import Callback as Callback
from tritensor.training.callbacks.early_stopping import EarlyStopping as EarlyStopping
from tritensor.training.callbacks.model_checkpoint import ModelCheckpoint as ModelCheckpoint
from tritensor.training.callbacks.progress_bar import ProgressBar as ProgressBar
from tritensor.training.callbacks.weight_averaging import WeightAveraging as WeightAveraging

__all__ = ["HOOKS", "Callback", "EarlyStopping", "ModelCheckpoint", "ProgressBar", "TensorBoard", "WeightAveraging"]


def __getattr__(name: str) -> Any:
    """TensorBoard, imported when it is asked for: it loads its writer."""
    if name == "TensorBoard":
        from tritensor.training.callbacks.tensorboard import TensorBoard

        return TensorBoard
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
