"""Scaled dot product attention, and attention of several heads."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tritensor.autograd.modes import is_grad_enabled
from tritensor.autograd.saved import borrow_saved
from tritensor.ground import dtypes
from tritensor.ground.call_site import warn
from tritensor.ground.errors import ArgumentError, AssertedError, DTypeError, ShapeError
from tritensor.ground.transforms import running
from tritensor.nn.functional.dropout import dropout as drop
from tritensor.ops.table import broadcast, ops
from tritensor.ops.tuning.variants import note
from tritensor.random import default_generator
from tritensor.tensor.core import Tensor
from tritensor.tensor.functions.reductions.normalized import _safe_softmax
from tritensor.tensor.functions.shaping.reshaping import to_c_order
from tritensor.tensor.public_api.publish import checked


@checked
def scaled_dot_product_attention(
    query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None, dropout_p: float = 0.0, is_causal: bool = False,
    scale: float | None = None, enable_gqa: bool = False,
) -> Tensor:  # fmt: skip
    """softmax(query @ key^T * scale + mask) @ value (Vaswani et al. 2017), scale 1 / sqrt(E) unless given.

    query (..., heads, L, E), key (..., heads, S, E), value (..., heads, S, Ev) -> (..., heads, L, Ev); leading sizes broadcast. A bool mask says which
    keys take part, a floating one is added; is_causal=True lets no query see a later key. A query that sees no key gives 0. enable_gqa=True repeats
    the heads of key and value until they are as many as query's. dropout_p drops weights, whether training or not.
    On a GPU flash kernels (Dao et al. 2022) take it, which never hold the weights; `tt.debug.variants()` names calls that they did not take.

    >>> q = k = v = tt.zeros(1, 2, 5, 8)  # (batch, heads, length, size)
    >>> F.scaled_dot_product_attention(q, k, v, is_causal=True).shape
    tritensor.Size([1, 2, 5, 8])
    """
    name = "scaled_dot_product_attention"
    given = f"{name}: query {tuple(query.shape)}, key {tuple(key.shape)}, value {tuple(value.shape)}"
    if min(query.ndim, key.ndim, value.ndim) < 2:
        raise ShapeError(f"{given}: Expected query, key, and value to all be at least 2 dimensional; give (..., length, size)")
    if not query.dtype == key.dtype == value.dtype:
        raise DTypeError(
            f"{given}: Expected query, key, and value to have the same dtype, but they are {query.dtype}, {key.dtype} and {value.dtype}; cast them"
        )
    if attn_mask is not None and attn_mask.dtype not in (dtypes.bool_, query.dtype):
        if attn_mask.dtype != dtypes.float32:
            raise DTypeError(
                f"{given}: Expected attn_mask dtype to be bool or float or to match query dtype {query.dtype}, but it is {attn_mask.dtype}; cast it, to "
                "bool where it says which keys take part"
            )
        attn_mask = attn_mask.to(query.dtype)
    if not 0 <= dropout_p <= 1:
        raise ArgumentError(f"{name}: dropout probability has to be between 0 and 1, but got {dropout_p}; give such a dropout_p")
    shared = enable_gqa and _shares_heads(given, query, key, value)
    if not query.shape[:-2] == key.shape[:-2] == value.shape[:-2]:
        own = 3 if shared else 2  # dimensions that do not broadcast: the heads, which are fewer in key and value, or none
        batch = broadcast(name, *[tuple(x.shape[:-own]) for x in (query, key, value)], labels=("query", "key", "value"))
        query, key, value = (x.expand(*batch, *x.shape[-own:]) for x in (query, key, value))
    factor = (1 / math.sqrt(query.shape[-1]) if query.shape[-1] else 1.0) if scale is None else float(scale)
    causal, p = bool(is_causal), float(dropout_p)
    # drawn here and not in the op: forward and backward must drop the same weights; a philox call gives four words
    drawn = (
        default_generator.draw(math.prod(query.shape[:-1]) * -(-key.shape[-2] // 4))
        if p and not running.levels and not query.is_meta
        else (0, 0)
    )
    if query.device.type == "cuda" and _uses_flash(query, key, value, attn_mask, factor):
        return ops.flash_attention(query, key, value, attn_mask, scale=factor, causal=causal, p=p, seed=drawn[0], offset=drawn[1])
    # the flash kernels above read shared heads in place; the products below need one head of key and value for each query's
    if shared:
        key, value = (x.repeat_interleave(query.shape[-3] // x.shape[-3], -3) for x in (key, value))
    if not p:
        y = ops.attention(query, key, value, attn_mask, scale=factor, causal=causal)
        return (
            to_c_order(y) if attn_mask is not None and attn_mask.requires_grad else y
        )  # PyTorch's flash attention leaves such a mask to others
    return _attend_with_dropout(query, key, value, attn_mask, factor, causal, p, drawn)


@borrow_saved
def _attend_with_dropout(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, factor: float, causal: bool, p: float, drawn: tuple[int, int]
) -> Tensor:
    from tritensor.kernels.attention.weights import dropped, weights  # not loaded with the library

    w = weights(query, key, mask, factor, causal)
    return ops.matmul(drop(w, p, True) if running.levels else dropped(w, p, *drawn), value)


def _uses_flash(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, factor: float) -> bool:
    """Whether the flash kernels take a call on a GPU. One that they do not take is noted for debug.variants(), unless the user asked for it."""
    from tritensor.nn import attention as backends  # above this file

    if backends.SDPBackend.MATH in (allowed := backends._cur_sdpa_kernel_backends()) and len(allowed) == 1:
        return False
    if why := _composed_reason(query, key, value, mask, factor):
        note("scaled_dot_product_attention", "composed", why)
    return not why


def _composed_reason(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, factor: float) -> str:
    """Why a call goes by products and a softmax whose weights are held whole, and how to mend it; "" where it goes by the flash kernels."""
    if running.levels:
        return "a transform of func, or a trace, follows the call op by op"
    if query.dtype == dtypes.float64:
        return "queries are float64; cast them to bfloat16, float16 or float32"
    # the flash kernels' tiles are sized for no wider head (LARGEST in kernels/attention/flash/op.py)
    if max(query.shape[-1], value.shape[-1]) > 256:
        return "a head has more than 256 features; use more heads of fewer features"
    # the kernels take the row's maximum before they scale, which a negative scale would turn into the minimum
    if not factor >= 0:
        return "the scale is below 0; negate queries and scale"
    if mask is not None and mask.requires_grad and is_grad_enabled():
        return "the mask wants a gradient, which is as large as the weights; detach it where it is not trained"
    if key.shape[:-2] != value.shape[:-2]:
        return "key and value have other numbers of heads; give as many of both"
    if any(x.shape[-1] > 1 and x._array.strides[-1] != 1 for x in (query, key, value)):
        note(
            "scaled_dot_product_attention",
            "copied",
            "features of a head do not lie side by side; call contiguous() once, where the tensor is made",
        )
    return ""


def _shares_heads(given: str, query: Tensor, key: Tensor, value: Tensor) -> bool:
    """Whether heads of key and value serve several of query; refuses numbers of heads that do not divide query's."""
    for x in (key, value):
        if min(query.ndim, x.ndim) < 3 or not x.shape[-3] or query.shape[-3] % x.shape[-3]:
            raise ShapeError(
                f"{given}: Number of heads in key and value must divide the number of heads in query; give such numbers of heads"
            )
    return not query.shape[-3] == key.shape[-3] == value.shape[-3]


