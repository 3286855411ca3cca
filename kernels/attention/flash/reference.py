"""Flash attention in numpy and its gradient in our own ops: the weights whole, what the kernels are held to."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from tritensor.ground import dtypes
from tritensor.ground.device import cpu
from tritensor.kernels.attention.layout import result_strides
from tritensor.kernels.attention.weights import dropped, weights
from tritensor.kernels.parts.random_words.dropout_mask import dropped as dropped_numbers
from tritensor.ops.array import empty
from tritensor.ops.table import ops


def _repeated(x: np.ndarray, q: np.ndarray) -> np.ndarray:
    return x if x.shape[:-2] == q.shape[:-2] else np.repeat(x, q.shape[-3] // x.shape[-3], axis=-3)


def _scores(q: np.ndarray, k: np.ndarray, mask: np.ndarray | None, scale: float, causal: bool) -> np.ndarray:
    s = np.matmul(q, _repeated(k, q).swapaxes(-1, -2)) * q.dtype.type(scale)
    if mask is not None:
        s = np.where(mask, s, -np.inf) if mask.dtype == np.bool_ else s + mask.astype(q.dtype)
    if causal:
        s = np.where(np.tri(*s.shape[-2:], dtype=np.bool_), s, -np.inf)
    return s


def reference(
    q: np.ndarray, k: np.ndarray, v: np.ndarray, mask: np.ndarray | None = None, *, scale: float, causal: bool = False, p: float = 0.0, seed: int = 0,
    offset: int = 0,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:  # fmt: skip
    """dropout(softmax(scale q @ k^T + mask)) @ v; residuals: the largest score m of each query, and log sum e^(s - m), both 0 where no key is seen.

    q (..., heads, L, E), k (..., heads / n, S, E), v (..., heads / n, S, Ev): n heads of q in a row share keys and values. mask: bool or floating,
    broadcast to (..., heads, L, S). causal: query i sees the keys up to i alone. A row that sees no key gives 0. A weight is dropped with
    probability p; row r of the weights, in C order, draws its S words from block offset + r ceil(S / 4) of `seed` on.
    """
    compute = dtypes.accumulator(q.dtype)
    wide = q.astype(compute, copy=False)
    s = _scores(wide, k.astype(compute, copy=False), mask, scale, causal)
    peak = s.max(-1, initial=-np.inf)
    peak = np.where(peak == -np.inf, compute.type(0), peak)
    w = np.exp(s - peak[..., None])
    total = w.sum(-1)
    total = np.where(total == 0, compute.type(1), total)
    w = w / total[..., None]
    if p:
        keys = k.shape[-2]
        padded = np.zeros((*w.shape[:-1], -(-keys // 4) * 4), compute)
        padded[..., :keys] = w
        w = dropped_numbers(padded, p, seed, offset)[..., :keys]
    y = np.matmul(w, _repeated(v, q).astype(compute, copy=False))
    laid = cast(np.ndarray, empty(y.shape, q.dtype, cpu, result_strides(q, k, v, mask, p)))
    np.copyto(laid, y, casting="unsafe")
    return laid, peak, np.log(total)


def _swap(x: Any) -> Any:
    return ops.permute(x, dims=(*range(x.ndim - 2), x.ndim - 1, x.ndim - 2))


def _by_heads(x: Any, q: Any) -> Any:
    """Keys or values with each head as often as heads of q share it, in the graph."""
    if tuple(x.shape[:-2]) == tuple(q.shape[:-2]):
        return x
    *lead, heads, rows, size = x.shape
    wide = ops.expand(ops.reshape(ops.copy(x), shape=(*lead, heads, 1, rows, size)), shape=(*lead, heads, q.shape[-3] // heads, rows, size))
    return ops.reshape(ops.copy(wide), shape=(*q.shape[:-2], rows, size))


def _to_heads(d: Any, shape: tuple[int, ...]) -> Any:
    """A gradient of `_by_heads`' result, summed over the heads that share keys and values."""
    if tuple(d.shape) == shape:
        return d
    *lead, heads, rows, size = shape
    return ops.sum(ops.reshape(d, shape=(*lead, heads, d.shape[-3] // heads, rows, size)), dim=(len(lead) + 1,), keepdim=False)


def rule(
    g: Any, q: Any, k: Any, v: Any, mask: Any, scale: float, causal: bool, p: float, seed: int, offset: int, needs: tuple[bool, ...]
) -> tuple[Any, ...]:
    """dv = drop(w)^T g, ds = w (dw - sum w dw) with dw = drop(g v^T), dq = scale ds k, dk = scale ds^T q; ds is the mask's gradient."""
    keys, values = _by_heads(k, q), _by_heads(v, q)
    w = weights(q, keys, mask, scale, causal)
    dw = ops.matmul(g, _swap(values))
    kept = w
    if p:
        dw, kept = dropped(dw, p, seed, offset), dropped(w, p, seed, offset)
    ds = ops.mul(w, ops.sub(dw, ops.sum(ops.mul(w, dw), dim=(w.ndim - 1,), keepdim=True)))
    scaled = ops.mul(ds, scale)
    found = (
        ops.matmul(scaled, keys),
        _to_heads(ops.matmul(_swap(scaled), q), tuple(k.shape)),
        _to_heads(ops.matmul(_swap(kept), g), tuple(v.shape)),
    )
    if len(needs) < 4 or not needs[3]:
        return (*found, None)[: max(len(needs), 3)]
    lead = ds.ndim - mask.ndim
    axes = (*range(lead), *(i + lead for i, n in enumerate(mask.shape) if n == 1))
    return *found, ops.reshape(ops.sum(ds, dim=axes, keepdim=True) if axes else ds, shape=tuple(mask.shape))


def _spread(q: np.ndarray, k: np.ndarray, mask: Any, scale: float, causal: bool) -> tuple[np.ndarray, np.ndarray]:
    """(how large what the weights' exponents are made of is, weights), in float64."""
    s = _scores(q, k, mask, scale, causal)
    reach = 1 + abs(scale) * np.matmul(np.abs(q), np.abs(_repeated(k, q)).swapaxes(-1, -2))
    if mask is not None and mask.dtype != np.bool_:
        reach = reach + np.where(np.isfinite(mask), np.abs(mask), 0)
    peak = s.max(-1, keepdims=True, initial=-np.inf)
    w = np.exp(s - np.where(peak == -np.inf, 0, peak))
    total = w.sum(-1, keepdims=True)
    return reach, w / np.where(total == 0, 1, total)


def gradient_scales(g: np.ndarray, inputs: tuple[Any, ...], attrs: dict[str, Any]) -> tuple[Any, ...]:
    """For each gradient sums of the sizes of what is added, with 1 more for the roundings of each weight's exponent."""
    q, k, v, mask = inputs
    scale, p = attrs["scale"], attrs.get("p", 0.0)
    reach, w = _spread(q, k, mask, scale, attrs.get("causal", False))
    factor = 1 / (1 - p) if 0 < p < 1 else 1
    keys, values = (np.abs(_repeated(x, q)) for x in (k, v))
    w = w * reach
    dw = factor * np.matmul(np.abs(g), values.swapaxes(-1, -2))
    ds = w * (dw + (w * dw).sum(-1, keepdims=True))
    found = (
        abs(scale) * np.matmul(ds, keys),
        abs(scale) * np.matmul(ds.swapaxes(-1, -2), np.abs(q)),
        factor * np.matmul(w.swapaxes(-1, -2), np.abs(g)),
    )
    shared = tuple(
        d if d.shape == x.shape else d.reshape(*x.shape[:-2], -1, *x.shape[-2:]).sum(-3) for d, x in zip(found[1:], (k, v), strict=True)
    )
    if mask is None or mask.dtype == np.bool_:
        return found[0], *shared, None
    lead = ds.ndim - mask.ndim
    axes = (*range(lead), *(i + lead for i, n in enumerate(mask.shape) if n == 1))
    return found[0], *shared, ds.sum(axes, keepdims=True).reshape(mask.shape)
