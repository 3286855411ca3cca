"""Vision transformer (Dosovitskiy et al. 2021), with the names that published weights have."""

from __future__ import annotations

import functools
import math
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, NamedTuple

import tritensor.nn.functional as F
from tritensor import nn
from tritensor.ground.errors import ArgumentError, ShapeError
from tritensor.nn import init
from tritensor.tensor.core import Tensor
from tritensor.tensor.functions.creation.constructors import zeros
from tritensor.tensor.functions.creation.random import randn
from tritensor.tensor.functions.shaping.joining import cat
from tritensor.vision.models.networks.starts import Layer
from tritensor.vision.ops.layers import MLP, Conv2dNormActivation

_NORM = functools.partial(nn.LayerNorm, eps=1e-6)


class ConvStemConfig(NamedTuple):
    """A convolution of those before the transformer (Xiao et al. 2021)."""

    out_channels: int
    kernel_size: int
    stride: int
    norm_layer: Layer = nn.BatchNorm2d
    activation_layer: Layer = nn.ReLU


class MLPBlock(MLP):
    """The perceptron of a block. State dicts of its first form, with linear_1 and linear_2, load as well."""

    _version = 2

    def __init__(self, in_dim: int, mlp_dim: int, dropout: float) -> None:
        super().__init__(in_dim, [mlp_dim, in_dim], activation_layer=nn.GELU, inplace=None, dropout=dropout)
        for module in self.modules():
            if isinstance(module, nn.Linear):
                init.xavier_uniform_(module.weight)
                assert module.bias is not None
                init.normal_(module.bias, std=1e-6)

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *args: Any) -> None:
        for old, new in (("linear_1", "0"), ("linear_2", "3")):
            for name in ("weight", "bias"):
                if f"{prefix}{old}.{name}" in state_dict:
                    state_dict[f"{prefix}{new}.{name}"] = state_dict.pop(f"{prefix}{old}.{name}")
        super()._load_from_state_dict(state_dict, prefix, *args)


class EncoderBlock(nn.Module):
    """Attention, then a perceptron, each behind a norm and added to what came in: (n, length, hidden_dim) as before."""

    def __init__(
        self, num_heads: int, hidden_dim: int, mlp_dim: int, dropout: float, attention_dropout: float, norm_layer: Layer = _NORM
    ) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.ln_1 = norm_layer(hidden_dim)
        self.self_attention = nn.MultiheadAttention(hidden_dim, num_heads, dropout=attention_dropout, batch_first=True)
        self.dropout = nn.Dropout(dropout)
        self.ln_2 = norm_layer(hidden_dim)
        self.mlp = MLPBlock(hidden_dim, mlp_dim, dropout)

    def forward(self, input: Tensor) -> Tensor:
        x = self.ln_1(input)
        x = self.dropout(self.self_attention(x, x, x, need_weights=False)[0]) + input
        return x + self.mlp(self.ln_2(x))  # type: ignore[no-any-return]


class Encoder(nn.Module):
    """Positions added, blocks one after another, a norm: (n, seq_length, hidden_dim) as before."""

    def __init__(
        self, seq_length: int, num_layers: int, num_heads: int, hidden_dim: int, mlp_dim: int, dropout: float, attention_dropout: float,
        norm_layer: Layer = _NORM,
    ) -> None:  # fmt: skip
        super().__init__()
        self.pos_embedding = nn.Parameter(randn(1, seq_length, hidden_dim) * 0.02)
        self.dropout = nn.Dropout(dropout)
        blocks = [EncoderBlock(num_heads, hidden_dim, mlp_dim, dropout, attention_dropout, norm_layer) for _ in range(num_layers)]
        self.layers = nn.Sequential(OrderedDict((f"encoder_layer_{i}", block) for i, block in enumerate(blocks)))
        self.ln = norm_layer(hidden_dim)

    def forward(self, input: Tensor) -> Tensor:
        return self.ln(self.layers(self.dropout(input + self.pos_embedding)))  # type: ignore[no-any-return]