def canonical_mask(mask: Tensor | None, name: str, other: Tensor | None, other_name: str, dtype: Any) -> Tensor | None:
    """A mask as numbers to add: True becomes -inf. Warns where the other mask is of another type; refuses one of integers."""
    if mask is None:
        return None
    if not isinstance(mask, Tensor):
        raise TypeError(f"attention: {name} is a {type(mask).__name__}; give a tensor of bool or floats")
    if mask.dtype != dtypes.bool_ and mask.dtype.kind != "float":
        raise AssertedError(
            f"attention: {name} is {mask.dtype}: only bool and floating types of {name} are supported; cast it with .bool()"
        )
    if other is not None and mask.dtype != other.dtype:
        warn(f"Support for mismatched {name} ({mask.dtype}) and {other_name} ({other.dtype}) is deprecated; give both of one type")
    return to_additive_mask(mask, dtype)


def to_additive_mask(mask: Tensor, dtype: Any) -> Tensor:
    """0 where a bool mask is False, -inf where it is True; a floating mask itself."""
    if mask.dtype != dtypes.bool_:
        return mask
    zeros = ops.full(shape=tuple(mask.shape), value=0, dtype=dtype.numpy, device=mask.device)
    return ops.where(mask, -math.inf, zeros)  # by where: -inf times False would be NaN


