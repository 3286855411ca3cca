"""Batches of images: the examples go into the images' own batch dimension, or with a filter for each example into groups of channels."""

from __future__ import annotations

from typing import Any

from tritensor.func.rules.registry import Batch, rule_for
from tritensor.kernels.parts.view_arithmetic import reshaped
from tritensor.ops.table import ops, registry


def fold_examples(x: Any) -> Any:
    """(B, N, ...) as (B * N, ...)."""
    shape = x._array.shape
    return reshaped(x, (shape[0] * shape[1], *shape[2:]))


def unfold_examples(x: Any, size: int) -> Any:
    """Back again."""
    shape = x._array.shape
    return reshaped(x, (size, shape[0] // size if size else 0, *shape[1:]))  # no examples: no images of theirs


@rule_for(
    "adaptive_max_pool edge_pad edge_pad_adjoint grid_sample im2col col2im resample resample_adjoint max_pool2d max_pool2d_scatter",
    "max_pool2d_gather avg_pool2d avg_pool2d_spread max_pool3d max_pool3d_scatter max_pool3d_gather avg_pool3d avg_pool3d_spread",
)
def _run_on_images(b: Batch) -> Any:
    made = b.run(*[fold_examples(b.whole(i)) for i in range(len(b.values))])
    return tuple([unfold_examples(y, b.size) for y in made]) if isinstance(made, tuple) else unfold_examples(made, b.size)


# A convolution of images (N, C, ..) with filters (O, C / groups, ..). Several filters of the examples are more groups of channels.
def channels_in(x: Any) -> Any:
    """(B, N, C, ..) as (N, B * C, ..)."""
    shape = x._array.shape
    rest = tuple(range(3, len(shape)))
    return reshaped(ops.permute(x, dims=(1, 0, 2, *rest)), (shape[1], shape[0] * shape[2], *shape[3:]))


def channels_out(x: Any, size: int) -> Any:
    """(N, B * C, ..) as (B, N, C, ..)."""
    n, c, *rest = x._array.shape
    parts = reshaped(x, (n, size, c // size, *rest))
    return ops.permute(parts, dims=(1, 0, 2, *range(3, len(rest) + 3)))


def _add_bias(y: Any, b: Batch) -> Any:
    """y (B, N, O, ..) with the bias of each example, or of all."""
    bias = b.values[2] if len(b.values) > 2 else None
    if bias is None:
        return y
    ones = (1,) * (len(y._array.shape) - 3)
    lead = (b.size, 1) if b.flags[2] else ()  # a bias of each example stands before the image's channels
    return ops.add(y, ops.reshape(bias, shape=(*lead, bias._array.shape[-1], *ones)))


@rule_for("conv1d conv2d conv3d conv1d_input conv2d_input conv3d_input")
def _convolve(b: Batch) -> Any:
    """One filter: more images. A filter for each example: more groups. The same images for all filters: more channels that come out."""
    x, weight, bias = b.values[0], b.values[1], b.values[2] if len(b.values) > 2 else None
    groups = b.attrs["groups"]
    if not b.flags[1]:
        if bias is None or not b.flags[2]:
            return unfold_examples(b.run(fold_examples(b.whole(0)), weight, bias), b.size)
        return _add_bias(unfold_examples(b.run(fold_examples(b.whole(0)), weight, None), b.size), b)
    # With groups the filters' channels would meet other channels of the images.
    if not b.flags[0] and groups == 1 and not b.op.name.endswith("_input"):
        return _add_bias(channels_out(b.run(x, fold_examples(weight), None), b.size), b)
    y = b.run(channels_in(b.whole(0)), fold_examples(weight), None, groups=groups * b.size)
    return _add_bias(channels_out(y, b.size), b)


@rule_for("conv1d_relu conv2d_relu conv3d_relu")
def _convolve_relu(b: Batch) -> Any:
    """The convolution's rule, whatever becomes channels or groups, and a ReLU of its result."""
    plain = registry[b.op.name.removesuffix("_relu")]
    return ops.relu(_convolve(Batch(plain, b.level, b.values, b.flags, b.attrs)))


@rule_for("conv1d_weight conv2d_weight conv3d_weight")
def _convolve_weight(b: Batch) -> Any:
    x, g = b.whole(0), b.whole(1)
    return unfold_examples(b.run(channels_in(x), channels_in(g), groups=b.attrs["groups"] * b.size), b.size)
