"""Transformer: encoder and decoder layers, stacks of them, and both together (Vaswani et al. 2017)."""

from __future__ import annotations

import copy
import math
import warnings
from collections.abc import Callable
from typing import Any

from tritensor.autograd.modes import is_grad_enabled
from tritensor.ground import dtypes
from tritensor.ground.errors import ArgumentError, ShapeError
from tritensor.nn import functional as F
from tritensor.nn import init
from tritensor.nn.container import ModuleList
from tritensor.nn.functional.attention import canonical_mask
from tritensor.nn.fusing import add_then_norm, apply_then_activate
from tritensor.nn.layers.activation import GELU, ReLU
from tritensor.nn.layers.attention.multihead import MultiheadAttention
from tritensor.nn.layers.dropout import Dropout
from tritensor.nn.layers.linear import Linear
from tritensor.nn.layers.normalization.layernorm import LayerNorm
from tritensor.nn.module import Module
from tritensor.ops.table import ops
from tritensor.tensor.core import Tensor

Activation = str | Callable[[Tensor], Tensor]


def square_subsequent_mask(size: int, device: Any = None, dtype: Any = None) -> Tensor:
    """(size, size): -inf above the diagonal, 0 elsewhere."""
    kind = dtypes.default_float() if dtype is None else dtypes.as_dtype(dtype)
    from tritensor.ground.device import as_device

    full = ops.full(shape=(size, size), value=-math.inf, dtype=kind.numpy, device=as_device(device))
    return ops.triu(full, diagonal=1)


def _find_activation(name: str, activation: Activation) -> Callable[[Tensor], Tensor]:
    if not isinstance(activation, str):
        return activation
    if activation not in ("relu", "gelu"):
        raise ArgumentError(f"{name}: activation should be relu/gelu, not {activation}; give one of these, or a function")
    return F.relu if activation == "relu" else F.gelu  # type: ignore[no-any-return]


def _is_causal(mask: Tensor | None, said: bool | None, x: Tensor, batch_first: bool) -> bool:
    """What was said of the mask, or, where nothing was, whether it is the causal one."""
    if said is not None or mask is None:  # to look at a mask on a GPU is to wait for it: what was said is believed
        return said is True
    size = x.shape[0] if x.dim() == 2 else x.shape[1 if batch_first else 0]
    # a mask for each head is never taken for the causal one, as in PyTorch
    if tuple(mask.shape) != (size, size) or mask.dtype.kind != "float":
        return False
    return bool((mask == square_subsequent_mask(size, mask.device, mask.dtype)).all())


class _TransformerLayer(Module):
    """What encoder and decoder layers share: the net behind the attention, linear1, dropout, linear2.

    Args:
        d_model: features of every position.
        nhead: heads of attention; it divides d_model.
        dim_feedforward: features between linear1 and linear2.
        dropout: the share that is dropped of attention weights, between the linear layers and behind each part.
        activation: "relu", "gelu", or a function of a tensor.
        layer_norm_eps: of the LayerNorms.
        batch_first: inputs and outputs are (batch, length, d_model), not (length, batch, d_model).
        norm_first: norms stand before attention and linear layers, not behind.
    """

    def _make_feed_forward(self, d_model: int, dim_feedforward: int, dropout: float, bias: bool, device: Any, dtype: Any) -> None:
        self.linear1 = Linear(d_model, dim_feedforward, bias=bias, device=device, dtype=dtype)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias=bias, device=device, dtype=dtype)

    def _make_norms(self, count: int, d_model: int, eps: float, dropout: float, bias: bool, device: Any, dtype: Any) -> None:
        for k in range(1, count + 1):
            setattr(self, f"norm{k}", LayerNorm(d_model, eps=eps, bias=bias, device=device, dtype=dtype))
        for k in range(1, count + 1):
            setattr(self, f"dropout{k}", Dropout(dropout))

    def _attend_self(self, x: Tensor, mask: Tensor | None, padding: Tensor | None, is_causal: bool) -> Tensor:
        y = self.self_attn(x, x, x, attn_mask=mask, key_padding_mask=padding, need_weights=False, is_causal=is_causal)[0]
        return self.dropout1(y)  # type: ignore[no-any-return]

    def _feed_forward(self, x: Tensor) -> Tensor:
        return self.linear2(self.dropout(apply_then_activate(self.linear1, self.activation, x)))  # type: ignore[no-any-return]


