"""torch.nn.grad: the gradients of convolutions by input and by weight, each by itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tritensor.autograd.engine import grad
from tritensor.autograd.modes import enable_grad, is_grad_enabled
from tritensor.nn import functional as F
from tritensor.ops.table import ops
from tritensor.tensor.core import Tensor


def _zeros(shape: Sequence[int], like: Tensor) -> Tensor:
    made: Tensor = ops.full(shape=tuple(shape), value=0, dtype=like.array.dtype, device=like.device)
    return made.requires_grad_()


def _by(convolution: Any, wanted: int, given: list[Tensor], grad_output: Tensor, settings: tuple[Any, ...]) -> Tensor:
    """The gradient of one of (input, weight). A convolution is linear in each, so that its value at zeros will do."""
    with enable_grad():
        y = convolution(*given, None, *settings)
    (found,) = grad(y, given[wanted], grad_output, create_graph=is_grad_enabled())
    return found


def _input(convolution: Any, size: Sequence[int], weight: Tensor, grad_output: Tensor, *settings: Any) -> Tensor:
    return _by(convolution, 0, [_zeros(size, weight), weight], grad_output, settings)


def _weight(convolution: Any, input: Tensor, size: Sequence[int], grad_output: Tensor, *settings: Any) -> Tensor:
    return _by(convolution, 1, [input, _zeros(size, input)], grad_output, settings)


def conv1d_input(
    input_size: Sequence[int], weight: Tensor, grad_output: Tensor, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1
) -> Tensor:
    """The gradient of conv1d by an input of input_size (batch, channels, length), given that of its result."""
    return _input(F.conv1d, input_size, weight, grad_output, stride, padding, dilation, groups)


def conv1d_weight(
    input: Tensor, weight_size: Sequence[int], grad_output: Tensor, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1
) -> Tensor:
    """The gradient of conv1d by a weight of weight_size (out channels, channels / groups, length), given that of its result."""
    return _weight(F.conv1d, input, weight_size, grad_output, stride, padding, dilation, groups)


def conv2d_input(
    input_size: Sequence[int], weight: Tensor, grad_output: Tensor, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1
) -> Tensor:
    """The gradient of conv2d by an input of input_size (batch, channels, h, w), given that of its result."""
    return _input(F.conv2d, input_size, weight, grad_output, stride, padding, dilation, groups)


def conv2d_weight(
    input: Tensor, weight_size: Sequence[int], grad_output: Tensor, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1
) -> Tensor:
    """The gradient of conv2d by a weight of weight_size (out channels, channels / groups, h, w), given that of its result."""
    return _weight(F.conv2d, input, weight_size, grad_output, stride, padding, dilation, groups)


def conv3d_input(
    input_size: Sequence[int], weight: Tensor, grad_output: Tensor, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1
) -> Tensor:
    """The gradient of conv3d by an input of input_size (batch, channels, depth, h, w), given that of its result."""
    return _input(F.conv3d, input_size, weight, grad_output, stride, padding, dilation, groups)


def conv3d_weight(
    input: Tensor, weight_size: Sequence[int], grad_output: Tensor, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1
) -> Tensor:
    """The gradient of conv3d by a weight of weight_size (out channels, channels / groups, depth, h, w), given that of its result."""
    return _weight(F.conv3d, input, weight_size, grad_output, stride, padding, dilation, groups)
