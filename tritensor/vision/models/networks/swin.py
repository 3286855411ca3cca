"""Swin transformer (Liu et al. 2021) and its second version (2022): attention inside windows that shift, with the names that published weights have."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import tritensor.nn.functional as F
from tritensor import nn
from tritensor.ground.errors import ArgumentError
from tritensor.nn import init
from tritensor.tensor.core import Tensor
from tritensor.tensor.functions.creation.constructors import full, zeros
from tritensor.tensor.functions.creation.sequences import arange
from tritensor.tensor.functions.shaping.joining import cat, stack
from tritensor.vision.models.networks.starts import Layer
from tritensor.vision.ops.layers import MLP, Permute
from tritensor.vision.ops.stochastic_depth import StochasticDepth


class PatchMerging(nn.Module):
    """Four neighbours as one: (..., h, w, dim) to (..., h / 2, w / 2, 2 dim), a norm before the linear layer."""

    def __init__(self, dim: int, norm_layer: Layer = nn.LayerNorm) -> None:
        super().__init__()
        self.dim = dim
        self.reduction = nn.Linear(4 * dim, 2 * dim, bias=False)
        self.norm = norm_layer(self._normed(dim))

    def _normed(self, dim: int) -> int:
        return 4 * dim

    def _neighbours(self, x: Tensor) -> Tensor:
        height, width, _ = x.shape[-3:]
        x = F.pad(x, (0, 0, 0, width % 2, 0, height % 2))
        return cat([x[..., row::2, column::2, :] for column in (0, 1) for row in (0, 1)], -1)

    def forward(self, x: Tensor) -> Tensor:
        return self.reduction(self.norm(self._neighbours(x)))  # type: ignore[no-any-return]


class PatchMergingV2(PatchMerging):
    """The same with the norm behind the linear layer."""

    def _normed(self, dim: int) -> int:
        return 2 * dim

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(self.reduction(self._neighbours(x)))  # type: ignore[no-any-return]


def _split(x: Tensor, window: Sequence[int]) -> Tensor:
    """(n, h, w, channels) as windows (n windows, window height * width, channels)."""
    n, height, width, channels = x.shape
    x = x.reshape(n, height // window[0], window[0], width // window[1], window[1], channels)
    return x.permute(0, 1, 3, 2, 4, 5).reshape(-1, window[0] * window[1], channels)


def _join(x: Tensor, window: Sequence[int], n: int, height: int, width: int) -> Tensor:
    """The inverse of _split."""
    x = x.reshape(n, height // window[0], width // window[1], window[0], window[1], -1)
    return x.permute(0, 1, 3, 2, 4, 5).reshape(n, height, width, -1)


def _separate(like: Tensor, height: int, width: int, window: Sequence[int], shift: Sequence[int]) -> Tensor:
    """(windows, 1, length, length): -100 between pixels that only the shift put into one window, 0 between others."""
    regions = like.new_zeros(1, height, width, 1)
    ends = [[(0, n - w), (n - w, n - s), (n - s, n)] for n, w, s in ((height, window[0], shift[0]), (width, window[1], shift[1]))]
    for i, (top, bottom) in enumerate(ends[0]):
        for j, (left, right) in enumerate(ends[1]):
            regions[:, top:bottom, left:right] = 3 * i + j
    flat = _split(regions, window)[..., 0]
    return ((flat[:, None] != flat[:, :, None]).to(like.dtype) * -100.0)[:, None]


class ShiftedWindowAttention(nn.Module):
    """Attention inside windows of (n, h, w, dim), moved by shift_size. Raises ValueError for sizes that are no pairs."""

    def __init__(
        self, dim: int, window_size: list[int], shift_size: list[int], num_heads: int, qkv_bias: bool = True, proj_bias: bool = True,
        attention_dropout: float = 0.0, dropout: float = 0.0,
    ) -> None:  # fmt: skip
        super().__init__()
        if len(window_size) != 2 or len(shift_size) != 2:
            raise ArgumentError("window_size and shift_size must be of length 2")
        self.window_size, self.shift_size, self.num_heads = window_size, shift_size, num_heads
        self.attention_dropout, self.dropout = attention_dropout, dropout
        self.qkv, self.proj = nn.Linear(dim, 3 * dim, bias=qkv_bias), nn.Linear(dim, dim, bias=proj_bias)
        self.define_relative_position_bias_table()
        rows, columns = (arange(n) for n in window_size)
        places = stack([rows[:, None].expand(*window_size), columns.expand(*window_size)]).flatten(1)
        apart = places[:, :, None] - places[:, None, :]
        index = (apart[0] + window_size[0] - 1) * (2 * window_size[1] - 1) + apart[1] + window_size[1] - 1
        self.register_buffer("relative_position_index", index.flatten())

    def define_relative_position_bias_table(self) -> None:
        """A number for each distance and each head."""
        table = zeros((2 * self.window_size[0] - 1) * (2 * self.window_size[1] - 1), self.num_heads)
        self.relative_position_bias_table = nn.Parameter(init.trunc_normal_(table, std=0.02))

    def get_relative_position_bias(self) -> Tensor:
        """(1, heads, length, length): what is added to the weights of attention."""
        return self._by_place(self.relative_position_bias_table)

    def _by_place(self, table: Tensor) -> Tensor:
        length = self.window_size[0] * self.window_size[1]
        return table[self.relative_position_index].reshape(length, length, -1).permute(2, 0, 1)[None]

    def _weigh(self, q: Tensor, k: Tensor) -> Tensor:
        """The weights of attention before what is added to them."""
        return (q * q.shape[-1] ** -0.5) @ k.transpose(-2, -1)

    def _bias(self) -> Tensor | None:
        return self.qkv.bias

    def forward(self, x: Tensor) -> Tensor:
        n, height, width, channels = x.shape
        window = self.window_size
        padded = F.pad(x, (0, 0, 0, -width % window[1], 0, -height % window[0]))
        _, high, wide, _ = padded.shape
        # one window holds all of an axis: nothing to shift
        shift = [0 if size >= length else s for size, length, s in zip(window, (high, wide), self.shift_size, strict=True)]
        if any(shift):
            padded = padded.roll((-shift[0], -shift[1]), (1, 2))
        words = _split(padded, window)
        qkv = F.linear(words, self.qkv.weight, self._bias()).reshape(*words.shape[:2], 3, self.num_heads, channels // self.num_heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)
        weights = self._weigh(q, k) + self.get_relative_position_bias()
        if any(shift):
            apart = _separate(words, high, wide, window, shift)
            weights = (weights.reshape(n, -1, *weights.shape[1:]) + apart).reshape(weights.shape)
        weights = F.dropout(weights.softmax(-1), self.attention_dropout, self.training)
        out = F.dropout(self.proj((weights @ v).transpose(1, 2).reshape(words.shape)), self.dropout, self.training)
        out = _join(out, window, n, high, wide)
        if any(shift):
            out = out.roll((shift[0], shift[1]), (1, 2))
        return out[:, :height, :width].contiguous()


class ShiftedWindowAttentionV2(ShiftedWindowAttention):
    """The same by cosines, with a learned scale, and numbers for distances from a small network."""

    def __init__(self, dim: int, window_size: list[int], shift_size: list[int], num_heads: int, *args: Any, **settings: Any) -> None:
        super().__init__(dim, window_size, shift_size, num_heads, *args, **settings)
        self.logit_scale = nn.Parameter(full((num_heads, 1, 1), math.log(10)))
        self.cpb_mlp = nn.Sequential(nn.Linear(2, 512), nn.ReLU(inplace=True), nn.Linear(512, num_heads, bias=False))
        if self.qkv.bias is not None:
            self.qkv.bias.data[dim : 2 * dim] = 0

    def define_relative_position_bias_table(self) -> None:
        """Distances by their logarithms, (1, rows, columns, 2)."""
        axes = [arange(1 - n, n).float() / (n - 1) * 8 for n in self.window_size]
        sizes = [len(axis) for axis in axes]
        table = stack([axes[0][:, None].expand(*sizes), axes[1].expand(*sizes)], -1)[None]
        self.register_buffer("relative_coords_table", table.sign() * (table.abs() + 1.0).log2() / 3.0)

    def get_relative_position_bias(self) -> Tensor:
        """(1, heads, length, length): what is added to the weights of attention."""
        return 16 * self._by_place(self.cpb_mlp(self.relative_coords_table).reshape(-1, self.num_heads)).sigmoid()

    def _weigh(self, q: Tensor, k: Tensor) -> Tensor:
        cosines = F.normalize(q, dim=-1) @ F.normalize(k, dim=-1).transpose(-2, -1)
        return cosines * self.logit_scale.clamp(max=math.log(100.0)).exp()

    def _bias(self) -> Tensor | None:
        """The bias, with none for keys."""
        if self.qkv.bias is None:
            return None
        q, k, v = self.qkv.bias.chunk(3)
        return cat([q, k * 0, v])


class SwinTransformerBlock(nn.Module):
    """Attention, then a perceptron, each behind a norm, left out at random, and added to what came in: (n, h, w, dim) as before."""

    def __init__(
        self, dim: int, num_heads: int, window_size: list[int], shift_size: list[int], mlp_ratio: float = 4.0, dropout: float = 0.0,
        attention_dropout: float = 0.0, stochastic_depth_prob: float = 0.0, norm_layer: Layer = nn.LayerNorm, attn_layer: Layer = ShiftedWindowAttention,
    ) -> None:  # fmt: skip
        super().__init__()
        self.norm1 = norm_layer(dim)
        self.attn = attn_layer(dim, window_size, shift_size, num_heads, attention_dropout=attention_dropout, dropout=dropout)
        self.stochastic_depth = StochasticDepth(stochastic_depth_prob, "row")
        self.norm2 = norm_layer(dim)
        self.mlp = MLP(dim, [int(dim * mlp_ratio), dim], activation_layer=nn.GELU, inplace=None, dropout=dropout)
        for module in self.mlp.modules():
            if isinstance(module, nn.Linear):
                init.xavier_uniform_(module.weight)
                assert module.bias is not None
                init.normal_(module.bias, std=1e-6)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.stochastic_depth(self.attn(self.norm1(x)))
        return x + self.stochastic_depth(self.mlp(self.norm2(x)))  # type: ignore[no-any-return]


class SwinTransformerBlockV2(SwinTransformerBlock):
    """The same with the norms behind, and attention of the second version."""

    def __init__(self, *args: Any, attn_layer: Layer = ShiftedWindowAttentionV2, **settings: Any) -> None:
        super().__init__(*args, **{"attn_layer": attn_layer, **settings})

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.stochastic_depth(self.norm1(self.attn(x)))
        return x + self.stochastic_depth(self.norm2(self.mlp(x)))  # type: ignore[no-any-return]


class SwinTransformer(nn.Module):
    """Images (n, 3, h, w) to scores (n, num_classes).

    Args:
        patch_size, window_size: (height, width) of patches, in pixels, and of windows, in patches.
        embed_dim: channels of the first stage; each that follows has twice as many.
        depths, num_heads: blocks of each stage, and the heads of their attention.
        stochastic_depth_prob: how likely the last block is left out in training, those before it less.
        block, norm_layer, downsample_layer: in the place of SwinTransformerBlock, LayerNorm and PatchMerging.
    """

    def __init__(
        self, patch_size: list[int], embed_dim: int, depths: list[int], num_heads: list[int], window_size: list[int], mlp_ratio: float = 4.0,
        dropout: float = 0.0, attention_dropout: float = 0.0, stochastic_depth_prob: float = 0.1, num_classes: int = 1000,
        norm_layer: Layer | None = None, block: Layer | None = None, downsample_layer: Layer = PatchMerging,
    ) -> None:  # fmt: skip
        super().__init__()
        self.num_classes = num_classes
        norm = norm_layer or functools.partial(nn.LayerNorm, eps=1e-5)
        patches = nn.Conv2d(3, embed_dim, tuple(patch_size), tuple(patch_size))
        layers: list[nn.Module] = [nn.Sequential(patches, Permute([0, 2, 3, 1]), norm(embed_dim))]
        at = 0
        for i, depth in enumerate(depths):
            dim, stage = embed_dim * 2**i, []
            for j in range(depth):
                shift = [0 if j % 2 == 0 else w // 2 for w in window_size]
                made = (block or SwinTransformerBlock)(
                    dim, num_heads[i], window_size=window_size, shift_size=shift, mlp_ratio=mlp_ratio, dropout=dropout,
                    attention_dropout=attention_dropout, stochastic_depth_prob=stochastic_depth_prob * at / (sum(depths) - 1), norm_layer=norm,
                )  # fmt: skip
                stage.append(made)
                at += 1
            layers.append(nn.Sequential(*stage))
            if i < len(depths) - 1:
                layers.append(downsample_layer(dim, norm))
        self.features = nn.Sequential(*layers)
        last = embed_dim * 2 ** (len(depths) - 1)
        self.norm, self.permute = norm(last), Permute([0, 3, 1, 2])
        self.avgpool, self.flatten, self.head = nn.AdaptiveAvgPool2d(1), nn.Flatten(1), nn.Linear(last, num_classes)
        for module in self.modules():
            if isinstance(module, nn.Linear):
                init.trunc_normal_(module.weight, std=0.02)
                if module.bias is not None:
                    init.zeros_(module.bias)

    def forward(self, x: Tensor) -> Tensor:
        x = self.permute(self.norm(self.features(x)))
        return self.head(self.flatten(self.avgpool(x)))  # type: ignore[no-any-return]


# (embed_dim, blocks of the third stage, heads of the first, how likely the last block is left out)
_SIZES = {"t": (96, 6, 3, 0.2), "s": (96, 18, 3, 0.3), "b": (128, 18, 4, 0.5)}
SIZES = (*_SIZES, *(f"v2_{size}" for size in _SIZES))


def make_swin(size: str, **settings: Any) -> SwinTransformer:
    """A Swin transformer of a size: "t", "s", "b", and "v2_t", "v2_s", "v2_b"."""
    second = size.startswith("v2_")
    width, deep, heads, chance = _SIZES[size.removeprefix("v2_")]
    newer = {"block": SwinTransformerBlockV2, "downsample_layer": PatchMergingV2} if second else {}
    known = {"stochastic_depth_prob": chance, **newer, **settings}
    return SwinTransformer([4, 4], width, [2, 2, deep, 2], [heads * 2**i for i in range(4)], [8, 8] if second else [7, 7], **known)
