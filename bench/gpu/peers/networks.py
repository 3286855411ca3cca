"""torch's counterparts of what networks are made of: products with weights, convolutions, pooling, images, normalisation, attention, losses."""

from __future__ import annotations

from typing import Any

from bench.gpu.peers.forms import Peer, functional, renamed


def _pool(name: str) -> Peer:
    def pooled(t: Any, x: Any, *, kernel_size: Any, stride: Any, padding: Any = 0, **attrs: Any) -> Any:
        return getattr(t.nn.functional, name)(x, kernel_size, stride, padding, **attrs)

    return pooled


def _max_pool_with_indices(t: Any, x: Any, *, kernel_size: Any, stride: Any, padding: Any = 0, **attrs: Any) -> Any:
    return t.nn.functional.max_pool3d(x, kernel_size, stride, padding, return_indices=True, **attrs)


def _adaptive_max_pool(t: Any, x: Any, *, size: Any) -> Any:
    return getattr(t.nn.functional, f"adaptive_max_pool{len(size)}d")(x, size, return_indices=True)


def _conv2d_input(t: Any, g: Any, weight: Any, bias: Any = None, *, size: Any, groups: int = 1, **attrs: Any) -> Any:
    found = t.nn.grad.conv2d_input((g.shape[0], weight.shape[1] * groups, *size), weight, g, groups=groups, **attrs)
    return found if bias is None else found + bias[:, None, None]


