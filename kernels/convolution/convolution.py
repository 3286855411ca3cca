"""Convolution over one, two and three axes, and its two gradients: three ops that are one another's derivatives."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tritensor.ground.errors import ShapeError
from tritensor.kernels.convolution import cpu, gpu, samples
from tritensor.kernels.convolution.geometry import RESULTS, Geometry, Sizes, check_sizes, geometry
from tritensor.kernels.parts.cpu.blocks import upcast
from tritensor.kernels.parts.indices.sliding_windows import add_windows, read_windows
from tritensor.ops.array import CudaArray
from tritensor.ops.table import Spec, Work, op, ops, refuse_kind, refuse_mixed, registry
from tritensor.ops.table.signature import by_names


def _same_types(name: str, *named: tuple[str, Any]) -> np.dtype:
    refuse_mixed(name, *named)
    first, x = named[0]
    refuse_kind(name, x.dtype, ("float",), first)
    return x.dtype


def _refuse_bias(name: str, weight: Any, bias: Any, channels: int) -> None:
    if bias is not None and tuple(bias.shape) != (channels,):
        raise ShapeError(
            f"{name}: weight {tuple(weight.shape)}, bias {tuple(bias.shape)}: bias must have one value for each output channel, ({channels},)"
        )


def _refuse_other_result(given: str, s: Geometry, g: Any) -> None:
    """Raise ShapeError where g is not of the shape that the convolution gives."""
    if tuple(g.shape) != (s.batch, s.out, *s.outs):
        raise ShapeError(f"{given}: the convolution gives {(s.batch, s.out, *s.outs)}, not g's shape")


# ---------------------------------------------------------------- the convolution


def _shape(axes: int) -> Callable[..., Spec]:
    name = f"conv{axes}d"

    def shape(x: Any, weight: Any, bias: Any = None, *, stride: Sizes, padding: Sizes, dilation: Sizes, groups: int) -> Spec:
        s = check_sizes(name, axes, tuple(x.shape), tuple(weight.shape), stride, padding, dilation, groups)
        _refuse_bias(name, weight, bias, s.out)
        return Spec((s.batch, s.out, *s.outs), _same_types(name, ("x", x), ("weight", weight), ("bias", bias)))

    return shape


def reference(
    x: np.ndarray, weight: np.ndarray, bias: np.ndarray | None = None, *, stride: Sizes, padding: Sizes, dilation: Sizes, groups: int = 1
) -> np.ndarray:
    """y[n, o, r, q] = sum over c, i, j of x[n, c, sh r + dh i - ph, sw q + dw j - pw] weight[o, c, i, j] + bias[o], and so with one axis and three.

    x (N, C, H, W), weight (O, C / groups, kh, kw), bias (O,); y (N, O, OH, OW). 16-bit floats go through float32.
    """
    s = geometry(x.shape, weight.shape, stride, padding, dilation, groups)
    y = np.einsum("ngcpt,goct->ngop", _cells(x, s), _taps(weight, s)).reshape(s.batch, s.out, *s.outs)
    return y if bias is None else y + bias.reshape(-1, *(1,) * len(s.outs))


def _cells(x: np.ndarray, s: Geometry) -> np.ndarray:
    """The cells of x that each result reads, (N, groups, channels of a group, results, taps)."""
    return read_windows(x, s).reshape(s.batch, s.groups, s.channels // s.groups, math.prod(s.outs), s.taps)


def _taps(weight: np.ndarray, s: Geometry) -> np.ndarray:
    """weight as (groups, output channels of a group, channels of a group, taps)."""
    return weight.reshape(s.groups, s.out // s.groups, s.channels // s.groups, s.taps)


def _results(g: np.ndarray, s: Geometry) -> np.ndarray:
    """g as (N, groups, output channels of a group, results)."""
    return g.reshape(s.batch, s.groups, s.out // s.groups, math.prod(s.outs))


def cpu_forward(x: np.ndarray, weight: np.ndarray, bias: np.ndarray | None = None, **how: Any) -> np.ndarray:
    return cpu.correlate(upcast(x), upcast(weight), upcast(bias), geometry(x.shape, weight.shape, **how)).astype(x.dtype, copy=False)


def forward(x: CudaArray, weight: CudaArray, bias: CudaArray | None = None, **how: Any) -> CudaArray:
    return gpu.kernel_choice.correlate(x, weight, bias, geometry(x.shape, weight.shape, **how), transposed=False)


def rule_x(g: Any, weight: Any, x_shape: Sizes, **how: Any) -> Any:
    to_input = ops.conv1d_input if g.ndim == 3 else ops.conv2d_input if g.ndim == 4 else ops.conv3d_input
    return to_input(g, weight, None, size=x_shape[2:], **how)


def rule_weight(g: Any, x: Any, weight_shape: Sizes, **how: Any) -> Any:
    to_weight = ops.conv1d_weight if g.ndim == 3 else ops.conv2d_weight if g.ndim == 4 else ops.conv3d_weight
    return to_weight(x, g, kernel_size=weight_shape[2:], **how)


def _rule_of_gradient(x: Any, weight: Any, **how: Any) -> Any:
    convolution = ops.conv1d if x.ndim == 3 else ops.conv2d if x.ndim == 4 else ops.conv3d
    return convolution(x, weight, None, **how)


def rule_bias(g: Any) -> Any:
    return ops.sum(g, dim=(0, *range(2, g.ndim)), keepdim=False)


def backward(
    g: CudaArray, x: CudaArray | None, weight: CudaArray | None, x_shape: Sizes, weight_shape: Sizes, stride: Sizes, padding: Sizes,
    dilation: Sizes, groups: int, needs: tuple[bool, ...],
) -> tuple[CudaArray | None, ...]:  # fmt: skip
    """The gradients that are asked for, one for each input that was given; the bias's is summed on the way of the weight's
    where that reads g pixel by pixel.

    x and weight are None where no gradient needs them.
    """
    s = geometry(x_shape, weight_shape, stride, padding, dilation, groups)
    weight, x = weight if needs[0] else None, x if needs[1] else None
    # both gradients read g with channels innermost: a transposing copy of it is made once
    last = None if weight is None or x is None else gpu.kernel_choice.operand_of_gradients(g, s)
    dx = None if weight is None else gpu.kernel_choice.correlate(g, weight, None, s, transposed=True, last=last)
    biased = needs[-1] and len(needs) == 3
    dw, db = (None, None) if x is None else gpu.kernel_choice.weight_gradient(x, g, s, biased, last)
    # blocks of channels do not sum g on their way
    if biased and db is None:
        db = backward_bias(g)
    return (dx, dw, db)[: len(needs)]


def backward_bias(g: CudaArray) -> CudaArray:
    return registry["sum"].forward(g, dim=(0, *range(2, len(g.shape))), keepdim=False)  # type: ignore[misc]


def cpu_backward_x(g: np.ndarray, weight: np.ndarray, x_shape: Sizes, **how: Any) -> np.ndarray:
    return cpu.input_gradient(upcast(g), upcast(weight), None, geometry(x_shape, weight.shape, **how)).astype(g.dtype, copy=False)


def cpu_backward_weight(g: np.ndarray, x: np.ndarray, weight_shape: Sizes, **how: Any) -> np.ndarray:
    return cpu.weight_gradient(upcast(x), upcast(g), geometry(x.shape, weight_shape, **how)).astype(x.dtype, copy=False)


def cpu_backward_bias(g: np.ndarray) -> np.ndarray:
    images = upcast(g).reshape(g.shape[0], g.shape[1], math.prod(g.shape[2:])).sum(2)
    return np.asarray(np.ascontiguousarray(images.T).sum(1).astype(g.dtype, copy=False))  # numpy sums in pairs along memory


# ---------------------------------------------------------------- its gradient to x, the transposed convolution


def _input_shape(axes: int) -> Callable[..., Spec]:
    name = f"conv{axes}d_input"

    def shape(g: Any, weight: Any, bias: Any = None, *, size: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, groups: int) -> Spec:
        if len(g.shape) != axes + 2 or len(weight.shape) != axes + 2:
            raise ShapeError(
                f"{name}: g {tuple(g.shape)}, weight {tuple(weight.shape)}: g must be (N, O, {RESULTS[axes]}) and weight (O, C / groups, and "
                f"{axes} sizes)"
            )
        x = (g.shape[0], weight.shape[1] * groups, *size)
        s = check_sizes(name, axes, x, tuple(weight.shape), stride, padding, dilation, groups)
        _refuse_other_result(f"{name}: g {tuple(g.shape)}, weight {tuple(weight.shape)}, size {size}", s, g)
        _refuse_bias(name, weight, bias, s.channels)
        return Spec(x, _same_types(name, ("g", g), ("weight", weight), ("bias", bias)))

    return shape


def input_reference(
    g: np.ndarray, weight: np.ndarray, bias: np.ndarray | None = None, *,
    size: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, groups: int,
) -> np.ndarray:  # fmt: skip
    """dx[n, c, h, v] = sum of g[n, o, r, q] weight[o, c, i, j] over h = sh r + dh i - ph, v = sw q + dw j - pw, + bias[c], and so with one axis
    and three: the convolution's gradient to x (N, C, *size), which is the transposed convolution of g."""
    s = _input_geometry(g, weight, size, groups, stride=stride, padding=padding, dilation=dilation)
    shares = np.einsum("ngop,goct->ngcpt", _results(g, s), _taps(weight, s))
    dx = add_windows(shares.reshape(s.batch, s.channels, *s.outs, s.taps), s)
    return dx if bias is None else dx + bias.reshape(-1, *(1,) * len(s.outs))


