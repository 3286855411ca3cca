"""MultiheadAttention."""

from __future__ import annotations

from typing import Any

from tritensor.ground.errors import AssertedError
from tritensor.nn import functional as F
from tritensor.nn import init
from tritensor.nn.layers.attention.base import NonDynamicallyQuantizableLinear
from tritensor.nn.module import Module
from tritensor.nn.parameter import Parameter, empty_parameter
from tritensor.tensor.core import Tensor


class MultiheadAttention(Module):
    """Attention of several heads (Vaswani et al. 2017): (outputs, weights) of query, key and value, each (length, batch, size).

    batch_first takes and gives (batch, length, size). Parameters: in_proj_weight (3 E, E), or q_, k_ and v_proj_weight where kdim or vdim are others,
    xavier_uniform_; in_proj_bias and out_proj.bias, 0; bias_k and bias_v (add_bias_kv), xavier_normal_; out_proj.weight as Linear's.

    Args:
        embed_dim: E, the size of queries and outputs.
        num_heads: heads of embed_dim / num_heads features each.
        dropout: in training, the share of attention weights that is dropped.
        add_bias_kv: learned first keys and values, for every sequence.
        add_zero_attn: one more key and value of zeros.
        kdim, vdim: sizes of keys and values; embed_dim unless given.

    >>> attention = nn.MultiheadAttention(embed_dim=8, num_heads=2, batch_first=True)
    >>> x = tt.zeros(3, 5, 8)
    >>> outputs, weights = attention(x, x, x)
    >>> outputs.shape, weights.shape
    (tritensor.Size([3, 5, 8]), tritensor.Size([3, 5, 5]))
    """

    in_proj_weight: Parameter | None
    in_proj_bias: Parameter | None
    bias_k: Parameter | None
    bias_v: Parameter | None

    def __init__(
        self, embed_dim: int, num_heads: int, dropout: float = 0.0, bias: bool = True, add_bias_kv: bool = False, add_zero_attn: bool = False,
        kdim: int | None = None, vdim: int | None = None, batch_first: bool = False, device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        if embed_dim <= 0 or num_heads <= 0:
            raise ValueError(
                f"MultiheadAttention: embed_dim and num_heads must be greater than 0, got embed_dim={embed_dim} and num_heads={num_heads} instead"
            )
        super().__init__()
        if embed_dim % num_heads:
            raise AssertedError(
                f"MultiheadAttention: embed_dim must be divisible by num_heads, but {embed_dim} is not by {num_heads}; "
                f"give embed_dim={embed_dim + -embed_dim % num_heads}, or other heads"
            )
        self.embed_dim, self.num_heads, self.dropout, self.batch_first = embed_dim, num_heads, dropout, batch_first
        self.kdim, self.vdim = embed_dim if kdim is None else kdim, embed_dim if vdim is None else vdim
        # PyTorch's name, which other libraries' layers ask for
        self._qkv_same_embed_dim = self.kdim == embed_dim and self.vdim == embed_dim
        self.head_dim = embed_dim // num_heads
        same = self._qkv_same_embed_dim
        shapes = {
            "q_proj_weight": None if same else (embed_dim, embed_dim), "k_proj_weight": None if same else (embed_dim, self.kdim),
            "v_proj_weight": None if same else (embed_dim, self.vdim), "in_proj_weight": (3 * embed_dim, embed_dim) if same else None,
            "in_proj_bias": (3 * embed_dim,) if bias else None,
        }  # fmt: skip
        # the order in which PyTorch registers them is that of parameters(), which optimizers' states are numbered by
        order = ["in_proj_weight", *shapes] if same else ["q_proj_weight", *shapes]
        for name in dict.fromkeys(order):
            shape = shapes[name]
            # None is registered as well: forward hands all of them on
            self.register_parameter(name, None if shape is None else empty_parameter(*shape, device=device, dtype=dtype))
        self.out_proj = NonDynamicallyQuantizableLinear(embed_dim, embed_dim, bias=bias, device=device, dtype=dtype)
        for name in ("bias_k", "bias_v"):
            self.register_parameter(name, empty_parameter(1, 1, embed_dim, device=device, dtype=dtype) if add_bias_kv else None)
        self.add_zero_attn = add_zero_attn
        self._reset_parameters()

    def _reset_parameters(self) -> None:
        for name in ("in_proj_weight", "q_proj_weight", "k_proj_weight", "v_proj_weight"):
            if getattr(self, name) is not None:
                init.xavier_uniform_(getattr(self, name))
        if self.in_proj_bias is not None:
            init.zeros_(self.in_proj_bias)
            assert self.out_proj.bias is not None  # made with the same `bias`
            init.zeros_(self.out_proj.bias)
        for bias in (self.bias_k, self.bias_v):
            if bias is not None:
                init.xavier_normal_(bias)

    def merge_masks(self, attn_mask: Tensor | None, key_padding_mask: Tensor | None, query: Tensor) -> tuple[Tensor | None, int | None]:
        """One mask of the two, floating ones added, and its kind: 1 for key_padding_mask (batch, L) alone, 2 with attn_mask: (batch, heads, L, L).

        For query (batch, L, E), as PyTorch's fast path takes it.
        """
        if attn_mask is None:
            return key_padding_mask, None if key_padding_mask is None else 1
        batch, length, _ = query.shape
        merged = attn_mask.view(batch, -1, length, length) if attn_mask.dim() == 3 else attn_mask.view(1, 1, length, length)
        if attn_mask.dim() != 3:
            merged = merged.expand(batch, self.num_heads, -1, -1)
        if key_padding_mask is not None:
            merged = merged + key_padding_mask.view(batch, 1, 1, length).expand(-1, self.num_heads, -1, -1)
        return merged, 2

    def forward(
        self, query: Tensor, key: Tensor, value: Tensor, key_padding_mask: Tensor | None = None, need_weights: bool = True,
        attn_mask: Tensor | None = None, average_attn_weights: bool = True, is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:  # fmt: skip
        """(outputs, weights (batch, L, S), or (batch, heads, L, S) unless averaged, or None unless needed).

        Of bool masks True hides a key; floating ones are added. is_causal says that attn_mask is the causal one.
        """
        # without a batch there is nothing to turn, whatever batch_first says
        turned = self.batch_first and query.dim() == 3 and key.dim() == 3 and value.dim() == 3
        if turned:
            q = query.transpose(1, 0)
            k = q if key is query else key.transpose(1, 0)  # what was one tensor stays one: self attention is one product then
            query, key, value = q, k, k if value is key else value.transpose(1, 0)
        y, weights = F.multi_head_attention_forward(
            query, key, value, self.embed_dim, self.num_heads, self.in_proj_weight, self.in_proj_bias, self.bias_k, self.bias_v, self.add_zero_attn,
            self.dropout, self.out_proj.weight, self.out_proj.bias, training=self.training, key_padding_mask=key_padding_mask,
            need_weights=need_weights, attn_mask=attn_mask, use_separate_proj_weight=not self._qkv_same_embed_dim, q_proj_weight=self.q_proj_weight,
            k_proj_weight=self.k_proj_weight, v_proj_weight=self.v_proj_weight, average_attn_weights=average_attn_weights, is_causal=is_causal,
        )  # fmt: skip
        return y.transpose(1, 0) if turned else y, weights