class TransformerEncoderLayer(_TransformerLayer):
    """x + attention, x + linear2(act(linear1)), each with a LayerNorm behind it, or before it where norm_first.

    >>> layer = nn.TransformerEncoderLayer(d_model=8, nhead=2, dim_feedforward=16, batch_first=True)
    >>> layer(tt.zeros(3, 5, 8)).shape
    tritensor.Size([3, 5, 8])
    """

    def __init__(
        self, d_model: int, nhead: int, dim_feedforward: int = 2048, dropout: float = 0.1, activation: Activation = F.relu,
        layer_norm_eps: float = 1e-5, batch_first: bool = False, norm_first: bool = False, bias: bool = True, device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.self_attn = MultiheadAttention(d_model, nhead, dropout=dropout, bias=bias, batch_first=batch_first, device=device, dtype=dtype)
        self._make_feed_forward(d_model, dim_feedforward, dropout, bias, device, dtype)
        self.norm_first = norm_first
        self._make_norms(2, d_model, layer_norm_eps, dropout, bias, device, dtype)
        act = _find_activation("TransformerEncoderLayer", activation)
        self.activation_relu_or_gelu = 1 if act is F.relu or isinstance(act, ReLU) else 2 if act is F.gelu or isinstance(act, GELU) else 0
        self.activation = act

    def forward(
        self, src: Tensor, src_mask: Tensor | None = None, src_key_padding_mask: Tensor | None = None, is_causal: bool = False
    ) -> Tensor:
        """src (length, batch, d_model), or (batch, length, d_model) where batch_first, or (length, d_model)."""
        padding = canonical_mask(src_key_padding_mask, "src_key_padding_mask", src_mask, "src_mask", src.dtype)
        mask = canonical_mask(src_mask, "src_mask", None, "", src.dtype)
        x = src
        if self.norm_first:
            # the sum and its norm are one kernel on a GPU, so x comes back with h
            h, x = add_then_norm(self.norm2, self._attend_self(self.norm1(x), mask, padding, is_causal), x)
            return x + self.dropout2(self._feed_forward(h))
        x = add_then_norm(self.norm1, self._attend_self(x, mask, padding, is_causal), x)[0]
        return add_then_norm(self.norm2, self.dropout2(self._feed_forward(x)), x)[0]  # type: ignore[no-any-return]


class TransformerDecoderLayer(_TransformerLayer):
    """As the encoder's, with attention to the encoder's outputs between: self_attn, multihead_attn, linear1 and linear2."""

    def __init__(
        self, d_model: int, nhead: int, dim_feedforward: int = 2048, dropout: float = 0.1, activation: Activation = F.relu,
        layer_norm_eps: float = 1e-5, batch_first: bool = False, norm_first: bool = False, bias: bool = True, device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        for name in ("self_attn", "multihead_attn"):
            made = MultiheadAttention(d_model, nhead, dropout=dropout, bias=bias, batch_first=batch_first, device=device, dtype=dtype)
            setattr(self, name, made)
        self._make_feed_forward(d_model, dim_feedforward, dropout, bias, device, dtype)
        self.norm_first = norm_first
        self._make_norms(3, d_model, layer_norm_eps, dropout, bias, device, dtype)
        self.activation = _find_activation("TransformerDecoderLayer", activation)

    def forward(
        self, tgt: Tensor, memory: Tensor, tgt_mask: Tensor | None = None, memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None, memory_key_padding_mask: Tensor | None = None, tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Tensor:  # fmt: skip
        """tgt as the encoder layer's src; memory, the encoder's outputs, alike."""
        x, first = tgt, self.norm_first
        y = self._attend_self(self.norm1(x) if first else x, tgt_mask, tgt_key_padding_mask, tgt_is_causal)
        h, total = add_then_norm(self.norm2 if first else self.norm1, y, x)
        x = total if first else h
        y = self.multihead_attn(
            h, memory, memory, attn_mask=memory_mask, key_padding_mask=memory_key_padding_mask,
            is_causal=memory_is_causal, need_weights=False,
        )[0]  # fmt: skip
        h, total = add_then_norm(self.norm3 if first else self.norm2, self.dropout2(y), x)
        x = total if first else h
        y = self.dropout3(self._feed_forward(h))
        return x + y if first else add_then_norm(self.norm3, y, x)[0]


def _clone_layers(layer: Module, count: int) -> ModuleList:
    # all begin with the same weights, as in PyTorch; reset them to begin apart
    return ModuleList([copy.deepcopy(layer) for _ in range(count)])


class TransformerEncoder(Module):
    """A stack of num_layers copies of an encoder layer, and a norm behind them.

    There are no nested tensors here: enable_nested_tensor changes no layer. As in PyTorch, where it could have, in evaluation without gradients, the
    outputs of padding at the end of sequences are 0.
    """

    def __init__(
        self, encoder_layer: Any, num_layers: int, norm: Module | None = None, enable_nested_tensor: bool = True, mask_check: bool = True
    ) -> None:
        super().__init__()
        self.layers = _clone_layers(encoder_layer, num_layers)
        self.num_layers, self.norm = num_layers, norm
        self.enable_nested_tensor = self.use_nested_tensor = enable_nested_tensor
        self.mask_check = mask_check
        why = _nesting_refusal(encoder_layer)  # said once, when it is built, and not in each forward
        if enable_nested_tensor and why:
            warnings.warn(
                f"enable_nested_tensor is True, but self.use_nested_tensor is False because {why}; give enable_nested_tensor=False",
                stacklevel=2,
            )
            self.use_nested_tensor = False

    def forward(
        self, src: Tensor, mask: Tensor | None = None, src_key_padding_mask: Tensor | None = None, is_causal: bool | None = None
    ) -> Tensor:
        """src through all layers; masks and sizes as TransformerEncoderLayer's. is_causal None: the mask is looked at."""
        padding = canonical_mask(src_key_padding_mask, "src_key_padding_mask", mask, "mask", src.dtype)
        mask = canonical_mask(mask, "mask", None, "", src.dtype)  # converted once, not by each layer
        output, first = src, self.layers[0]  # the layers are copies of one: the first speaks for all
        causal = _is_causal(mask, is_causal, src, getattr(getattr(first, "self_attn", None), "batch_first", False))
        for layer in self.layers:
            output = layer(output, src_mask=mask, is_causal=causal, src_key_padding_mask=padding)
        if self.use_nested_tensor and not first.training and src.dim() == 3 and padding is not None and mask is None:
            output = self._zero_padding(output, padding, src)
        return output if self.norm is None else self.norm(output)

    def _zero_padding(self, output: Tensor, padding: Tensor, src: Tensor) -> Tensor:
        """0 where PyTorch's nested tensors have nothing: behind the ends of sequences, where nothing needs a gradient."""
        # with gradients PyTorch takes no nested tensors, and leaves numbers in the padding
        if is_grad_enabled() and (src.requires_grad or any(p.requires_grad for p in self.layers[0].parameters())):
            return output
        hidden = ops.ne(padding, 0.0)
        if hidden.shape[1] > 1 and bool((hidden[:, :-1] & ~hidden[:, 1:]).any()):
            return output  # padding in other places
        return output.masked_fill(hidden.unsqueeze(-1), 0.0)


def _nesting_refusal(layer: Any) -> str:
    """Why PyTorch would make no nested tensors for an encoder of such layers; "" where it would."""
    name = "encoder_layer"
    if not isinstance(layer, TransformerEncoderLayer):
        return f"{name} was not TransformerEncoderLayer"
    if layer.norm_first:
        return f"{name}.norm_first was True"
    if not layer.self_attn.batch_first:
        return f"{name}.self_attn.batch_first was not True(use batch_first for better inference performance)"
    if layer.self_attn.in_proj_bias is None:
        return f"{name}.self_attn was passed bias=False"
    if not layer.activation_relu_or_gelu:
        return f"{name}.activation_relu_or_gelu was not True"
    if layer.norm1.eps != layer.norm2.eps:
        return f"{name}.norm1.eps was not equal to {name}.norm2.eps"
    return f"{name}.self_attn.num_heads is odd" if layer.self_attn.num_heads % 2 else ""


class TransformerDecoder(Module):
    """A stack of num_layers copies of a decoder layer, and a norm behind them."""

    def __init__(self, decoder_layer: Any, num_layers: int, norm: Module | None = None) -> None:
        super().__init__()
        self.layers = _clone_layers(decoder_layer, num_layers)
        self.num_layers, self.norm = num_layers, norm

    def forward(
        self, tgt: Tensor, memory: Tensor, tgt_mask: Tensor | None = None, memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None, memory_key_padding_mask: Tensor | None = None, tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:  # fmt: skip
        """tgt through all layers, each with the encoder's memory. tgt_is_causal None: the mask is looked at."""
        output, first = tgt, self.layers[0]
        causal = _is_causal(tgt_mask, tgt_is_causal, tgt, getattr(getattr(first, "self_attn", None), "batch_first", False))
        for layer in self.layers:
            output = layer(
                output, memory, tgt_mask=tgt_mask, memory_mask=memory_mask, tgt_key_padding_mask=tgt_key_padding_mask,
                memory_key_padding_mask=memory_key_padding_mask, tgt_is_causal=causal, memory_is_causal=memory_is_causal,
            )  # fmt: skip
        return output if self.norm is None else self.norm(output)


class Transformer(Module):
    """An encoder and a decoder: outputs (length, batch, d_model) for tgt, given src. Weights of more than one dimension start xavier_uniform_.

    Args:
        num_encoder_layers, num_decoder_layers: layers of the two stacks.
        custom_encoder, custom_decoder: modules to take in place of the stacks.

    The other arguments are those of TransformerEncoderLayer.
    """

    def __init__(
        self, d_model: int = 512, nhead: int = 8, num_encoder_layers: int = 6, num_decoder_layers: int = 6, dim_feedforward: int = 2048,
        dropout: float = 0.1, activation: Activation = F.relu, custom_encoder: Any = None, custom_decoder: Any = None,
        layer_norm_eps: float = 1e-5, batch_first: bool = False, norm_first: bool = False, bias: bool = True, device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        args = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias, device, dtype)

        def norm() -> LayerNorm:
            return LayerNorm(d_model, eps=layer_norm_eps, bias=bias, device=device, dtype=dtype)

        if custom_encoder is None:
            custom_encoder = TransformerEncoder(TransformerEncoderLayer(*args), num_encoder_layers, norm())
        if custom_decoder is None:
            custom_decoder = TransformerDecoder(TransformerDecoderLayer(*args), num_decoder_layers, norm())
        self.encoder, self.decoder = custom_encoder, custom_decoder
        self._reset_parameters()  # also of modules that were given in place of the stacks, as in PyTorch
        self.d_model, self.nhead, self.batch_first = d_model, nhead, batch_first

    def _reset_parameters(self) -> None:
        for p in self.parameters():
            if p.dim() > 1:
                init.xavier_uniform_(p)

    @staticmethod
    def generate_square_subsequent_mask(sz: int, device: Any = None, dtype: Any = None) -> Tensor:
        """The causal mask (sz, sz): -inf above the diagonal, 0 elsewhere."""
        return square_subsequent_mask(sz, device, dtype)

    def forward(
        self, src: Tensor, tgt: Tensor, src_mask: Tensor | None = None, tgt_mask: Tensor | None = None, memory_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None, tgt_key_padding_mask: Tensor | None = None, memory_key_padding_mask: Tensor | None = None,
        src_is_causal: bool | None = None, tgt_is_causal: bool | None = None, memory_is_causal: bool = False,
    ) -> Tensor:  # fmt: skip
        """The decoder's outputs for tgt; masks as the layers'."""
        dim = 0 if self.batch_first else 1  # without a batch (two dimensions) there is nothing to agree on
        if src.dim() == 3 and src.shape[dim] != tgt.shape[dim]:
            raise ShapeError(
                f"Transformer: src {tuple(src.shape)}, tgt {tuple(tgt.shape)}: the batch number of src and tgt must be equal; "
                f"batch_first={self.batch_first} has the batch in dimension {dim}"
            )
        if src.shape[-1] != self.d_model or tgt.shape[-1] != self.d_model:
            raise ShapeError(
                f"Transformer: src {tuple(src.shape)}, tgt {tuple(tgt.shape)}: the feature number of src and tgt must be equal to d_model {self.d_model}; "
                "project them to it"
            )
        memory = self.encoder(src, mask=src_mask, src_key_padding_mask=src_key_padding_mask, is_causal=src_is_causal)
        return self.decoder(  # type: ignore[no-any-return]
            tgt, memory, tgt_mask=tgt_mask, memory_mask=memory_mask, tgt_key_padding_mask=tgt_key_padding_mask,
            memory_key_padding_mask=memory_key_padding_mask, tgt_is_causal=tgt_is_causal, memory_is_causal=memory_is_causal,
        )  # fmt: skip