def _check_dims(query: Tensor, key: Tensor, value: Tensor, padding: Tensor | None, mask: Tensor | None, heads: int) -> bool:
    """Whether there is a batch; refuses numbers of dimensions that do not go together."""
    name, dims = "multi_head_attention_forward", query.ndim
    if dims not in (2, 3):
        raise AssertedError(f"{name}: query should be unbatched 2D or batched 3D tensor but received {dims}-D query tensor; reshape it")
    kind = f"{'batched' if dims == 3 else 'unbatched'} ({dims}-D) `query`"
    if key.ndim != dims or value.ndim != dims:
        raise AssertedError(
            f"{name}: For {kind}, expected `key` and `value` to be {dims}-D but found {key.ndim}-D and {value.ndim}-D tensors respectively; reshape them"
        )
    if padding is not None and padding.ndim != dims - 1:
        raise AssertedError(
            f"{name}: For {kind}, expected `key_padding_mask` to be `None` or {dims - 1}-D but found {padding.ndim}-D tensor instead; reshape it"
        )
    if mask is not None and mask.ndim not in (2, 3):
        raise AssertedError(
            f"{name}: For {kind}, expected `attn_mask` to be `None`, 2-D or 3-D but found {mask.ndim}-D tensor instead; reshape it"
        )
    if dims == 2 and mask is not None and mask.ndim == 3 and tuple(mask.shape) != (heads, query.shape[0], key.shape[0]):
        raise AssertedError(
            f"{name}: Expected `attn_mask` shape to be {(heads, query.shape[0], key.shape[0])} but got {tuple(mask.shape)}; reshape it"
        )
    return dims == 3


def _check_mask(mask: Tensor, batch: int, heads: int, queries: int, keys: int) -> Tensor:
    """attn_mask as (1 or batch, 1 or heads, queries, keys)."""
    wanted = (queries, keys) if mask.ndim == 2 else (batch * heads, queries, keys)
    if tuple(mask.shape) != wanted:
        raise ShapeError(
            f"multi_head_attention_forward: The shape of the {mask.ndim}D attn_mask is {tuple(mask.shape)}, but should be {wanted}; give (L, S), or "
            "(batch * heads, L, S)"
        )
    return mask.reshape(1, 1, *wanted) if mask.ndim == 2 else mask.reshape(batch, heads, queries, keys)


def _project_inputs(
    query: Tensor, key: Tensor, value: Tensor, weights: Sequence[Tensor | None], packed: Tensor | None, bias: Tensor | None
) -> tuple[Tensor, Tensor, Tensor]:
    """query, key and value through their weights; in one product where they are one tensor."""
    name, size = "multi_head_attention_forward", query.shape[-1]
    if packed is not None:
        if tuple(packed.shape) != (3 * size, size):
            raise AssertedError(f"{name}: in_proj_weight is {tuple(packed.shape)}; for embed_dim {size} give {(3 * size, size)}")
        # self attention: one product of three times the width is faster than three
        if query is key and key is value:
            found = ops.linear(query, packed, bias)
            return tuple(found[..., k * size : (k + 1) * size] for k in range(3))  # type: ignore[return-value]
        weights = [packed[k * size : (k + 1) * size] for k in range(3)]
    made = []
    for k, (x, w, what) in enumerate(zip((query, key, value), weights, ("query", "key", "value"), strict=True)):
        if w is None:
            raise AssertedError(f"{name}: use_separate_proj_weight is True but {what[0]}_proj_weight is None; give it")
        if tuple(w.shape) != (size, x.shape[-1]):
            raise AssertedError(
                f"{name}: expecting {what} weights shape of {(size, x.shape[-1])}, but got {tuple(w.shape)}; give such weights"
            )
        made.append(ops.linear(x, w, None if bias is None else bias[k * size : (k + 1) * size]))
    return made[0], made[1], made[2]


