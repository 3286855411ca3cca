"""Dropout: of single elements, of channels, and in the form that keeps mean and variance."""

from __future__ import annotations

from tritensor.autograd.modes import state
from tritensor.autograd.node import next_sequence
from tritensor.ground.call_site import warn
from tritensor.ground.errors import ShapeError
from tritensor.tensor.aliasing.inplace import overwrite
from tritensor.tensor.core import Tensor
from tritensor.tensor.functions.creation import dropout as drawn
from tritensor.tensor.public_api.publish import checked


def _apply_dropout(name: str, input: Tensor, p: float, training: bool, inplace: bool) -> Tensor:
    """drawn.<name>, written over the input where that is asked for."""
    if not isinstance(input, Tensor):  # which nothing else asks where nothing is dropped
        raise TypeError(f"{name}: input is a {type(input).__name__}; give a tensor (tritensor.tensor(...))")
    # taken before the op: overwrite tells the op's own nodes, which saved the old values, from older ones by it
    since = next_sequence() if inplace and state.enabled else None
    y = getattr(drawn, name)(input, p, training)
    return overwrite(input, y, f"{name}_", since) if inplace and y is not input else y


@checked
def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Each element 0 with probability p, else x / (1 - p); the input itself when not training."""
    return _apply_dropout("dropout", input, p, training, inplace)


@checked
def alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """Dropout that keeps mean 0 and variance 1, to go with selu (Klambauer et al. 2017)."""
    return _apply_dropout("alpha_dropout", input, p, training, inplace)


@checked
def feature_alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """alpha_dropout of whole channels of (batch, channels, ...)."""
    return _apply_dropout("feature_alpha_dropout", input, p, training, inplace)


def _drop_channels(input: Tensor, p: float, training: bool, inplace: bool, batch: bool) -> Tensor:
    if batch:
        return _apply_dropout("feature_dropout", input, p, training, inplace)
    y = _apply_dropout("feature_dropout", input.unsqueeze(0), p, training, inplace)  # a view: in place the input itself is written
    return input if inplace else y.squeeze(0)


@checked
def dropout1d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """dropout of whole channels of (batch, channels, length), or of (channels, length)."""
    if input.ndim not in (2, 3):
        raise ShapeError(
            f"dropout1d: input {tuple(input.shape)} has {input.ndim} dimensions; give (batch, channels, length) or (channels, length)"
        )
    return _drop_channels(input, p, training, inplace, input.ndim == 3)


@checked
def dropout2d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """dropout of whole channels of (batch, channels, height, width). Of three dimensions the first two are batch and channels, as in PyTorch."""
    if input.ndim not in (3, 4):
        warn(f"dropout2d: input {tuple(input.shape)} has {input.ndim} dimensions; give (batch, channels, height, width)")
    if input.ndim == 3:
        warn("dropout2d: an input of 3 dimensions is taken as (batch, channels, length); use dropout1d for that")
    return _apply_dropout("feature_dropout", input, p, training, inplace)


@checked
def dropout3d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """dropout of whole channels of (batch, channels, depth, height, width), or of one without a batch."""
    if input.ndim not in (4, 5):
        warn(f"dropout3d: input {tuple(input.shape)} has {input.ndim} dimensions; give (batch, channels, depth, height, width)")
    # of other numbers of dimensions it only warned: they are taken as batches
    return _drop_channels(input, p, training, inplace, input.ndim != 4)
