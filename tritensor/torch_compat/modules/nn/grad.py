"""torch.nn.grad: the gradients of convolutions by input and by weight, each by itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tritensor.autograd.engine import grad
from tritensor.autograd.modes import enable_grad, is_grad_enabled
from tritensor.nn import functional as F
from tritensor.ops.table import ops
from tritensor.tensor.core import Tensor
from tritensor.tensor.public_api.publish import rename_function

Shape = Sequence[int]


def _make_zeros(shape: Shape, like: Tensor) -> Tensor:
    made: Tensor = ops.full(shape=tuple(shape), value=0, dtype=like._array.dtype, device=like.device)
    return made.requires_grad_()


def _differentiate(name: str, wanted: int, given: list[Tensor], grad_output: Tensor, settings: tuple[Any, ...]) -> Tensor:
    """The gradient of one of (input, weight). A convolution is linear in each, so that its value at zeros will do."""
    with enable_grad():
        y = getattr(F, name)(*given, None, *settings)
    (found,) = grad(y, given[wanted], grad_output, create_graph=is_grad_enabled())  # recorded where the caller records
    return found


def _publish(name: str, axes: str) -> None:
    def by_input(
        input_size: Shape, weight: Tensor, grad_output: Tensor, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1
    ) -> Tensor:
        return _differentiate(name, 0, [_make_zeros(input_size, weight), weight], grad_output, (stride, padding, dilation, groups))

    def by_weight(
        input: Tensor, weight_size: Shape, grad_output: Tensor, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1
    ) -> Tensor:
        return _differentiate(name, 1, [input, _make_zeros(weight_size, input)], grad_output, (stride, padding, dilation, groups))

    for f, of, size in ((by_input, "input", "batch, channels"), (by_weight, "weight", "out channels, channels / groups")):
        doc = f"The gradient of {name} by {'an' if of == 'input' else 'a'} {of} of {of}_size ({size}, {axes}), given that of its result."
        globals()[f"{name}_{of}"] = rename_function(f, f"{name}_{of}", doc)


for _name, _axes in (("conv1d", "length"), ("conv2d", "h, w"), ("conv3d", "depth, h, w")):
    _publish(_name, _axes)
