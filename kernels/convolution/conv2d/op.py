"""Two-dimensional convolution and its two gradients, three ops that are one another's derivatives."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tritensor.array import CudaArray
from tritensor.errors import ShapeError
from tritensor.kernels.convolution.conv2d import cpu, gpu
from tritensor.kernels.convolution.conv2d.cpu import Geometry
from tritensor.table import Sample, Spec, Work, op, ops, refuse_kind, refuse_mixed, registry

Pair = tuple[int, int]


def _out(size: int, kernel: int, stride: int, padding: int, dilation: int) -> int:
    return (size + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1


def geometry(x: tuple[int, ...], w: tuple[int, ...], stride: Pair, padding: Pair, dilation: Pair, groups: int) -> Geometry:
    """All sizes of a convolution of x (N, C, H, W) with weight (O, C / groups, kh, kw); refuses nothing."""
    rows = _out(x[2], w[2], stride[0], padding[0], dilation[0])
    cols = _out(x[3], w[3], stride[1], padding[1], dilation[1])
    return Geometry(x[0], x[1], x[2], x[3], w[0], w[2], w[3], rows, cols, *stride, *padding, *dilation, groups)


def _same_types(name: str, *named: tuple[str, Any]) -> np.dtype:
    refuse_mixed(name, *named)
    first, x = named[0]
    refuse_kind(name, x.dtype, ("float",), first)
    return x.dtype


def _checked(name: str, x: tuple[int, ...], w: tuple[int, ...], stride: Pair, padding: Pair, dilation: Pair, groups: int) -> Geometry:
    """The geometry, or a ShapeError that says what disagrees."""
    given = f"{name}: x {x}, weight {w}"
    if len(x) != 4 or len(w) != 4:
        raise ShapeError(f"{given}: x must be (N, C, H, W) and weight (O, C / groups, kh, kw)")
    if min(stride) < 1 or min(dilation) < 1 or groups < 1 or min(padding) < 0:
        raise ShapeError(
            f"{given}: stride {stride}, dilation {dilation} and groups {groups} must be at least 1 and padding {padding} at least 0"
        )
    if x[1] != w[1] * groups:
        raise ShapeError(f"{given}: x has {x[1]} channels, weight with groups={groups} takes {w[1]} * {groups} = {w[1] * groups}")
    if w[0] % groups:
        raise ShapeError(f"{given}: weight's {w[0]} output channels do not divide into {groups} groups")
    if min(w) == 0:
        raise ShapeError(f"{given}: weight has a size of 0")
    s = geometry(x, w, stride, padding, dilation, groups)
    if s.rows < 1 or s.cols < 1:
        spans = f"{dilation[0] * (w[2] - 1) + 1} x {dilation[1] * (w[3] - 1) + 1}"
        raise ShapeError(
            f"{given}: the kernel spans {spans}, the padded image only {x[2] + 2 * padding[0]} x {x[3] + 2 * padding[1]}; give more padding, or less kernel"
        )
    return s


def _upcast(x: np.ndarray) -> np.ndarray:
    """16-bit floats as float32, others as they are."""
    return x.astype(np.float32) if x.dtype.itemsize == 2 else x


# ---------------------------------------------------------------- conv2d


def shape(x: Any, weight: Any, bias: Any = None, *, stride: Pair, padding: Pair, dilation: Pair, groups: int) -> Spec:
    s = _checked("conv2d", tuple(x.shape), tuple(weight.shape), stride, padding, dilation, groups)
    if bias is not None and tuple(bias.shape) != (s.out,):
        raise ShapeError(
            f"conv2d: weight {tuple(weight.shape)}, bias {tuple(bias.shape)}: bias must have one value for each output channel, ({s.out},)"
        )
    return Spec((s.batch, s.out, s.rows, s.cols), _same_types("conv2d", ("x", x), ("weight", weight), ("bias", bias)))


def reference(
    x: np.ndarray,
    weight: np.ndarray,
    bias: np.ndarray | None = None,
    *,
    stride: Pair = (1, 1),
    padding: Pair = (0, 0),
    dilation: Pair = (1, 1),
    groups: int = 1,
) -> np.ndarray:
    """y[n, o, r, q] = sum over c, i, j of x[n, c, sh r + dh i - ph, sw q + dw j - pw] weight[o, c, i, j] + bias[o].

    x (N, C, H, W), weight (O, C / groups, kh, kw), bias (O,); y (N, O, OH, OW). 16-bit floats go through float32.
    """
    s = geometry(x.shape, weight.shape, stride, padding, dilation, groups)
    return cpu.correlate(_upcast(x), _upcast(weight), None if bias is None else _upcast(bias), s).astype(x.dtype, copy=False)


def forward(
    x: CudaArray, weight: CudaArray, bias: CudaArray | None = None, *, stride: Pair, padding: Pair, dilation: Pair, groups: int
) -> CudaArray:
    return gpu.correlate(x, weight, bias, geometry(x.shape, weight.shape, stride, padding, dilation, groups), transposed=False)


def rule_x(g: Any, weight: Any, x_shape: tuple[int, ...], stride: Pair, padding: Pair, dilation: Pair, groups: int) -> Any:
    return ops.conv2d_input(g, weight, size=x_shape[2:], stride=stride, padding=padding, dilation=dilation, groups=groups)


def rule_weight(g: Any, x: Any, weight_shape: tuple[int, ...], stride: Pair, padding: Pair, dilation: Pair, groups: int) -> Any:
    return ops.conv2d_weight(x, g, kernel_size=weight_shape[2:], stride=stride, padding=padding, dilation=dilation, groups=groups)


def rule_bias(g: Any) -> Any:
    return ops.sum(g, dim=(0, 2, 3), keepdim=False)


def backward_x(
    g: CudaArray, weight: CudaArray, x_shape: tuple[int, ...], stride: Pair, padding: Pair, dilation: Pair, groups: int
) -> CudaArray:
    return gpu.correlate(g, weight, None, geometry(x_shape, weight.shape, stride, padding, dilation, groups), transposed=True)


def backward_weight(
    g: CudaArray, x: CudaArray, weight_shape: tuple[int, ...], stride: Pair, padding: Pair, dilation: Pair, groups: int
) -> CudaArray:
    return gpu.weight_gradient(x, g, geometry(x.shape, weight_shape, stride, padding, dilation, groups))


def backward_bias(g: CudaArray) -> CudaArray:
    return registry["sum"].forward(g, dim=(0, 2, 3), keepdim=False)  # type: ignore[misc]


def reference_backward_x(
    g: np.ndarray, weight: np.ndarray, x_shape: tuple[int, ...], stride: Pair, padding: Pair, dilation: Pair, groups: int
) -> np.ndarray:
    s = geometry(x_shape, weight.shape, stride, padding, dilation, groups)
    return cpu.input_gradient(_upcast(g), _upcast(weight), s).astype(g.dtype, copy=False)


def reference_backward_weight(
    g: np.ndarray, x: np.ndarray, weight_shape: tuple[int, ...], stride: Pair, padding: Pair, dilation: Pair, groups: int
) -> np.ndarray:
    s = geometry(x.shape, weight_shape, stride, padding, dilation, groups)
    return cpu.weight_gradient(_upcast(x), _upcast(g), s).astype(x.dtype, copy=False)


def reference_backward_bias(g: np.ndarray) -> np.ndarray:
    images = _upcast(g).reshape(g.shape[0], g.shape[1], g.shape[2] * g.shape[3]).sum(2)
    return np.asarray(np.ascontiguousarray(images.T).sum(1).astype(g.dtype, copy=False))  # numpy sums in pairs along memory


# ---------------------------------------------------------------- its gradients, which are ops themselves


def _refuse_other_result(given: str, s: Geometry, g: Any) -> None:
    """Raise ShapeError where g is not of the shape that the convolution gives."""
    if tuple(g.shape) != (s.batch, s.out, s.rows, s.cols):
        raise ShapeError(f"{given}: the convolution gives {(s.batch, s.out, s.rows, s.cols)}, not g's shape")


def input_shape(g: Any, weight: Any, *, size: Pair, stride: Pair, padding: Pair, dilation: Pair, groups: int) -> Spec:
    if len(g.shape) != 4 or len(weight.shape) != 4:
        raise ShapeError(
            f"conv2d_input: g {tuple(g.shape)}, weight {tuple(weight.shape)}: g must be (N, O, OH, OW) and weight (O, C / groups, kh, kw)"
        )
    x = (g.shape[0], weight.shape[1] * groups, *size)
    s = _checked("conv2d_input", x, tuple(weight.shape), stride, padding, dilation, groups)
    _refuse_other_result(f"conv2d_input: g {tuple(g.shape)}, weight {tuple(weight.shape)}, size {size}", s, g)
    return Spec(x, _same_types("conv2d_input", ("g", g), ("weight", weight)))


def input_reference(
    g: np.ndarray,
    weight: np.ndarray,
    *,
    size: Pair,
    stride: Pair,
    padding: Pair,
    dilation: Pair,
    groups: int,
) -> np.ndarray:
    """dx[n, c, h, v] = sum of g[n, o, r, q] weight[o, c, i, j] over h = sh r + dh i - ph, v = sw q + dw j - pw: conv2d's gradient to x (N, C, *size)."""
    x_shape = (g.shape[0], weight.shape[1] * groups, *size)
    return reference_backward_x(g, weight, x_shape, stride, padding, dilation, groups)


