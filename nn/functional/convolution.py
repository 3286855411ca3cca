"""Convolution: a window of weights slid over rows, images and volumes, and the transposed one, which spreads each cell over a window."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tritensor.ground.errors import ArgumentError, DTypeError, ShapeError
from tritensor.ground.strides import is_channels_last
from tritensor.nn.functional.padding import pad
from tritensor.nn.functional.window_arguments import AXES, Sizes, add_batch, to_axes
from tritensor.ops.array import is_contiguous
from tritensor.ops.table import ops, registry
from tritensor.tensor.core import Tensor
from tritensor.tensor.functions.pointwise.complex_numbers import complex as joined
from tritensor.tensor.functions.pointwise.complex_numbers import imag, real
from tritensor.tensor.functions.shaping.reshaping import forget_base
from tritensor.tensor.public_api.publish import checked, function


def _require_same_dtype(name: str, x: Tensor, weight: Tensor, bias: Tensor | None) -> None:
    for what, other in (("weight", weight), ("bias", bias)):
        if other is not None and other.dtype != x.dtype:
            raise DTypeError(f"{name}: input is {x.dtype.name}, {what} {other.dtype.name}; cast one so that both are the same")


def convolve_complex(
    operation: Callable[..., Tensor], name: str, x: Tensor, weight: Tensor, bias: Tensor | None, settings: dict[str, Any]
) -> Tensor:
    """An op of x, weight and bias that is linear in x and weight, of complex ones: four of real ones."""
    _require_same_dtype(name, x, weight, bias)
    (a, b), (c, d) = (real(x), imag(x)), (real(weight), imag(weight))
    e, f = (None, None) if bias is None else (real(bias), imag(bias))  # the bias joins one product of each part: it is added once
    return joined(
        operation(a, c, e, **settings) - operation(b, d, None, **settings),
        operation(a, d, f, **settings) + operation(b, c, None, **settings),
    )


def convolve_integers(name: str, x: Tensor, weight: Tensor, bias: Tensor | None, settings: dict[str, Any]) -> Tensor:
    """The convolution of integers (batch, in, *size) with (out, in / groups, *kernel), a matrix product for each cell of the kernel."""
    _require_same_dtype(name, x, weight, bias)
    floats = (None if t is None else np.broadcast_to(np.float32(0), t.shape) for t in (x, weight, bias))
    outs = registry[name].shape(*floats, **settings).shape  # which refuses what the op of floats refuses
    stride, dilation, groups = settings["stride"], settings["dilation"], settings["groups"]
    x = pad(x, [p for p in reversed(settings["padding"]) for _ in (0, 1)])  # F.pad begins with the last axis
    batch, kernel, places = x.shape[0], tuple(weight.shape[2:]), math.prod(outs[2:])
    y: Tensor | None = None
    for tap in np.ndindex(*kernel):
        at = [slice(i * d, i * d + (n - 1) * step + 1, step) for i, d, n, step in zip(tap, dilation, outs[2:], stride, strict=True)]
        cells = x[(slice(None), slice(None), *at)].reshape(batch, groups, -1, places)
        part = ops.matmul(weight[(..., *tap)].reshape(groups, weight.shape[0] // groups, -1), cells)
        y = part if y is None else y + part  # added up in the integers' own type, which wraps as PyTorch's does
    assert y is not None
    y = y.reshape(outs)
    return y if bias is None else y + bias.reshape(-1, *(1,) * len(kernel))


def convolve_integers_transposed(
    name: str, x: Tensor, weight: Tensor, bias: Tensor | None, settings: dict[str, Any], size: tuple[int, ...]
) -> Tensor:
    """The transposed convolution of integers: the convolution, with the kernel turned round, of x with zeros between its cells."""
    if weight.shape[1] == 0:
        raise ShapeError(f"{name}: weight {tuple(weight.shape)} has no output channels")
    stride, groups = settings["stride"], settings["groups"]
    apart = ops.full(
        shape=(*x.shape[:2], *[(n - 1) * s + 1 for n, s in zip(x.shape[2:], stride, strict=True)]),
        value=0,
        dtype=x.dtype.numpy,
        device=x.device,
    )
    apart[(..., *[slice(None, None, s) for s in stride])] = x
    kernel, sides = weight.shape[2:], []
    for k, d, p, more in zip(kernel, settings["dilation"], settings["padding"], settings["output_padding"], strict=True):
        reach = d * (k - 1) - p
        sides.append((reach, reach + more))
    apart = pad(apart, [side for both in reversed(sides) for side in both])
    # the kernel turned round, with inputs and outputs exchanged inside each group
    turned = ops.flip(weight.reshape(groups, -1, *weight.shape[1:]), dims=tuple(range(3, 3 + len(kernel)))).transpose(1, 2)
    plain = {"stride": (1,) * len(kernel), "padding": (0,) * len(kernel), "dilation": settings["dilation"], "groups": groups}
    y = convolve_integers(f"conv{len(kernel)}d", apart, turned.reshape(-1, *turned.shape[2:]), bias, plain)
    assert tuple(y.shape[2:]) == size
    return y


def _check_settings(name: str, axes: int, given: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    """A number for each axis of every setting, none of them too small."""
    found = {what: to_axes(name, what, value, axes) for what, value in given.items()}
    for what, values in found.items():
        least = 0 if what.endswith("padding") else 1  # output_padding as well
        if min(values) < least:
            raise ShapeError(f"{name}: {what} {values} is {'negative' if least == 0 else 'non-positive'}; give {least} or more")
    return found


def _convolve(
    name: str, axes: int, input: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, groups: int, op: str = ""
) -> Tensor:
    """`op`: another than the convolution of that name, which takes the same."""
    x, single = add_batch(name, input, axes)
    named = isinstance(padding, str)
    s = _check_settings(name, axes, {"stride": stride, "dilation": dilation, **({} if named else {"padding": padding})})
    if named:
        x, s["padding"] = _resolve_padding(name, axes, x, weight, padding, s["stride"], s["dilation"])
    kind = x.dtype.kind
    # there are kernels of floats alone: complex numbers and integers are composed of what there is
    if kind == "complex":
        y = convolve_complex(getattr(ops, name), name, x, weight, bias, s | {"groups": groups})
    elif kind in ("int", "uint"):
        y = convolve_integers(name, x, weight, bias, s | {"groups": groups})
    else:
        y = getattr(ops, op or name)(x, weight, bias, groups=groups, **s)
    if axes == 1:
        y = _copy_row_layout(x, weight, y)
    return forget_base(y.squeeze(0)) if single else y


def _copy_row_layout(x: Tensor, weight: Tensor, y: Tensor) -> Tensor:
    """Rows that PyTorch, to which they are images of one row, lays out with their channels last: of rows in C order that may be read so,
    since each has one channel or one cell, and of weights whose channels lie last."""
    turned = weight.stride(1) <= weight.stride(2) and _is_channels_last(weight)
    if not turned and (1 not in x.shape[1:] or not is_contiguous(x._array) or not _is_channels_last(x)):
        return y
    return ops.permute(ops.permute(y, dims=(0, 2, 1)).contiguous(), dims=(0, 2, 1))  # type: ignore[no-any-return]


def _is_channels_last(x: Tensor) -> bool:
    n, c, w = x.shape
    a, b, step = x.stride()
    return is_channels_last((n, c, 1, w), (a, b, w * step, step))


def _resolve_padding(
    name: str, axes: int, x: Tensor, weight: Tensor, padding: str, stride: tuple[int, ...], dilation: tuple[int, ...]
) -> tuple[Tensor, tuple[int, ...]]:
    if weight.ndim != axes + 2:
        raise ShapeError(f"{name}: weight {tuple(weight.shape)} has {weight.ndim} dimensions; give (out, in / groups, {AXES[axes]})")
    if padding == "valid":
        return x, (0,) * axes
    if padding != "same":
        raise ArgumentError(f"{name}: padding {padding!r} is not known; give 'same', 'valid', an integer or one for each axis")
    if max(stride) > 1:
        raise ArgumentError(
            f"{name}: padding='same' is not supported for strided convolutions; stride is {stride}: give stride 1, or sizes"
        )
    total = [d * (k - 1) for d, k in zip(dilation, weight.shape[2:], strict=True)]
    if any(n % 2 for n in total):  # an even kernel wants one more at the end
        x = pad(x, [side for n in reversed(total) for side in (0, n % 2)])
    return x, tuple(n // 2 for n in total)


@checked
def conv1d(
    input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Sizes = 1, padding: int | str | Sequence[int] = 0, dilation: Sizes = 1,
    groups: int = 1,
) -> Tensor:  # fmt: skip
    """Cross-correlation: input (batch, in, w), weight (out, in / groups, kw), bias (out) -> (batch, out, w').

    `padding` is a size, "valid" (none) or "same" (the output is as large as the input; stride 1 only). An input (in, w) is a batch of one.
    """
    return _convolve("conv1d", 1, input, weight, bias, stride, padding, dilation, groups)


@checked
def conv2d(
    input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: int | Sequence[int] = 1, padding: int | str | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1, groups: int = 1,
) -> Tensor:  # fmt: skip
    """Cross-correlation: input (batch, in, h, w), weight (out, in / groups, kh, kw), bias (out) -> (batch, out, h', w').

    `padding` is a size, a pair, "valid" (none) or "same" (the output is as large as the input; stride 1 only). An input (in, h, w) is a batch of one.
    """
    return _convolve("conv2d", 2, input, weight, bias, stride, padding, dilation, groups)


@checked
def conv3d(
    input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Sizes = 1, padding: int | str | Sequence[int] = 0, dilation: Sizes = 1,
    groups: int = 1,
) -> Tensor:  # fmt: skip
    """Cross-correlation: input (batch, in, d, h, w), weight (out, in / groups, kd, kh, kw), bias (out) -> (batch, out, d', h', w').

    `padding` is a size, three, "valid" (none) or "same" (the output is as large as the input; stride 1 only). An input (in, d, h, w) is a batch of one.
    """
    return _convolve("conv3d", 3, input, weight, bias, stride, padding, dilation, groups)


@checked
def conv_relu(
    input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Sizes = 1, padding: int | str | Sequence[int] = 0, dilation: Sizes = 1,
    groups: int = 1,
) -> Tensor:  # fmt: skip
    """`relu(conv(input, weight, bias, ...))` in one kernel, over as many axes as weight (out, in / groups, *kernel) has: that of conv1d, conv2d, conv3d.

    PyTorch has it as two functions. Raises what the convolution raises, and DTypeError for numbers that are not floating.

    >>> F.conv_relu(tt.tensor([[[1.0, -2.0, 3.0]]]), tt.ones(1, 1, 1))
    tensor([[[1., 0., 3.]]])
    """
    if not 3 <= weight.ndim <= 5:
        raise ShapeError(
            f"conv_relu: weight {tuple(weight.shape)} has {weight.ndim} dimensions; give (out, in / groups, *kernel) of 1 to 3 axes"
        )
    if input.dtype.kind != "float":
        raise DTypeError(f"conv_relu: input is {input.dtype}; give a floating type, or relu(conv(...)) of others")
    axes = weight.ndim - 2
    return _convolve(
        "conv_relu", axes, input, weight, bias, stride, padding, dilation, groups, ("conv1d_relu", "conv2d_relu", "conv3d_relu")[axes - 1]
    )


def _transposed_size(name: str, axes: int, x: Tensor, weight: Tensor, bias: Any, s: dict[str, Any], groups: int) -> tuple[int, ...]:
    """The size of a transposed convolution's result; refuses what does not fit."""
    given = f"{name}: input {tuple(x.shape)}, weight {tuple(weight.shape)}"
    if weight.ndim != axes + 2:
        raise ShapeError(f"{given}: weight has {weight.ndim} dimensions; give (in, out / groups, {AXES[axes]})")
    if groups < 1:
        raise ShapeError(f"{given}: groups is {groups}; give 1 or more")
    if x.shape[1] != weight.shape[0]:
        raise ShapeError(
            f"{given}: input has {x.shape[1]} channels, weight takes {weight.shape[0]}; the first size of weight is the input's channels"
        )
    if weight.shape[0] % groups or 0 in weight.shape[2:]:
        raise ShapeError(f"{given}: weight's {weight.shape[0]} input channels must divide into {groups} groups, and its kernel have cells")
    if bias is not None and tuple(bias.shape) != (weight.shape[1] * groups,):
        raise ShapeError(
            f"{given}, bias {tuple(bias.shape)}: bias must have one value for each output channel, ({weight.shape[1] * groups},)"
        )
    for more, step, dilation in zip(s["output_padding"], s["stride"], s["dilation"], strict=True):
        if more >= max(step, dilation):
            raise ShapeError(
                f"{given}: output_padding {s['output_padding']} must be smaller than either stride {s['stride']} or dilation {s['dilation']}"
            )
    size = tuple(
        (n - 1) * step - 2 * p + d * (k - 1) + more + 1
        for n, k, step, p, d, more in zip(
            x.shape[2:], weight.shape[2:], s["stride"], s["padding"], s["dilation"], s["output_padding"], strict=True
        )
    )
    if min(size) < 1 or 0 in x.shape[2:]:
        raise ShapeError(f"{given}: the output would be {size}, too small; give less padding than {s['padding']}, or a larger input")
    return size


def _convolve_transposed(
    name: str, axes: int, input: Any, weight: Any, bias: Any, stride: Any, padding: Any, output_padding: Any, groups: int, dilation: Any
) -> Tensor:
    x, single = add_batch(name, input, axes)
    s = _check_settings(name, axes, {"stride": stride, "padding": padding, "output_padding": output_padding, "dilation": dilation})
    size = _transposed_size(name, axes, x, weight, bias, s, groups)
    if x.dtype.kind in ("int", "uint"):
        y = convolve_integers_transposed(name, x, weight, bias, s | {"groups": groups}, size)
        return forget_base(y.squeeze(0)) if single else y
    # less than a stride of it changes the size alone, and no window reaches there
    more = [o // step for o, step in zip(s.pop("output_padding"), s["stride"], strict=True)]
    if any(more):  # what is padded by more than a stride is what cells behind the last one would reach
        x = pad(x, [side for n in reversed(more) for side in (0, n)])
    operation = getattr(ops, f"conv{axes}d_input")
    settings = {**s, "size": size, "groups": groups}
    y = (
        convolve_complex(operation, name, x, weight, bias, settings)
        if x.dtype.kind == "complex"
        else operation(x, weight, bias, **settings)
    )
    if axes == 1:
        y = _copy_row_layout(x, weight, y)
    return forget_base(y.squeeze(0)) if single else y


@checked
def conv_transpose1d(
    input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Sizes = 1, padding: Sizes = 0, output_padding: Sizes = 0, groups: int = 1,
    dilation: Sizes = 1,
) -> Tensor:  # fmt: skip
    """Each cell times a window of weights, added up: input (batch, in, w), weight (in, out / groups, kw), bias (out) -> (batch, out, w').

    The gradient of conv1d to its input. w' = (w - 1) stride - 2 padding + dilation (kw - 1) + output_padding + 1.
    """
    return _convolve_transposed("conv_transpose1d", 1, input, weight, bias, stride, padding, output_padding, groups, dilation)


@checked
def conv_transpose2d(
    input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Sizes = 1, padding: Sizes = 0, output_padding: Sizes = 0, groups: int = 1,
    dilation: Sizes = 1,
) -> Tensor:  # fmt: skip
    """Each pixel times a window of weights, added up: input (batch, in, h, w), weight (in, out / groups, kh, kw), bias (out) -> (batch, out, h', w').

    The gradient of conv2d to its input. h' = (h - 1) stride - 2 padding + dilation (kh - 1) + output_padding + 1.
    """
    return _convolve_transposed("conv_transpose2d", 2, input, weight, bias, stride, padding, output_padding, groups, dilation)


@checked
def conv_transpose3d(
    input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Sizes = 1, padding: Sizes = 0, output_padding: Sizes = 0, groups: int = 1,
    dilation: Sizes = 1,
) -> Tensor:  # fmt: skip
    """Each cell times a window of weights, added up: input (batch, in, d, h, w), weight (in, out / groups, kd, kh, kw) -> (batch, out, d', h', w').

    The gradient of conv3d to its input. d' = (d - 1) stride - 2 padding + dilation (kd - 1) + output_padding + 1.
    """
    return _convolve_transposed("conv_transpose3d", 3, input, weight, bias, stride, padding, output_padding, groups, dilation)


@checked
def conv_tbc(input: Tensor, weight: Tensor, bias: Tensor, pad: int = 0) -> Tensor:
    """conv1d of sequences with the time first: input (time, batch, in), weight (kw, in, out), bias (out) -> (time', batch, out)."""
    given = f"conv_tbc: input {tuple(input.shape)}, weight {tuple(weight.shape)}, bias {tuple(bias.shape)}"
    if input.ndim != 3 or weight.ndim != 3 or bias.ndim != 1:
        raise ShapeError(f"{given}: give (time, batch, in), (kw, in, out) and (out,)")
    if input.shape[2] != weight.shape[1]:
        raise ShapeError(f"{given}: input has {input.shape[2]} channels, weight takes {weight.shape[1]}")
    if bias.shape[0] != weight.shape[2]:
        raise ShapeError(f"{given}: bias must have one value for each output channel, ({weight.shape[2]},)")
    y = _convolve("conv1d", 1, input.permute(1, 2, 0), weight.permute(2, 1, 0), bias, 1, pad, 1, 1)
    return forget_base(y.permute(2, 0, 1).contiguous())


@function(method=False)
def convolution(
    input: Tensor, weight: Tensor, bias: Tensor | None, stride: Sequence[int], padding: Sequence[int], dilation: Sequence[int], transposed: bool,
    output_padding: Sequence[int], groups: int,
) -> Tensor:  # fmt: skip
    """conv1d, conv2d or conv3d, as weight has dimensions, or transposed the conv_transpose of as many."""
    axes = weight.ndim - 2
    if axes not in AXES:
        raise ShapeError(
            f"convolution: weight {tuple(weight.shape)} has {weight.ndim} dimensions; give (out, in / groups) and one to three sizes"
        )
    if transposed:
        return _convolve_transposed(f"conv_transpose{axes}d", axes, input, weight, bias, stride, padding, output_padding, groups, dilation)
    return _convolve(f"conv{axes}d", axes, input, weight, bias, stride, padding, dilation, groups)