def _split_heads(x: Tensor, heads: int) -> Tensor:
    """(length, batch, heads * size) as (batch, heads, length, size)."""
    return x.reshape(x.shape[0], x.shape[1], heads, x.shape[2] // heads).permute(1, 2, 0, 3)


def _check_static(x: Tensor, what: str, batch: int, heads: int, size: int) -> Tensor:
    if x.ndim != 3 or x.shape[0] != batch * heads or x.shape[2] != size:
        raise AssertedError(
            f"multi_head_attention_forward: {what} is {tuple(x.shape)}; expecting {what}.size(0) of {batch * heads} and {what}.size(2) of {size}"
        )
    return x.reshape(batch, heads, x.shape[1], size)


def _add_key(mask: Tensor | None) -> Tensor | None:
    """A mask for one key more, which every query sees."""
    if mask is None:
        return None
    column = (*mask.shape[:-1], 1)
    return ops.cat(mask, ops.full(shape=column, value=0, dtype=mask._array.dtype, device=mask.device), dim=mask.ndim - 1)


def _join_masks(mask: Tensor | None, padding: Tensor | None, dtype: Any) -> Tensor | None:
    """Both masks as one to add, or, where all are bool, as one that says which keys take part."""
    given = [m for m in (mask, padding) if m is not None]
    if not given:
        return None
    if all(m.dtype == dtypes.bool_ for m in given):
        return ops.logical_not(given[0] if len(given) == 1 else ops.logical_or(given[0], given[1]))
    numbers = [to_additive_mask(m, dtype) for m in given]
    found = numbers[0] if len(numbers) == 1 else ops.add(numbers[0], numbers[1])
    return found if found.dtype == dtype else ops.cast(found, dtype=dtype.numpy)


@checked
def multi_head_attention_forward(
    query: Tensor, key: Tensor, value: Tensor, embed_dim_to_check: int, num_heads: int, in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None, bias_k: Tensor | None, bias_v: Tensor | None, add_zero_attn: bool, dropout_p: float,
    out_proj_weight: Tensor, out_proj_bias: Tensor | None, training: bool = True, key_padding_mask: Tensor | None = None,
    need_weights: bool = True, attn_mask: Tensor | None = None, use_separate_proj_weight: bool = False, q_proj_weight: Tensor | None = None,
    k_proj_weight: Tensor | None = None, v_proj_weight: Tensor | None = None, static_k: Tensor | None = None, static_v: Tensor | None = None,
    average_attn_weights: bool = True, is_causal: bool = False,
) -> tuple[Tensor, Tensor | None]:  # fmt: skip
    """What nn.MultiheadAttention computes: (outputs (L, N, E), weights (N, L, S) or None) of query (L, N, E), key (S, N, Ek), value (S, N, Ev).

    Without a batch there is no N. attn_mask (L, S) or (N * heads, L, S) and key_padding_mask (N, S): True hides a key, numbers are added.
    """
    name, batched = "multi_head_attention_forward", _check_dims(query, key, value, key_padding_mask, attn_mask, num_heads)
    if not batched:
        query, key, value = _add_batch(query, key, value)
        key_padding_mask = None if key_padding_mask is None else key_padding_mask.unsqueeze(0)
    queries, batch, embed_dim = query.shape
    for mask, what, other in ((key_padding_mask, "key_padding_mask", attn_mask), (attn_mask, "attn_mask", None)):
        canonical_mask(mask, what, other, "attn_mask", query.dtype)
    if is_causal and attn_mask is None:
        raise ArgumentError(
            f"{name}: Need attn_mask if specifying the is_causal hint; make it with nn.Transformer.generate_square_subsequent_mask({queries})"
        )
    causal = is_causal and key_padding_mask is None and not need_weights
    if causal:
        attn_mask = None
    _check_sizes(query, key, value, embed_dim_to_check, num_heads, use_separate_proj_weight, in_proj_weight)
    packed = None if use_separate_proj_weight else in_proj_weight
    q, k, v = _project_inputs(query, key, value, (q_proj_weight, k_proj_weight, v_proj_weight), packed, in_proj_bias)
    if attn_mask is not None:
        attn_mask = _check_mask(attn_mask, batch, num_heads, queries, key.shape[0])
    if (bias_k is None) != (bias_v is None):
        raise AssertedError(f"{name}: bias_k and bias_v go together; give both or none")
    if bias_k is not None and bias_v is not None:
        if static_k is not None or static_v is not None:
            raise AssertedError(f"{name}: bias cannot be added to static key or value; leave bias_k and bias_v out")
        k, v = (ops.cat(x, b.expand(1, batch, embed_dim), dim=0) for x, b in ((k, bias_k), (v, bias_v)))
        attn_mask, key_padding_mask = _add_key(attn_mask), _add_key(key_padding_mask)
    size = embed_dim // num_heads
    q = _split_heads(q, num_heads)
    k = _split_heads(k, num_heads) if static_k is None else _check_static(static_k, "static_k", batch, num_heads, size)
    v = _split_heads(v, num_heads) if static_v is None else _check_static(static_v, "static_v", batch, num_heads, size)
    if add_zero_attn:
        zero = ops.full(shape=(batch, num_heads, 1, size), value=0, dtype=k._array.dtype, device=k.device)
        k, v = ops.cat(k, zero, dim=2), ops.cat(v, zero, dim=2)
        attn_mask, key_padding_mask = _add_key(attn_mask), _add_key(key_padding_mask)
    keys = k.shape[2]
    if key_padding_mask is not None:
        if tuple(key_padding_mask.shape) != (batch, keys):
            raise AssertedError(f"{name}: key_padding_mask is {tuple(key_padding_mask.shape)}; give (batch, keys), ({batch}, {keys})")
        key_padding_mask = key_padding_mask.reshape(batch, 1, 1, keys)
    mask = _join_masks(attn_mask, key_padding_mask, query.dtype)
    p = dropout_p if training else 0.0
    found, weights = _attend(q, k, v, mask, p, causal, need_weights)
    y = ops.linear(found.permute(2, 0, 1, 3).reshape(queries, batch, embed_dim), out_proj_weight, out_proj_bias)
    if weights is not None and average_attn_weights:
        weights = weights.mean(1)
    if not batched:
        y, weights = y.squeeze(1), None if weights is None else weights.squeeze(0)
    return y, weights


def _add_batch(query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """A batch of one; what was one tensor stays one."""
    q = query.unsqueeze(1)
    # identity is kept, since it decides whether one product serves all three
    k = q if key is query else key.unsqueeze(1)
    return q, k, k if value is key else value.unsqueeze(1)


def _check_sizes(query: Tensor, key: Tensor, value: Tensor, wanted: int, heads: int, separate: bool, packed: Tensor | None) -> None:
    name, embed_dim = "multi_head_attention_forward", query.shape[-1]
    if embed_dim != wanted:
        raise AssertedError(
            f"{name}: was expecting embedding dimension of {wanted} (embed_dim_to_check), but got query {tuple(query.shape)}; give queries of {wanted}"
        )
    if embed_dim % heads:
        raise AssertedError(f"{name}: embed_dim {embed_dim} not divisible by num_heads {heads}; give a number of heads that divides it")
    if key.shape[: 2 if separate else 3] != value.shape[: 2 if separate else 3]:
        raise AssertedError(f"{name}: key shape {tuple(key.shape)} does not match value shape {tuple(value.shape)}; each key needs a value")
    if not separate and packed is None:
        raise AssertedError(f"{name}: use_separate_proj_weight is False but in_proj_weight is None; give it")
    if key.shape[1] != query.shape[1]:
        raise ShapeError(
            f"{name}: query {tuple(query.shape)}, key {tuple(key.shape)}: their batches differ; give the same number of sequences"
        )


def _attend(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, p: float, causal: bool, need_weights: bool
) -> tuple[Tensor, Tensor | None]:
    """(weights @ v, weights where they are needed): a query that sees no key has weights of 0, and gives 0."""
    if not need_weights:
        return scaled_dot_product_attention(q, k, v, mask, p, causal), None
    # the smaller factor is scaled: scores may be long squares
    scores = ops.matmul(ops.mul(q, 1 / math.sqrt(q.shape[-1])), k.transpose(-2, -1))
    if mask is not None:
        scores = ops.where(mask, scores, -math.inf) if mask.dtype == dtypes.bool_ else ops.add(scores, mask)
    weights = ops.softmax(scores, dim=3) if mask is None else _safe_softmax(scores, 3)  # without a mask no row is all -inf
    weights = drop(weights, p, True) if p else weights
    return ops.matmul(weights, v), weights