def input_forward(g: CudaArray, weight: CudaArray, *, size: Pair, stride: Pair, padding: Pair, dilation: Pair, groups: int) -> CudaArray:
    return backward_x(g, weight, (g.shape[0], weight.shape[1] * groups, *size), stride, padding, dilation, groups)


def input_rule_g(g: Any, weight: Any, stride: Pair, padding: Pair, dilation: Pair, groups: int) -> Any:
    return ops.conv2d(g, weight, None, stride=stride, padding=padding, dilation=dilation, groups=groups)


def _input_rule_weight(gg: Any, g: Any, weight_shape: tuple[int, ...], stride: Pair, padding: Pair, dilation: Pair, groups: int) -> Any:
    return ops.conv2d_weight(gg, g, kernel_size=weight_shape[2:], stride=stride, padding=padding, dilation=dilation, groups=groups)


def _input_backward_g(gg: CudaArray, weight: CudaArray, stride: Pair, padding: Pair, dilation: Pair, groups: int) -> CudaArray:
    return forward(gg, weight, None, stride=stride, padding=padding, dilation=dilation, groups=groups)


def _input_backward_weight(
    gg: CudaArray, g: CudaArray, weight_shape: tuple[int, ...], stride: Pair, padding: Pair, dilation: Pair, groups: int
) -> CudaArray:
    return backward_weight(g, gg, weight_shape, stride, padding, dilation, groups)