def _conv2d_weight(t: Any, x: Any, g: Any, *, kernel_size: Any, groups: int = 1, **attrs: Any) -> Any:
    return t.nn.grad.conv2d_weight(x, (g.shape[1], x.shape[1] // groups, *kernel_size), g, groups=groups, **attrs)


def _im2col(t: Any, x: Any, *, kernel_size: Any, dilation: Any, padding: Any, stride: Any) -> Any:
    return t.nn.functional.unfold(x, kernel_size, dilation, padding, stride)


def _col2im(t: Any, x: Any, *, output_size: Any, kernel_size: Any, dilation: Any, padding: Any, stride: Any) -> Any:
    return t.nn.functional.fold(x, output_size, kernel_size, dilation, padding, stride)


def _edge_pad(t: Any, x: Any, *, sides: Any, mode: str) -> Any:
    return t.nn.functional.pad(x, [n for side in reversed(sides) for n in side], mode=mode)


def _resample(t: Any, x: Any, *, size: Any, mode: str, align_corners: bool, factors: Any) -> Any:
    aten, axes = t.ops.aten, len(size)
    kind, smooth = mode.removesuffix("-aa"), mode.endswith("-aa")
    if kind == "area":
        return t.nn.functional.interpolate(x, size, mode="area")
    if kind in ("nearest", "nearest-exact"):
        name = f"upsample_{kind.replace('-', '_')}{axes}d"
        return getattr(aten, name if kind == "nearest" else f"_{name}")(x, size, *factors)
    prefix = "bicubic" if kind == "cubic" else ("", "linear", "bilinear", "trilinear")[axes]
    name = f"upsample_{prefix}{axes}d"
    return getattr(aten, f"_{name}_aa" if smooth else name)(x, size, align_corners, *factors)


def _activated(t: Any, activation: str, z: Any) -> Any:
    return t.nn.functional.gelu(z, approximate="tanh") if activation == "gelu_tanh" else getattr(t.nn.functional, activation)(z)


def _batch_norm_activation(t: Any, x: Any, weight: Any, bias: Any, residual: Any = None, *, activation: str, eps: float) -> Any:
    z = t.nn.functional.batch_norm(x, None, None, weight, bias, True, 0.1, eps)
    return _activated(t, activation, z if residual is None else z + residual)


def _batch_norm_by_activation(
    t: Any, x: Any, mean: Any, var: Any, weight: Any, bias: Any, residual: Any = None, *, activation: str, eps: float
) -> Any:
    z = t.nn.functional.batch_norm(x, mean, var, weight, bias, False, 0.1, eps)
    return _activated(t, activation, z if residual is None else z + residual)


def _layer_norm(t: Any, x: Any, weight: Any = None, bias: Any = None, *, eps: float = 1e-5, axes: int = 1) -> Any:
    return t.nn.functional.layer_norm(x, x.shape[-axes:], weight, bias, eps)


def _attention(t: Any, q: Any, k: Any, v: Any, mask: Any = None, *, scale: float, causal: bool) -> Any:
    return t.nn.functional.scaled_dot_product_attention(q, k, v, mask, is_causal=causal, scale=scale)


def _flash_attention(
    t: Any, q: Any, k: Any, v: Any, mask: Any = None, *, scale: float, causal: bool, p: float = 0.0, seed: int = 0, offset: int = 0
) -> Any:
    return t.nn.functional.scaled_dot_product_attention(
        q, k, v, mask, p, causal, scale=scale, enable_gqa=q.ndim > 2 and q.shape[-3] != k.shape[-3]
    )


def _ctc_loss(t: Any, log_probs: Any, targets: Any, input_lengths: Any, target_lengths: Any, *, blank: int) -> Any:
    return t.nn.functional.ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, "none")


PEERS: dict[str, Peer] = {
    **functional("linear", "conv1d", "conv2d", "conv3d", "grid_sample"),
    "conv2d_input": _conv2d_input,
    "conv2d_weight": _conv2d_weight,
    "attention": _attention,
    "flash_attention": _flash_attention,
    "max_pool2d": _pool("max_pool2d"),
    "max_pool3d": _max_pool_with_indices,
    "avg_pool2d": _pool("avg_pool2d"),
    "avg_pool3d": _pool("avg_pool3d"),
    "adaptive_max_pool": _adaptive_max_pool,
    "im2col": _im2col,
    "col2im": _col2im,
    "edge_pad": _edge_pad,
    "resample": _resample,
    "layer_norm": _layer_norm,
    "rms_norm": lambda t, x, weight=None, *, eps, axes: t.nn.functional.rms_norm(x, x.shape[-axes:], weight, eps),
    "batch_norm": lambda t, x, weight=None, bias=None, *, eps: t.nn.functional.batch_norm(x, None, None, weight, bias, True, 0.1, eps),
    "batch_norm_by": lambda t, x, mean, var, weight=None, bias=None, *, eps: t.nn.functional.batch_norm(
        x, mean, var, weight, bias, False, 0.1, eps
    ),
    "group_norm": lambda t, x, weight=None, bias=None, *, groups, eps: t.nn.functional.group_norm(x, groups, weight, bias, eps),
    "batch_norm_activation": _batch_norm_activation,
    "batch_norm_by_activation": _batch_norm_by_activation,
    "group_norm_activation": lambda t, x, weight, bias, *, groups, activation, eps: _activated(
        t, activation, t.nn.functional.group_norm(x, groups, weight, bias, eps)
    ),
    "dropout": lambda t, x, *, p, seed, offset: t.nn.functional.dropout(x, p, training=True),
    **functional("mse_loss", "l1_loss", "huber_loss", "smooth_l1_loss", "soft_margin_loss", "kl_div", "binary_cross_entropy"),
    "cross_entropy": lambda t, x, target, weight=None, **attrs: t.nn.functional.cross_entropy(x, target, weight, **attrs),
    "nll_loss": lambda t, x, target, weight=None, **attrs: t.nn.functional.nll_loss(x, target, weight, **attrs),
    "bce_with_logits": renamed(lambda t: t.nn.functional.binary_cross_entropy_with_logits),
    "kl_div_of_logs": lambda t, x, target, **attrs: t.nn.functional.kl_div(x, target, log_target=True, **attrs),
    "poisson_nll": lambda t, x, target, **attrs: t.nn.functional.poisson_nll_loss(x, target, log_input=False, **attrs),
    "poisson_nll_of_log": lambda t, x, target, **attrs: t.nn.functional.poisson_nll_loss(x, target, log_input=True, **attrs),
    "ctc_loss": _ctc_loss,
}
