"""Attention in plain numpy, its weights whole: what both ops are held to, and what the roundings of their gradients are measured against."""

from __future__ import annotations

from typing import Any

import numpy as np

from tritensor.kernels.attention.layout import mask_dims


def repeat_heads(x: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Keys or values with each head as often as heads of q share it."""
    return x if x.shape[:-2] == q.shape[:-2] else np.repeat(x, q.shape[-3] // x.shape[-3], axis=-3)


def scores_of(q: np.ndarray, k: np.ndarray, mask: np.ndarray | None, scale: float, causal: bool) -> np.ndarray:
    """scale q @ k^T + mask, -inf where a key is not seen."""
    s = q @ repeat_heads(k, q).swapaxes(-1, -2) * scale
    if mask is not None:
        s = np.where(mask, s, -np.inf) if mask.dtype == np.bool_ else s + mask
    return np.where(np.tri(*s.shape[-2:], dtype=np.bool_), s, -np.inf) if causal else s


def softmax_of(s: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The weights of scores s, the largest score m of each row, and sum e^(s - m); of a row that sees nothing 0, 0 and 1."""
    peak = s.max(-1, initial=-np.inf)
    peak = np.where(peak == -np.inf, 0, peak)
    powers = np.exp(s - peak[..., None])
    total = powers.sum(-1)
    total = np.where(total == 0, 1, total)
    return powers / total[..., None], peak, total


def reference(
    q: np.ndarray, k: np.ndarray, v: np.ndarray, mask: np.ndarray | None = None, *, scale: float, causal: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """softmax(scale q @ k^T + mask) @ v and the softmax: q (..., L, E), k (..., S, E), v (..., S, Ev), mask bool or floating of (..., L, S).

    causal: query i sees the keys up to i alone. A row that sees no key gives 0.
    """
    weights = softmax_of(scores_of(q, k, mask, scale, causal))[0]
    return weights @ v, weights


def _sizes(q: Any, k: Any, v: Any, mask: Any, scale: float, causal: bool = False, p: float = 0.0, **_: Any) -> tuple[Any, ...]:
    """Sizes of keys, of values, and of what each weight's exponent is a sum of, with 1 more for its own rounding; the weights times the last; what
    dropout multiplies by."""
    keys, values = (np.abs(repeat_heads(x, q)) for x in (k, v))
    reach = 1 + abs(scale) * (np.abs(q) @ keys.swapaxes(-1, -2))
    if mask is not None and mask.dtype != np.bool_:
        reach = reach + np.where(np.isfinite(mask), np.abs(mask), 0)
    return keys, values, reach, softmax_of(scores_of(q, k, mask, scale, causal))[0] * reach, 1 / (1 - p) if 0 < p < 1 else 1


def output_scales(q: np.ndarray, k: np.ndarray, v: np.ndarray, mask: np.ndarray | None = None, **attrs: Any) -> tuple[np.ndarray, ...]:
    """For result, largest score and log-sum sums of the sizes of what is added: the last is the logarithm of a sum from 1 on, however small it is."""
    _, values, reach, w, factor = _sizes(q, k, v, mask, **attrs)
    return factor * (w @ values), reach.max(-1, initial=1), 1 + w.sum(-1)


def gradient_scales(g: np.ndarray, inputs: tuple[Any, ...], attrs: dict[str, Any]) -> tuple[Any, ...]:
    """For each gradient sums of the sizes of what is added, with 1 more for the roundings of each weight's exponent."""
    q, k, v, mask = inputs
    scale = abs(attrs["scale"])
    keys, values, _, w, factor = _sizes(q, k, v, mask, **attrs)
    dw = factor * (np.abs(g) @ values.swapaxes(-1, -2))
    ds = w * (dw + (w * dw).sum(-1, keepdims=True))
    found = scale * (ds @ keys), scale * (ds.swapaxes(-1, -2) @ np.abs(q)), factor * (w.swapaxes(-1, -2) @ np.abs(g))
    shared = tuple(
        d if d.shape == x.shape else d.reshape(*x.shape[:-2], -1, *x.shape[-2:]).sum(-3) for d, x in zip(found[1:], (k, v), strict=True)
    )
    if mask is None or mask.dtype == np.bool_:
        return found[0], *shared, None
    return found[0], *shared, ds.sum(mask_dims(ds, mask), keepdims=True).reshape(mask.shape)