def weight_shape_rule(x: Any, g: Any, *, kernel_size: Pair, stride: Pair, padding: Pair, dilation: Pair, groups: int) -> Spec:
    if len(g.shape) != 4 or len(x.shape) != 4:
        raise ShapeError(f"conv2d_weight: x {tuple(x.shape)}, g {tuple(g.shape)}: x must be (N, C, H, W) and g (N, O, OH, OW)")
    w = (g.shape[1], x.shape[1] // groups, *kernel_size)
    s = _checked("conv2d_weight", tuple(x.shape), w, stride, padding, dilation, groups)
    _refuse_other_result(f"conv2d_weight: x {tuple(x.shape)}, g {tuple(g.shape)}, kernel_size {kernel_size}", s, g)
    return Spec(w, _same_types("conv2d_weight", ("x", x), ("g", g)))


def weight_reference(
    x: np.ndarray,
    g: np.ndarray,
    *,
    kernel_size: Pair,
    stride: Pair,
    padding: Pair,
    dilation: Pair,
    groups: int,
) -> np.ndarray:
    """dw[o, c, i, j] = sum over n, r, q of g[n, o, r, q] x[n, c, sh r + dh i - ph, sw q + dw j - pw]: conv2d's gradient to its weight."""
    return reference_backward_weight(g, x, (g.shape[1], x.shape[1] // groups, *kernel_size), stride, padding, dilation, groups)


def weight_forward(x: CudaArray, g: CudaArray, *, kernel_size: Pair, stride: Pair, padding: Pair, dilation: Pair, groups: int) -> CudaArray:
    return backward_weight(g, x, (g.shape[1], x.shape[1] // groups, *kernel_size), stride, padding, dilation, groups)


def _weight_rule_x(gw: Any, g: Any, x_shape: tuple[int, ...], stride: Pair, padding: Pair, dilation: Pair, groups: int) -> Any:
    return ops.conv2d_input(g, gw, size=x_shape[2:], stride=stride, padding=padding, dilation=dilation, groups=groups)


def _weight_rule_g(gw: Any, x: Any, stride: Pair, padding: Pair, dilation: Pair, groups: int) -> Any:
    return ops.conv2d(x, gw, None, stride=stride, padding=padding, dilation=dilation, groups=groups)


def _weight_backward_x(
    gw: CudaArray, g: CudaArray, x_shape: tuple[int, ...], stride: Pair, padding: Pair, dilation: Pair, groups: int
) -> CudaArray:
    return backward_x(g, gw, x_shape, stride, padding, dilation, groups)


def _weight_backward_g(gw: CudaArray, x: CudaArray, stride: Pair, padding: Pair, dilation: Pair, groups: int) -> CudaArray:
    return forward(x, gw, None, stride=stride, padding=padding, dilation=dilation, groups=groups)


# ---------------------------------------------------------------- samples


def _cases(rng: np.random.Generator) -> list[tuple[np.ndarray, np.ndarray, dict[str, Any]]]:
    def x(*size: int) -> np.ndarray:
        return rng.standard_normal(size)

    plain: dict[str, Any] = {"stride": (1, 1), "padding": (0, 0), "dilation": (1, 1), "groups": 1}
    last = x(2, 5, 4, 3).transpose(0, 3, 1, 2)  # channels innermost
    inner = x(3, 5, 4, 2).transpose(3, 0, 1, 2)  # batch innermost
    return [
        (x(2, 3, 5, 6), x(2, 3, 3, 2), plain),
        (x(1, 2, 6, 5), x(4, 2, 2, 3), plain | {"stride": (2, 1), "padding": (1, 2)}),
        (x(2, 2, 7, 6), x(2, 2, 2, 2), plain | {"dilation": (2, 3), "padding": (1, 1)}),
        (x(2, 4, 5, 4), x(6, 2, 3, 3), plain | {"groups": 2, "padding": (1, 1)}),
        (x(2, 3, 4, 4), x(3, 1, 3, 3), plain | {"groups": 3, "stride": (2, 2), "padding": (1, 1)}),  # depthwise
        (last, x(2, 3, 2, 2), plain | {"padding": (1, 0)}),
        (inner, x(2, 3, 2, 2), plain),
        (x(2, 3, 4, 3), x(2, 3, 1, 1), plain),  # a matrix product at every pixel
        (x(5, 1, 3, 27), x(2, 1, 2, 2), plain),  # long rows on the CPU, a split weight gradient on a GPU
        (x(1, 18, 5, 5), x(17, 18, 2, 2), plain | {"stride": (3, 3)}),  # several tiles and steps; a row and a column unused
        (x(0, 2, 4, 4), x(3, 2, 2, 2), plain),
    ]


def samples(rng: np.random.Generator) -> list[Sample]:
    return [
        Sample(x, w, *((rng.standard_normal(w.shape[0]),) if i % 2 == 0 else ()), **attrs) for i, (x, w, attrs) in enumerate(_cases(rng))
    ]


def input_samples(rng: np.random.Generator) -> list[Sample]:
    out = []
    for x, w, attrs in _cases(rng):
        g = rng.standard_normal(shape(x, w, None, **attrs).shape)
        out.append(Sample(g, w, size=x.shape[2:], **attrs))
    return out


def weight_samples(rng: np.random.Generator) -> list[Sample]:
    out = []
    for x, w, attrs in _cases(rng):
        g = rng.standard_normal(shape(x, w, None, **attrs).shape)
        out.append(Sample(x, g, kernel_size=w.shape[2:], **attrs))
    return out


def sizes(rng: np.random.Generator) -> list[Sample]:
    def x(*size: int) -> np.ndarray:
        return rng.standard_normal(size)

    plain: dict[str, Any] = {"stride": (1, 1), "padding": (0, 0), "dilation": (1, 1), "groups": 1}
    return [
        Sample(x(64, 1, 28, 28), x(6, 1, 5, 5), x(6), **plain),
        Sample(x(64, 6, 12, 12), x(16, 6, 5, 5), x(16), **plain),
        Sample(x(32, 64, 56, 56), x(64, 64, 3, 3), **(plain | {"padding": (1, 1)})),
        Sample(x(32, 3, 224, 224), x(64, 3, 7, 7), **(plain | {"padding": (3, 3), "stride": (2, 2)})),
    ]


def work(x: Any, weight: Any, bias: Any = None, **attrs: Any) -> Work:
    """2 operations for each tap of each output; every array moves once."""
    y = math.prod(shape(x, weight, bias, **attrs).shape)
    return Work(2 * y * math.prod(weight.shape[1:]), (math.prod(x.shape) + math.prod(weight.shape) + y) * x.dtype.itemsize)


op(
    "conv2d", reference, shape=shape, forward=forward, rule=(rule_x, rule_weight, rule_bias), backward=(backward_x, backward_weight, backward_bias),
    reference_backward=(reference_backward_x, reference_backward_weight, reference_backward_bias), samples=samples, sizes=sizes, work=work,
    condition="absolute", layout="images",
)  # fmt: skip
op(
    "conv2d_input", input_reference, shape=input_shape, forward=input_forward, rule=(input_rule_g, _input_rule_weight),
    backward=(_input_backward_g, _input_backward_weight), samples=input_samples, condition="absolute", layout="images",
)  # fmt: skip
op(
    "conv2d_weight", weight_reference, shape=weight_shape_rule, forward=weight_forward, rule=(_weight_rule_x, _weight_rule_g),
    backward=(_weight_backward_x, _weight_backward_g), samples=weight_samples, condition="absolute", layout="images",
)  # fmt: skip