def _input_geometry(g: Any, weight: Any, size: Sizes, groups: int, **how: Sizes) -> Geometry:
    return geometry((g.shape[0], weight.shape[1] * groups, *size), weight.shape, **how, groups=groups)


def input_cpu(g: np.ndarray, weight: np.ndarray, bias: np.ndarray | None = None, **how: Any) -> np.ndarray:
    return cpu.input_gradient(upcast(g), upcast(weight), upcast(bias), _input_geometry(g, weight, **how)).astype(g.dtype, copy=False)


def input_forward(g: CudaArray, weight: CudaArray, bias: CudaArray | None = None, **how: Any) -> CudaArray:
    return gpu.kernel_choice.correlate(g, weight, bias, _input_geometry(g, weight, **how), transposed=True)


# ---------------------------------------------------------------- its gradient to the weight


def _weight_shape(axes: int) -> Callable[..., Spec]:
    name = f"conv{axes}d_weight"

    def shape(x: Any, g: Any, *, kernel_size: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, groups: int) -> Spec:
        if len(g.shape) != axes + 2 or len(x.shape) != axes + 2:
            raise ShapeError(
                f"{name}: x {tuple(x.shape)}, g {tuple(g.shape)}: x must be (N, C, and {axes} sizes) and g (N, O, {RESULTS[axes]})"
            )
        w = (g.shape[1], x.shape[1] // groups, *kernel_size)
        s = check_sizes(name, axes, tuple(x.shape), w, stride, padding, dilation, groups)
        _refuse_other_result(f"{name}: x {tuple(x.shape)}, g {tuple(g.shape)}, kernel_size {kernel_size}", s, g)
        return Spec(w, _same_types(name, ("x", x), ("g", g)))

    return shape


def weight_reference(
    x: np.ndarray, g: np.ndarray, *, kernel_size: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, groups: int
) -> np.ndarray:
    """dw[o, c, i, j] = sum over n, r, q of g[n, o, r, q] x[n, c, sh r + dh i - ph, sw q + dw j - pw], and so with one axis and three: the
    convolution's gradient to its weight."""
    s = _weight_geometry(x, g, kernel_size, groups, stride=stride, padding=padding, dilation=dilation)
    return np.einsum("ngop,ngcpt->goct", _results(g, s), _cells(x, s)).reshape(s.out, s.channels // groups, *kernel_size)


def _weight_geometry(x: Any, g: Any, kernel_size: Sizes, groups: int, **how: Sizes) -> Geometry:
    return geometry(x.shape, (g.shape[1], x.shape[1] // groups, *kernel_size), **how, groups=groups)


def weight_cpu(x: np.ndarray, g: np.ndarray, **how: Any) -> np.ndarray:
    return cpu.weight_gradient(upcast(x), upcast(g), _weight_geometry(x, g, **how)).astype(x.dtype, copy=False)


def weight_forward(x: CudaArray, g: CudaArray, **how: Any) -> CudaArray:
    return gpu.kernel_choice.weight_gradient(x, g, _weight_geometry(x, g, **how))[0]


def work(x: Any, weight: Any, bias: Any = None, *, stride: Sizes, padding: Sizes, dilation: Sizes, groups: int) -> Work:
    """2 operations for each tap of each output; every array moves once."""
    s = geometry(tuple(x.shape), tuple(weight.shape), stride, padding, dilation, groups)
    y = s.batch * s.out * math.prod(s.outs)
    return Work(2 * y * math.prod(weight.shape[1:]), (math.prod(x.shape) + math.prod(weight.shape) + y) * x.dtype.itemsize)


def input_work(g: Any, weight: Any, bias: Any = None, *, size: Sizes, groups: int, **_: Any) -> Work:
    """2 operations for each tap of each element of g; every array moves once."""
    y = g.shape[0] * weight.shape[1] * groups * math.prod(size)
    return Work(2 * math.prod(g.shape) * math.prod(weight.shape[1:]), (math.prod(g.shape) + math.prod(weight.shape) + y) * g.dtype.itemsize)


def weight_work(x: Any, g: Any, *, kernel_size: Sizes, groups: int, **_: Any) -> Work:
    """2 operations for each tap of each element of g; every array moves once."""
    taps = x.shape[1] // groups * math.prod(kernel_size)
    return Work(2 * math.prod(g.shape) * taps, (math.prod(x.shape) + math.prod(g.shape) + g.shape[1] * taps) * x.dtype.itemsize)


def _backward_of_input(convolve: Callable[..., Any], to_weight: Callable[..., Any]) -> tuple[Callable[..., Any], ...]:
    """The corners of conv_input's gradients to g and the weight."""
    return (
        by_names(convolve, "weight", *_HOW),
        by_names(lambda gg, g, weight_shape, **how: to_weight(gg, g, kernel_size=weight_shape[2:], **how), "g", "weight_shape", *_HOW),
    )


def _backward_of_weight(convolve: Callable[..., Any], to_input: Callable[..., Any]) -> tuple[Callable[..., Any], ...]:
    """The corners of conv_weight's gradients to x and g."""
    return (
        by_names(lambda gw, g, x_shape, **how: to_input(g, gw, size=x_shape[2:], **how), "g", "x_shape", *_HOW),
        by_names(lambda gw, x, **how: convolve(x, gw, **how), "x", *_HOW),
    )


_HOW = ("stride", "padding", "dilation", "groups")
for _axes in (1, 2, 3):
    op(
        f"conv{_axes}d", reference, cpu=cpu_forward, shape=_shape(_axes), forward=forward, backward=backward,
        rule=(by_names(rule_x, "weight", "x_shape", *_HOW), by_names(rule_weight, "x", "weight_shape", *_HOW), rule_bias),
        cpu_backward=(
            by_names(cpu_backward_x, "weight", "x_shape", *_HOW), by_names(cpu_backward_weight, "x", "weight_shape", *_HOW), cpu_backward_bias,
        ),
        samples=samples.forward(_axes), sizes=samples.sizes(_axes), work=work, condition="absolute", autocast="lower", layout="images",
    )  # fmt: skip
    op(
        f"conv{_axes}d_input", input_reference, cpu=input_cpu, shape=_input_shape(_axes), forward=input_forward,
        rule=(
            by_names(_rule_of_gradient, "weight", *_HOW),
            by_names(lambda gg, g, weight_shape, **how: rule_weight(g, gg, weight_shape, **how), "g", "weight_shape", *_HOW),
            rule_bias,
        ),
        backward=(*_backward_of_input(forward, weight_forward), backward_bias),
        cpu_backward=(*_backward_of_input(cpu_forward, weight_cpu), cpu_backward_bias),
        samples=samples.to_input(_axes), work=input_work, condition="absolute", autocast="lower", layout="images",
    )  # fmt: skip
    op(
        f"conv{_axes}d_weight", weight_reference, cpu=weight_cpu, shape=_weight_shape(_axes), forward=weight_forward,
        rule=(
            by_names(lambda gw, g, x_shape, **how: rule_x(g, gw, x_shape, **how), "g", "x_shape", *_HOW),
            by_names(lambda gw, x, **how: _rule_of_gradient(x, gw, **how), "x", *_HOW),
        ),
        backward=_backward_of_weight(forward, input_forward), cpu_backward=_backward_of_weight(cpu_forward, input_cpu),
        samples=samples.to_weight(_axes), work=weight_work, condition="absolute", layout="images",
    )  # fmt: skip
