"""Deformable convolution (Dai et al. 2017; with a mask, Zhu et al. 2019): each tap of the kernel reads where an offset sends it."""

from __future__ import annotations

import math
from typing import Any

from tritensor import nn
from tritensor.ground.errors import ShapeError
from tritensor.nn import functional as F
from tritensor.nn import init
from tritensor.tensor.core import Tensor
from tritensor.tensor.functions.creation.constructors import empty
from tritensor.tensor.functions.creation.sequences import arange
from tritensor.tensor.functions.shaping.joining import stack


def _pair(x: Any) -> tuple[int, int]:
    return (x, x) if isinstance(x, int) else (int(x[0]), int(x[1]))


def deform_conv2d(
    input: Tensor, offset: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Any = (1, 1), padding: Any = (0, 0),
    dilation: Any = (1, 1), mask: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """Images (n, c, h, w) by kernels (out, c / groups, kh, kw) that read between pixels: (n, out, oh, ow); outside of the image there is 0.

    Args:
        offset: (n, 2 * offset_groups * kh * kw, oh, ow), for each tap how far down and how far right of its place it reads.
        mask: (n, offset_groups * kh * kw, oh, ow), what each tap's value is multiplied by.

    Raises ShapeError where shapes do not fit. All tensors take gradients.
    """
    (sy, sx), (py, px), (dy, dx) = _pair(stride), _pair(padding), _pair(dilation)
    n, channels, height, width = input.shape
    out_channels, per_group, kh, kw = weight.shape
    taps = kh * kw
    oh, ow = (height + 2 * py - dy * (kh - 1) - 1) // sy + 1, (width + 2 * px - dx * (kw - 1) - 1) // sx + 1
    offset_groups = offset.shape[1] // (2 * taps)
    if offset_groups == 0:
        raise ShapeError(
            f"deform_conv2d: the shape of the offset tensor at dimension 1 is not valid. It should be a multiple of 2 * weight.size[2] * weight.size[3].\n"
            f"Got offset.shape[1]={offset.shape[1]}, while 2 * weight.size[2] * weight.size[3]={2 * taps}"
        )
    if tuple(offset.shape) != (n, 2 * offset_groups * taps, oh, ow) or channels % offset_groups or channels % per_group:
        raise ShapeError(
            f"deform_conv2d: input {tuple(input.shape)}, offset {tuple(offset.shape)}, weight {tuple(weight.shape)}: "
            f"the offset is to be ({n}, 2 * offset_groups * {taps}, {oh}, {ow}), and both kinds of groups divide the {channels} channels"
        )
    if mask is not None and tuple(mask.shape) != (n, offset_groups * taps, oh, ow):
        raise ShapeError(f"deform_conv2d: mask {tuple(mask.shape)}; give {(n, offset_groups * taps, oh, ow)}")
    moved = offset.reshape(n * offset_groups, taps, 2, oh, ow)

    def places(taken: int, step: int, pad: int, spread: int, count: int, across: bool) -> Tensor:
        tap = arange(taps, device=input.device)
        tap = (tap % kw if across else tap // kw) * spread - pad
        at = arange(count, device=input.device) * step
        grid = tap[:, None, None] + (at[None, None, :] if across else at[None, :, None])
        return moved[:, :, taken] + grid.to(input.dtype)  # (n * offset_groups, taps, oh, ow)

    y, x = places(0, sy, py, dy, oh, False), places(1, sx, px, dx, ow, True)
    grid = stack(((2 * x + 1) / width - 1, (2 * y + 1) / height - 1), -1).reshape(n * offset_groups, taps * oh, ow, 2)
    maps = input.reshape(n * offset_groups, channels // offset_groups, height, width)
    read = F.grid_sample(maps, grid, mode="bilinear", padding_mode="zeros", align_corners=False)
    read = read.reshape(n, offset_groups, channels // offset_groups, taps, oh * ow)
    if mask is not None:
        read = read * mask.reshape(n, offset_groups, 1, taps, oh * ow)
    groups = channels // per_group
    columns = read.reshape(n, groups, per_group * taps, oh * ow)
    out = (weight.reshape(groups, out_channels // groups, per_group * taps) @ columns).reshape(n, out_channels, oh, ow)
    return out if bias is None else out + bias.reshape(1, -1, 1, 1)


class DeformConv2d(nn.Module):
    """`deform_conv2d` as a layer: `layer(images, offset, mask)`."""

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1,
        bias: bool = True,
    ) -> None:  # fmt: skip
        super().__init__()
        if in_channels % groups or out_channels % groups:
            raise ValueError(
                f"DeformConv2d: in_channels {in_channels} and out_channels {out_channels} must be divisible by groups {groups}"
            )
        self.in_channels, self.out_channels, self.groups = in_channels, out_channels, groups
        self.kernel_size, self.stride, self.padding, self.dilation = (_pair(x) for x in (kernel_size, stride, padding, dilation))
        self.weight = nn.Parameter(empty(out_channels, in_channels // groups, *self.kernel_size))
        self.register_parameter("bias", nn.Parameter(empty(out_channels)) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """New weights, as Conv2d's."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            bound = 1 / math.sqrt(self.weight[0].numel())
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input: Tensor, offset: Tensor, mask: Tensor | None = None) -> Tensor:
        return deform_conv2d(input, offset, self.weight, self.bias, self.stride, self.padding, self.dilation, mask)

    def extra_repr(self) -> str:
        return f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"
