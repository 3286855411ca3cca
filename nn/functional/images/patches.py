"""Patches of images: unfold lays the windows out as columns, fold adds columns up to images."""

from __future__ import annotations

from collections.abc import Sequence

from tritensor.ground.errors import ShapeError
from tritensor.nn.functional.window_arguments import add_batch, pair
from tritensor.ops.table import ops
from tritensor.tensor.core import Tensor
from tritensor.tensor.functions.shaping.reshaping import forget_base
from tritensor.tensor.public_api.publish import checked

Sizes = int | Sequence[int]


@checked
def unfold(input: Tensor, kernel_size: Sizes, dilation: Sizes = 1, padding: Sizes = 0, stride: Sizes = 1) -> Tensor:
    """The windows of images as columns: (batch, c, h, w) -> (batch, c * kh * kw, windows), zeros where a window leaves the image (im2col)."""
    x, single = add_batch("unfold", input)
    y = ops.im2col(
        x, kernel_size=pair("unfold", "kernel_size", kernel_size), dilation=pair("unfold", "dilation", dilation),
        padding=pair("unfold", "padding", padding), stride=pair("unfold", "stride", stride),
    )  # fmt: skip
    return forget_base(y.squeeze(0)) if single else y


@checked
def fold(input: Tensor, output_size: Sizes, kernel_size: Sizes, dilation: Sizes = 1, padding: Sizes = 0, stride: Sizes = 1) -> Tensor:
    """Columns added up to images, each cell the sum over the windows that hold it: (batch, c * kh * kw, windows) -> (batch, c, *output_size)."""
    if input.ndim not in (2, 3):
        raise ShapeError(
            f"fold: input {tuple(input.shape)} has {input.ndim} dimensions; give (batch, columns, windows) or (columns, windows)"
        )
    single = input.ndim == 2
    y = ops.col2im(
        input.unsqueeze(0) if single else input, output_size=pair("fold", "output_size", output_size),
        kernel_size=pair("fold", "kernel_size", kernel_size), dilation=pair("fold", "dilation", dilation),
        padding=pair("fold", "padding", padding), stride=pair("fold", "stride", stride),
    )  # fmt: skip
    return forget_base(y.squeeze(0)) if single else y
