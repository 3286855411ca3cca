"""DropBlock (Ghiasi et al. 2018): whole blocks of a feature map zeroed at random while training."""

from __future__ import annotations

from tritensor import nn
from tritensor.ground.errors import ArgumentError, ShapeError
from tritensor.nn import functional as F
from tritensor.tensor.core import Tensor
from tritensor.tensor.functions.creation.constructors import empty


def _drop(who: str, input: Tensor, p: float, block: int, inplace: bool, eps: float, training: bool, dims: int) -> Tensor:
    if not 0.0 <= p <= 1.0:
        raise ArgumentError(f"{who}: drop probability has to be between 0 and 1, but got {p}")
    if input.ndim != dims + 2:
        raise ShapeError(f"{who}: input should be {dims + 2} dimensional; got {tuple(input.shape)}")
    if not training or p == 0.0:
        return input
    channels, sizes = tuple(input.shape[:2]), tuple(input.shape[2:])
    block = min(block, *sizes)
    inner = [n - block + 1 for n in sizes]  # where a block's first corner may lie
    places, whole = 1, 1
    for n, m in zip(inner, sizes, strict=True):
        places, whole = places * n, whole * m
    gamma = p * whole / (block**dims * places)  # so that p of all elements are dropped
    seeds = empty((*channels, *inner), dtype=input.dtype, device=input.device).bernoulli_(gamma)
    seeds = F.pad(seeds, [block // 2] * (2 * dims), value=0.0)
    pool = F.max_pool2d if dims == 2 else F.max_pool3d
    kept = 1 - pool(seeds, stride=(1,) * dims, kernel_size=(block,) * dims, padding=block // 2)
    scale = kept.numel() / (eps + kept.sum())
    return input.mul_(kept).mul_(scale) if inplace else input * kept * scale


def drop_block2d(input: Tensor, p: float, block_size: int, inplace: bool = False, eps: float = 1e-6, training: bool = True) -> Tensor:
    """Images (n, c, h, w) with blocks of block_size x block_size zeroed, p of all elements; the rest is scaled so that the mean stays.

    Raises ValueError for a p outside 0 to 1, ShapeError for other dimensions.
    """
    return _drop("drop_block2d", input, p, block_size, inplace, eps, training, 2)


def drop_block3d(input: Tensor, p: float, block_size: int, inplace: bool = False, eps: float = 1e-6, training: bool = True) -> Tensor:
    """drop_block2d of volumes (n, c, d, h, w)."""
    return _drop("drop_block3d", input, p, block_size, inplace, eps, training, 3)


class DropBlock2d(nn.Module):
    """`drop_block2d` as a layer."""

    def __init__(self, p: float, block_size: int, inplace: bool = False, eps: float = 1e-6) -> None:
        super().__init__()
        self.p, self.block_size, self.inplace, self.eps = p, block_size, inplace, eps

    def forward(self, input: Tensor) -> Tensor:
        return drop_block2d(input, self.p, self.block_size, self.inplace, self.eps, self.training)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(p={self.p}, block_size={self.block_size}, inplace={self.inplace})"


class DropBlock3d(DropBlock2d):
    """`drop_block3d` as a layer."""

    def forward(self, input: Tensor) -> Tensor:
        return drop_block3d(input, self.p, self.block_size, self.inplace, self.eps, self.training)
