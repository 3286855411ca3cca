"""The sizes of a convolution, and what is refused of them."""

from __future__ import annotations

import math
from typing import NamedTuple

from tritensor.ground.errors import ShapeError

Sizes = tuple[int, ...]

_AXES = {1: "W", 2: "H, W", 3: "D, H, W"}
_KERNELS = {1: "kw", 2: "kh, kw", 3: "kd, kh, kw"}
RESULTS = {1: "OW", 2: "OH, OW", 3: "OD, OH, OW"}


class Geometry(NamedTuple):
    """Sizes of one convolution: (N, C, *size) with (O, C / groups, *kernel) to (N, O, *outs)."""

    batch: int
    channels: int
    out: int
    size: Sizes
    kernel: Sizes
    outs: Sizes
    stride: Sizes
    padding: Sizes
    dilation: Sizes
    groups: int

    @property
    def taps(self) -> int:
        """Cells of the kernel."""
        return math.prod(self.kernel)

    @property
    def whole(self) -> bool:
        """Whether the kernel covers each image once and no more: a product of matrices."""
        return self.groups == 1 and self.kernel == self.size and max(self.padding) == 0 and max(self.dilation) == 1

    def three(self) -> Geometry:
        """The same over three axes, those in front of size 1."""
        lead = 3 - len(self.size)
        ones, none = (1,) * lead, (0,) * lead
        return Geometry(
            self.batch, self.channels, self.out, ones + self.size, ones + self.kernel, ones + self.outs, ones + self.stride, none + self.padding,
            ones + self.dilation, self.groups,
        )  # fmt: skip


def out_size(size: int, kernel: int, stride: int, padding: int, dilation: int) -> int:
    """How many windows an axis has."""
    return (size + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1


def geometry(x: Sizes, w: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, groups: int = 1) -> Geometry:
    """All sizes of a convolution of x (N, C, *size) with weight (O, C / groups, *kernel); refuses nothing."""
    outs = tuple([out_size(*axis) for axis in zip(x[2:], w[2:], stride, padding, dilation, strict=True)])
    return Geometry(x[0], x[1], w[0], tuple(x[2:]), tuple(w[2:]), outs, tuple(stride), tuple(padding), tuple(dilation), groups)


def check_sizes(name: str, axes: int, x: Sizes, w: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, groups: int) -> Geometry:
    """The geometry, or a ShapeError that says what disagrees."""
    given = f"{name}: x {x}, weight {w}"
    if len(x) != axes + 2 or len(w) != axes + 2:
        raise ShapeError(f"{given}: x must be (N, C, {_AXES[axes]}) and weight (O, C / groups, {_KERNELS[axes]})")
    for what, numbers in (("stride", stride), ("padding", padding), ("dilation", dilation)):
        if len(numbers) != axes:
            raise ShapeError(f"{given}: {what} {tuple(numbers)} has {len(numbers)} numbers; give {axes}")
    if min(stride) < 1 or min(dilation) < 1 or groups < 1 or min(padding) < 0:
        raise ShapeError(
            f"{given}: stride {stride}, dilation {dilation} and groups {groups} must be at least 1 and padding {padding} at least 0"
        )
    if x[1] != w[1] * groups:
        raise ShapeError(f"{given}: x has {x[1]} channels, weight with groups={groups} takes {w[1]} * {groups} = {w[1] * groups}")
    if w[0] % groups:
        raise ShapeError(f"{given}: weight's {w[0]} output channels do not divide into {groups} groups")
    if min(w) == 0:
        raise ShapeError(f"{given}: weight has a size of 0")
    s = geometry(x, w, stride, padding, dilation, groups)
    if min(s.outs) < 1:
        spans = " x ".join([str(d * (k - 1) + 1) for d, k in zip(dilation, s.kernel, strict=True)])
        padded = " x ".join([str(n + 2 * p) for n, p in zip(s.size, padding, strict=True)])
        raise ShapeError(f"{given}: the kernel spans {spans}, the padded image only {padded}; give more padding, or less kernel")
    return s
