"""Translations of ops into PyTorch's: for each op of the table the calls of `ops.aten` by which handlers are told of it.

What stands in none of these tables is told by its own name, `ops.tritensor.<name>.default`: kernels that fuse several of PyTorch's ops, steps of optimizers,
backward kernels, draws whose seed the gradient needs again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tritensor.dispatch.dispatcher import SCALARS
from tritensor.ground import dtypes
from tritensor.ground.strides import contiguous_format, preserve_format
from tritensor.ops.array import from_host
from tritensor.tensor.core import Tensor, new_tensor
from tritensor.torch_dispatch.overloads import Overload, aten, tritensor

TRANSLATIONS: dict[str, Callable[..., Any]] = {}

_REDUCTIONS = {"none": 0, "mean": 1, "sum": 2}

# Ops of one input without attributes, by the name that PyTorch has for them.
UNARY = {name: name for name in (
    "abs", "acos", "acosh", "asin", "asinh", "atan", "atanh", "bitwise_not", "ceil", "conj", "cos", "cosh", "det", "digamma", "erf", "erfc", "erfinv", "exp",
    "exp2", "expm1", "floor", "hardsigmoid", "hardswish", "i0", "imag", "isfinite", "isinf", "isnan", "lgamma", "log", "log10", "log1p", "log2", "logical_not",
    "matrix_exp", "mish", "neg", "real", "reciprocal", "relu", "round", "rsqrt", "selu", "sigmoid", "sign", "signbit", "silu", "sin", "sinc", "sinh", "sqrt",
    "square", "tan", "tanh", "trunc", "view_as_complex", "view_as_real",
)} | {"airy_ai": "special_airy_ai", "bessel_j0": "special_bessel_j0", "bessel_j1": "special_bessel_j1", "bessel_y0": "special_bessel_y0",
      "bessel_y1": "special_bessel_y1", "entr": "special_entr", "erfcx": "special_erfcx", "i0e": "special_i0e", "i1": "special_i1", "i1e": "special_i1e",
      "log_ndtr": "special_log_ndtr", "ndtr": "special_ndtr", "ndtri": "special_ndtri"}  # fmt: skip
# Ops of two: by which overload where the second is a number, or the first.
BINARY = {
    "atan2": "", "copysign": "Scalar", "fmax": "", "fmin": "", "fmod": "Scalar", "gcd": "", "hypot": "", "igamma": "", "igammac": "", "lcm": "",
    "logaddexp": "", "logaddexp2": "", "logical_and": "", "logical_or": "", "logical_xor": "", "maximum": "", "minimum": "", "nextafter": "",
    "floor_divide": "", "remainder": "Scalar", "xlogy": "Scalar_Other", "eq": "Scalar", "ne": "Scalar", "lt": "Scalar", "le": "Scalar",
    "gt": "Scalar", "ge": "Scalar", "bitwise_and": "Scalar", "bitwise_or": "Scalar", "bitwise_xor": "Scalar", "bitwise_left_shift": "Tensor_Scalar",
    "bitwise_right_shift": "Tensor_Scalar",
}  # fmt: skip
_FIRST_IS_NUMBER = {"remainder": "Scalar_Tensor", "xlogy": "Scalar_Self", "bitwise_left_shift": "Scalar_Tensor", "bitwise_right_shift": "Scalar_Tensor",
                    "bitwise_and": "Scalar_Tensor", "bitwise_or": "Scalar_Tensor", "bitwise_xor": "Scalar_Tensor"}  # fmt: skip
_SWAPPED = {"eq": "eq", "ne": "ne", "lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}  # 1 < x is x > 1
_DEFAULT_IS_TENSORS = frozenset((
    "atan2", "fmax", "fmin", "gcd", "hypot", "igamma", "igammac", "lcm", "logaddexp", "logaddexp2", "logical_and", "logical_or", "logical_xor", "maximum",
    "minimum", "nextafter", "floor_divide",
))  # fmt: skip


def translation(f: Callable[..., Any]) -> Callable[..., Any]:
    """Note the translation of the op that the function is named after, with an underscore before it."""
    TRANSLATIONS[f.__name__.removeprefix("_")] = f
    return f


def _overload(name: str, overload: str = "default") -> Overload:
    return getattr(getattr(aten, name), overload)  # type: ignore[no-any-return]


def _binary(name: str) -> Callable[[Any, Any], Any]:
    tensors = "default" if name in _DEFAULT_IS_TENSORS else "Tensor"

    def call(a: Any, b: Any) -> Any:
        if isinstance(a, SCALARS) and name in _SWAPPED:
            return _overload(_SWAPPED[name], BINARY[name])(b, a)
        if isinstance(a, SCALARS):
            found = _FIRST_IS_NUMBER.get(name)
            return _overload(name, found)(a, b) if found else _overload(name, tensors)(_as_tensor(a, b), b)
        if isinstance(b, SCALARS):
            found = BINARY[name]
            return _overload(name, found)(a, b) if found else _overload(name, tensors)(a, _as_tensor(b, a))
        return _overload(name, tensors)(a, b)

    return call


def _as_tensor(number: Any, beside: Tensor) -> Tensor:
    """A number as a tensor of the type that both are computed in, for ops that PyTorch has for tensors alone."""
    kind = dtypes.result_type((beside._array, number))
    return new_tensor(from_host(np.asarray(number).astype(kind), beside.device))


TRANSLATIONS |= {op: _overload(name) for op, name in UNARY.items()}
TRANSLATIONS |= {name: _binary(name) for name in BINARY}


# -- arithmetic
@translation
def _add(a: Any, b: Any) -> Any:
    return aten.add.Tensor(a, b) if isinstance(a, Tensor) else aten.add.Tensor(b, a)


@translation
def _mul(a: Any, b: Any) -> Any:
    return aten.mul.Tensor(a, b) if isinstance(a, Tensor) else aten.mul.Tensor(b, a)


@translation
def _sub(a: Any, b: Any) -> Any:
    return aten.sub.Tensor(a, b) if isinstance(a, Tensor) else aten.rsub.Scalar(b, a)


@translation
def _div(a: Any, b: Any) -> Any:
    return aten.div.Tensor(a, b) if isinstance(a, Tensor) else aten.mul.Tensor(aten.reciprocal.default(b), a)


@translation
def _trunc_divide(a: Any, b: Any) -> Any:
    return aten.div.Tensor_mode(a, b, rounding_mode="trunc")


@translation
def _pow(a: Any, b: Any) -> Any:
    if not isinstance(a, Tensor):
        return aten.pow.Scalar(a, b)
    return aten.pow.Tensor_Tensor(a, b) if isinstance(b, Tensor) else aten.pow.Tensor_Scalar(a, b)


@translation
def _lerp(a: Any, b: Any, w: Any) -> Any:
    return aten.lerp.Tensor(a, b, w) if isinstance(w, Tensor) else aten.lerp.Scalar(a, b, w)


@translation
def _clamp(x: Any, low: Any = None, high: Any = None) -> Any:
    numbers = not isinstance(low, Tensor) and not isinstance(high, Tensor)
    return aten.clamp.default(x, low, high) if numbers else aten.clamp.Tensor(x, low, high)


@translation
def _where(condition: Any, a: Any, b: Any) -> Any:
    if isinstance(a, Tensor) or isinstance(b, Tensor):
        a, b = (a if isinstance(a, Tensor) else _as_tensor(a, b)), (b if isinstance(b, Tensor) else _as_tensor(b, a))
        return aten.where.self(condition, a, b)
    return aten.where.Scalar(condition, a, b)


@translation
def _nan_to_num(x: Any, *, nan: float = 0.0, posinf: float = 0.0, neginf: float = 0.0) -> Any:
    return aten.nan_to_num.default(x, nan, posinf, neginf)


# -- activations
@translation
def _gelu(x: Any, *, approximate: str = "none") -> Any:
    return aten.gelu.default(x, approximate=approximate) if approximate != "none" else aten.gelu.default(x)


@translation
def _elu(x: Any, *, alpha: float = 1.0) -> Any:
    return aten.elu.default(x, alpha)


@translation
def _leaky_relu(x: Any, *, negative_slope: float = 0.01) -> Any:
    return aten.leaky_relu.default(x, negative_slope)


@translation
def _hardtanh(x: Any, *, low: float = -1.0, high: float = 1.0) -> Any:
    return aten.hardtanh.default(x, low, high)


@translation
def _softplus(x: Any, *, beta: float = 1.0, threshold: float = 20.0) -> Any:
    return aten.softplus.default(x, beta, threshold)


@translation
def _threshold(x: Any, *, threshold: float = 0.0, value: float = 0.0) -> Any:
    return aten.threshold.default(x, threshold, value)


@translation
def _glu(x: Any, *, dim: int) -> Any:
    return aten.glu.default(x, dim)


@translation
def _softmax(x: Any, *, dim: int) -> Any:
    return aten._softmax.default(x, dim, False)


@translation
def _log_softmax(x: Any, *, dim: int) -> Any:
    return aten._log_softmax.default(x, dim, False)


# -- types and copies
@translation
def _cast(x: Any, *, dtype: Any) -> Any:
    return aten._to_copy.default(x, dtype=dtypes.of(dtype))


@translation
def _copy(x: Any, *, memory_format: Any = contiguous_format) -> Any:
    return aten.clone.default(x) if memory_format is preserve_format else aten.clone.default(x, memory_format=memory_format)


# -- reductions
def _reduce(name: str, with_dims: str) -> None:
    def call(x: Any, *, dim: tuple[int, ...], keepdim: bool = False) -> Any:
        if not dim and x.dim():  # of no dimension, which PyTorch's take for all
            return getattr(tritensor, name).default(x, dim=dim, keepdim=keepdim)
        if len(dim) == x.dim() and not keepdim:
            return _overload(name)(x)
        return _overload(name, with_dims)(x, list(dim), *([True] if keepdim else []))

    TRANSLATIONS[name] = call


for _name, _dims in (("sum", "dim_IntList"), ("mean", "dim"), ("amax", "default"), ("amin", "default"), ("any", "dims"), ("all", "dims")):
    _reduce(_name, _dims)


@translation
def _var(x: Any, *, dim: Any, correction: float = 1, keepdim: bool = False) -> Any:
    return aten.var.correction(x, list(dim), correction=correction, **({"keepdim": True} if keepdim else {}))


def _reduce_one(op: str, name: str, overload: str) -> None:
    def call(x: Any, *, dim: Any, keepdim: bool = False) -> Any:
        (d,) = dim if isinstance(dim, tuple) and len(dim) == 1 else (dim,)
        return _overload(name, overload)(x, d, *([True] if keepdim else []))

    TRANSLATIONS[op] = call


for _op, _name, _dims in (
    ("argmax", "argmax", "default"),
    ("argmin", "argmin", "default"),
    ("max_dim", "max", "dim"),
    ("min_dim", "min", "dim"),
):
    _reduce_one(_op, _name, _dims)


@translation
def _cumprod(x: Any, *, dim: int) -> Any:
    return aten.cumprod.default(x, dim)


@translation
def _cumsum(x: Any, *, dim: int, reverse: bool = False) -> Any:
    if not reverse:
        return aten.cumsum.default(x, dim)
    return aten.flip.default(aten.cumsum.default(aten.flip.default(x, [dim]), dim), [dim])


@translation
def _logcumsumexp(x: Any, *, dim: int) -> Any:
    return aten.logcumsumexp.default(x, dim)


# -- sorting
@translation
def _sort(x: Any, *, dim: int, descending: bool = False) -> Any:
    return aten.sort.default(x, dim, descending)


@translation
def _topk(x: Any, *, k: int, dim: int, largest: bool = True) -> Any:
    return aten.topk.default(x, k, dim, largest)


# -- products
@translation
def _matmul(a: Any, b: Any) -> Any:
    ranks = (a.dim(), b.dim())
    plain = {(1, 1): "dot", (2, 1): "mv", (2, 2): "mm"}.get(ranks)
    if plain is None and ranks == (3, 3) and a.shape[0] == b.shape[0]:
        plain = "bmm"
    return _overload(plain or "matmul")(a, b)


@translation
def _add_product(a: Any, b: Any, c: Any = None, *, beta: float = 1.0, alpha: float = 1.0) -> Any:
    if c is None:
        return _matmul(a, b) if alpha == 1 else aten.mul.Tensor(_matmul(a, b), alpha)
    scales = {name: value for name, value in (("beta", beta), ("alpha", alpha)) if value != 1}
    return _overload({2: "addmm", 3: "baddbmm"}[a.dim()])(c, a, b, **scales)


@translation
def _linear(x: Any, weight: Any, bias: Any = None) -> Any:
    if x.dim() == 1:
        y = aten.mv.default(weight, x)
        return y if bias is None else aten.add.Tensor(y, bias)
    rows = x if x.dim() == 2 else aten.view.default(x, [-1, x.shape[-1]])
    turned = aten.t.default(weight)
    y = aten.mm.default(rows, turned) if bias is None else aten.addmm.default(bias, rows, turned)
    return y if x.dim() == 2 else aten.view.default(y, [*x.shape[:-1], weight.shape[0]])


def _convolve(x: Any, weight: Any, bias: Any = None, *, stride: Any, padding: Any, dilation: Any, groups: int = 1) -> Any:
    by_dim = ([n] * (x.dim() - 2) if isinstance(n, int) else list(n) for n in (stride, padding, dilation))
    return aten.convolution.default(x, weight, bias, *by_dim, False, [0] * (x.dim() - 2), groups)


TRANSLATIONS |= dict.fromkeys(("conv1d", "conv2d", "conv3d"), _convolve)


@translation
def _attention(q: Any, k: Any, v: Any, mask: Any = None, *, scale: float, causal: bool = False) -> Any:
    return aten.scaled_dot_product_attention.default(q, k, v, mask, 0.0, causal, scale=scale)


# -- normalization and lookup
@translation
def _layer_norm(x: Any, weight: Any = None, bias: Any = None, *, eps: float = 1e-5, axes: int = 1) -> Any:
    return aten.native_layer_norm.default(x, list(x.shape[-axes:]), weight, bias, eps)[0]


@translation
def _group_norm(x: Any, weight: Any = None, bias: Any = None, *, groups: int, eps: float = 1e-5) -> Any:
    n, c, *rest = x.shape
    cells = 1
    for m in rest:
        cells *= m
    return aten.native_group_norm.default(x, weight, bias, n, c, cells, groups, eps)[0]


@translation
def _batch_norm_by(x: Any, mean: Any, var: Any, weight: Any = None, bias: Any = None, *, eps: float = 1e-5) -> Any:
    return aten.native_batch_norm.default(x, weight, bias, mean, var, False, 0.0, eps)[0]


@translation
def _embedding(weight: Any, index: Any, *, padding_idx: int | None = None) -> Any:
    return aten.embedding.default(weight, index, *([] if padding_idx is None else [padding_idx]))


# -- losses
def _loss(op: str, name: str, *more: str) -> None:
    def call(x: Any, target: Any, *, reduction: str = "mean", **attrs: Any) -> Any:
        return _overload(name)(x, target, _REDUCTIONS[reduction], *[attrs[m] for m in more if m in attrs])

    TRANSLATIONS[op] = call


for _op, _name, *_more in (("mse_loss", "mse_loss"), ("l1_loss", "l1_loss"), ("smooth_l1_loss", "smooth_l1_loss", "beta"),
                           ("huber_loss", "huber_loss", "delta"), ("soft_margin_loss", "soft_margin_loss")):  # fmt: skip
    _loss(_op, _name, *_more)


@translation
def _binary_cross_entropy(x: Any, target: Any, *, reduction: str = "mean") -> Any:
    return aten.binary_cross_entropy.default(x, target, None, _REDUCTIONS[reduction])


@translation
def _bce_with_logits(x: Any, target: Any, *, reduction: str = "mean") -> Any:
    return aten.binary_cross_entropy_with_logits.default(x, target, None, None, _REDUCTIONS[reduction])


@translation
def _nll_loss(x: Any, target: Any, weight: Any = None, *, reduction: str = "mean", ignore_index: int = -100) -> Any:
    return aten.nll_loss_forward.default(x, target, weight, _REDUCTIONS[reduction], ignore_index)[0]


@translation
def _cross_entropy(
    x: Any, target: Any, weight: Any = None, *, reduction: str = "mean", ignore_index: int = -100, label_smoothing: float = 0.0
) -> Any:
    if x.dim() == 2 and target.dim() == 1 and not label_smoothing:
        return _nll_loss(aten._log_softmax.default(x, 1, False), target, weight, reduction=reduction, ignore_index=ignore_index)
    return aten.cross_entropy_loss.default(x, target, weight, _REDUCTIONS[reduction], ignore_index, label_smoothing)
