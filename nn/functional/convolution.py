"""Convolution: a window of weights slid over an image."""

from __future__ import annotations

from collections.abc import Sequence

from tritensor.errors import ArgumentError, ShapeError
from tritensor.nn.functional.padding import pad
from tritensor.nn.functional.windows import batched, pair
from tritensor.table import ops
from tritensor.tensor.core import Tensor
from tritensor.tensor.publishing.publish import checked


@checked
def conv2d(
    input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: int | Sequence[int] = 1, padding: int | str | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1, groups: int = 1,
) -> Tensor:  # fmt: skip
    """Cross-correlation: input (batch, in, h, w), weight (out, in / groups, kh, kw), bias (out) -> (batch, out, h', w').

    `padding` is a size, a pair, "valid" (none) or "same" (the output is as large as the input; stride 1 only). An input (in, h, w) is a batch of one.
    """
    x, single = batched("conv2d", input)
    strides, dilations = pair("conv2d", "stride", stride), pair("conv2d", "dilation", dilation)
    if isinstance(padding, str):
        x, pads = _named_padding(x, weight, padding, strides, dilations)
    else:
        pads = pair("conv2d", "padding", padding)
    y = ops.conv2d(x, weight, bias, stride=strides, padding=pads, dilation=dilations, groups=groups)
    return y.squeeze(0) if single else y


def _named_padding(
    x: Tensor, weight: Tensor, padding: str, stride: tuple[int, int], dilation: tuple[int, int]
) -> tuple[Tensor, tuple[int, int]]:
    if weight.ndim != 4:
        raise ShapeError(f"conv2d: weight {tuple(weight.shape)} has {weight.ndim} dimensions; give (out, in / groups, height, width)")
    if padding == "valid":
        return x, (0, 0)
    if padding != "same":
        raise ArgumentError(f"conv2d: padding {padding!r} is not known; give 'same', 'valid', an integer or a pair")
    if stride != (1, 1):
        raise ArgumentError(f"conv2d: padding='same' is not supported for strided convolutions; stride is {stride}")
    rows, columns = (d * (k - 1) for d, k in zip(dilation, weight.shape[2:], strict=True))
    if rows % 2 or columns % 2:  # an even kernel wants one more at the bottom or right
        x = pad(x, (0, columns % 2, 0, rows % 2))
    return x, (rows // 2, columns // 2)