class VisionTransformer(nn.Module):
    """Images (n, 3, image_size, image_size) to scores (n, num_classes).

    Args:
        patch_size: of the squares that are the words.
        representation_size: of a layer before the last, where one is wanted.
        conv_stem_configs: convolutions in the place of the one that makes patches.

    Raises ValueError for patches that do not fill the image, ShapeError for images of another size.
    """

    def __init__(
        self, image_size: int, patch_size: int, num_layers: int, num_heads: int, hidden_dim: int, mlp_dim: int, dropout: float = 0.0,
        attention_dropout: float = 0.0, num_classes: int = 1000, representation_size: int | None = None, norm_layer: Layer = _NORM,
        conv_stem_configs: list[ConvStemConfig] | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        if image_size % patch_size:
            raise ArgumentError(f"Input shape indivisible by patch size! image_size {image_size}, patch_size {patch_size}")
        self.image_size, self.patch_size, self.hidden_dim, self.mlp_dim = image_size, patch_size, hidden_dim, mlp_dim
        self.attention_dropout, self.dropout, self.num_classes = attention_dropout, dropout, num_classes
        self.representation_size, self.norm_layer = representation_size, norm_layer
        self.conv_proj = self._make_stem(conv_stem_configs)
        self.class_token = nn.Parameter(zeros(1, 1, hidden_dim))
        self.seq_length = (image_size // patch_size) ** 2 + 1
        self.encoder = Encoder(self.seq_length, num_layers, num_heads, hidden_dim, mlp_dim, dropout, attention_dropout, norm_layer)
        head = nn.Linear(representation_size or hidden_dim, num_classes)
        heads: list[tuple[str, nn.Module]] = [("head", head)]
        if representation_size is not None:
            before = nn.Linear(hidden_dim, representation_size)
            _start(before, math.sqrt(1 / hidden_dim))
            heads = [("pre_logits", before), ("act", nn.Tanh()), *heads]
        self.heads = nn.Sequential(OrderedDict(heads))
        init.zeros_(head.weight)
        init.zeros_(head.bias)

    def _make_stem(self, configs: list[ConvStemConfig] | None) -> nn.Module:
        if configs is None:
            patches = nn.Conv2d(3, self.hidden_dim, self.patch_size, self.patch_size)
            _start(patches, math.sqrt(1 / (3 * self.patch_size**2)))
            return patches
        stem, channels = nn.Sequential(), 3
        for i, c in enumerate(configs):
            made = Conv2dNormActivation(
                channels, c.out_channels, c.kernel_size, c.stride, norm_layer=c.norm_layer, activation_layer=c.activation_layer
            )
            stem.add_module(f"conv_bn_relu_{i}", made)
            channels = c.out_channels
        last = nn.Conv2d(channels, self.hidden_dim, 1)
        init.normal_(last.weight, 0.0, math.sqrt(2.0 / self.hidden_dim))
        init.zeros_(last.bias)
        stem.add_module("conv_last", last)
        return stem

    def _process_input(self, x: Tensor) -> Tensor:
        """Images as words (n, patches, hidden_dim)."""
        if tuple(x.shape[-2:]) != (self.image_size, self.image_size):
            raise ShapeError(f"Wrong image size! Expected {(self.image_size, self.image_size)} but got {tuple(x.shape[-2:])}!")
        return self.conv_proj(x).flatten(2).permute(0, 2, 1)  # type: ignore[no-any-return]

    def forward(self, x: Tensor) -> Tensor:
        words = self._process_input(x)
        words = self.encoder(cat([self.class_token.expand(words.shape[0], -1, -1), words], 1))
        return self.heads(words[:, 0])  # type: ignore[no-any-return]


def _start(layer: Any, deviation: float) -> None:
    init.trunc_normal_(layer.weight, std=deviation)
    init.zeros_(layer.bias)


# (patch_size, num_layers, num_heads, hidden_dim, mlp_dim)
SIZES = {
    "b_16": (16, 12, 12, 768, 3072), "b_32": (32, 12, 12, 768, 3072), "l_16": (16, 24, 16, 1024, 4096), "l_32": (32, 24, 16, 1024, 4096),
    "h_14": (14, 32, 16, 1280, 5120),
}  # fmt: skip


def make_vision_transformer(size: str, image_size: int = 224, **settings: Any) -> VisionTransformer:
    """A vision transformer of a size and its patches: "b_16", ..., "h_14"."""
    return VisionTransformer(image_size, *SIZES[size], **settings)


def interpolate_embeddings(
    image_size: int, patch_size: int, model_state: Mapping[str, Tensor], interpolation_mode: str = "bicubic", reset_heads: bool = False
) -> OrderedDict[str, Tensor]:
    """A state dict with positions for another size of images; without the last layers with reset_heads. Raises ValueError for positions of no square."""
    state = OrderedDict(model_state)
    known = state["encoder.pos_embedding"]
    side, new = math.isqrt(known.shape[1] - 1), image_size // patch_size
    if known.shape[0] != 1 or side * side != known.shape[1] - 1:
        raise ArgumentError(f"Unexpected position embedding shape: {tuple(known.shape)}; give (1, 1 + patches of a square, hidden_dim)")
    if new == side:
        return state
    plane = known[:, 1:].permute(0, 2, 1).reshape(1, -1, side, side)
    plane = F.interpolate(plane, size=new, mode=interpolation_mode, align_corners=True)
    state["encoder.pos_embedding"] = cat([known[:, :1], plane.reshape(1, -1, new * new).permute(0, 2, 1)], 1)
    return OrderedDict((k, v) for k, v in state.items() if not (reset_heads and k.startswith("heads")))
