"""Affine map with what follows it, activation(x @ weight^T + bias) * scale + residual, in one kernel."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tritensor.ground.errors import ShapeError
from tritensor.kernels.parts.allocation import allocate
from tritensor.kernels.parts.copying import to_c_order
from tritensor.kernels.parts.cpu.blocks import upcast
from tritensor.kernels.parts.formulas import named
from tritensor.kernels.parts.gemm import gemm
from tritensor.kernels.parts.half_precision.variants import half_variants
from tritensor.kernels.parts.pointwise_samples import normals
from tritensor.kernels.parts.products.epilogue import Epilogue
from tritensor.kernels.products import linear
from tritensor.ops.array import CudaArray
from tritensor.ops.table import Sample, Spec, Work, op, ops, refuse_mixed, registry

NAMES, NAMES_BY_RESULT = ("none", *named.BY_INPUT), tuple(named.BY_RESULT)


def _shape(
    x: Any, weight: Any, bias: Any = None, residual: Any = None, *, activation: str = "none", scale: float = 1.0, keep: bool = False
) -> tuple[Spec, Spec]:
    name = "linear_activation"
    named.refuse_unknown(name, activation, NAMES)
    y = registry["linear"].shape(x, weight, bias)
    refuse_mixed(name, ("x", x), ("weight", weight), ("bias", bias), ("residual", residual))
    if residual is not None and tuple(residual.shape) != y.shape:
        raise ShapeError(
            f"{name}: residual {tuple(residual.shape)} is not of the result's shape {y.shape}; expand it, or add it afterwards"
        )
    return y, Spec(y.shape if keep and activation != "none" else (0,), y.dtype)


def _forward(
    x: CudaArray, weight: CudaArray, bias: CudaArray | None = None, residual: CudaArray | None = None, *,
    activation: str = "none", scale: float = 1.0, keep: bool = False,
) -> tuple[CudaArray, CudaArray]:  # fmt: skip
    y = allocate((*x.shape[:-1], weight.shape[0]), x.dtype, x)
    inner = allocate(y.shape if keep and activation != "none" else (0,), x.dtype, x)
    _product(
        x, weight, bias, y, activation, Epilogue(None, scale, None if residual is None else to_c_order(residual), inner if inner.size else None),
    )  # fmt: skip
    return y, inner


def _product(x: CudaArray, weight: CudaArray, bias: CudaArray | None, y: CudaArray, activation: str, finish: Epilogue) -> None:
    if activation != "none":
        finish = finish._replace(activation=half_variants((named.ALL[activation].formula,), (y.dtype,), x.itemsize == 8)[0])
    gemm(linear.rows_of(x), weight.transpose((1, 0)), linear.rows_of(y), bias, finish=finish)


def _rule(g: Any, x: Any, weight: Any, bias: Any, residual: Any, activation: str, scale: float, needs: tuple[bool, ...]) -> tuple[Any, ...]:
    down = g if scale == 1 else ops.mul(g, scale)
    if activation != "none" and any(needs[:3]):
        down = named.ON_TENSORS[activation](down, ops.linear(x, weight, bias))
    return (*linear.rules(down, x, weight, needs[:3]), *_residual_gradient(g, needs))


def _residual_gradient(g: Any, needs: tuple[bool, ...]) -> tuple[Any, ...]:
    """g itself, where a residual was given."""
    return tuple([g if need else None for need in needs[3:]])


def _backward(
    g: CudaArray, x: CudaArray, weight: CudaArray, bias: CudaArray | None, inner: CudaArray, activation: str, scale: float,
    needs: tuple[bool, ...],
) -> tuple[Any, ...]:  # fmt: skip
    """The activation's gradient, then the two launches of linear's; z is computed again where it was not kept."""
    if not any(needs[:3]):
        return None, None, None, g
    down = g if scale == 1 else registry["mul"].forward(g, scale)  # type: ignore[misc]
    if activation != "none":
        down = named.BACKWARD[activation](down, inner if inner.shape == g.shape else linear.forward(x, weight, bias))
    return (*linear.backward(down, x, weight, needs[:3]), *_residual_gradient(g, needs))


def _reference(
    x: np.ndarray, weight: np.ndarray, bias: np.ndarray | None = None, residual: np.ndarray | None = None, *,
    activation: str = "none", scale: float = 1.0, keep: bool = False,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """y = activation(x @ weight^T + bias) * scale + residual, rounded once: x (..., in), weight (out, in), bias (out,), residual (..., out).

    activation: "none", "relu", "gelu", "gelu_tanh" or "silu". `keep`: what the activation is of is kept for its gradient, which else
    computes it again.
    """
    z = linear.reference(x, weight, bias)
    y = named.reference(activation, z) * scale
    return (y if residual is None else y + residual), z if keep and activation != "none" else np.zeros(0)


def _cpu(
    x: np.ndarray, weight: np.ndarray, bias: np.ndarray | None = None, residual: np.ndarray | None = None, *,
    activation: str = "none", scale: float = 1.0, keep: bool = False,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    z = linear.cpu(upcast(x), upcast(weight), upcast(bias))
    inner = z.astype(x.dtype) if keep and activation != "none" else np.empty(0, x.dtype)
    y: Any = z if activation == "none" else named.of_numpy(activation, z)
    if scale != 1:
        y = y * y.dtype.type(scale)
    return (y if residual is None else y + upcast(residual)).astype(x.dtype, copy=False), inner


def _cpu_backward(
    g: np.ndarray, x: np.ndarray, weight: np.ndarray, bias: np.ndarray | None, inner: np.ndarray, activation: str, scale: float,
    needs: tuple[bool, ...],
) -> tuple[Any, ...]:  # fmt: skip
    down = g if scale == 1 else (upcast(g) * scale).astype(g.dtype)
    if activation != "none" and any(needs[:3]):
        down = named.ON_NUMPY[activation](down, inner if inner.shape == g.shape else linear.cpu(x, weight, bias))
    return (*linear.cpu_backward(down, x, weight, needs[:3]), *_residual_gradient(g, needs))


def _samples(rng: np.random.Generator) -> list[Sample]:
    """Every activation, with each input that may be missing; leading dimensions, a split sum, ragged 16-bit tiles by descriptors, nothing at all."""
    x = normals(rng)

    def sample(*given: Any, activation: str = "none", scale: float = 1.0, keep: bool = True, smooth: bool = True) -> Sample:
        return Sample(*given, *[None] * (4 - len(given)), activation=activation, scale=scale, keep=keep, smooth=smooth)

    apart = np.where(rng.random((3, 1)) > 0.5, 1.0, -1.0)  # of relu: no z near its bend
    return [
        sample(x(3, 4), x(5, 4), x(5), x(3, 5), scale=0.5),
        sample(apart * (1 + rng.random((3, 2))), 1 + rng.random((5, 2)), None, x(3, 5), activation="relu"),
        sample(x(3, 4), x(5, 4), x(5), activation="gelu"),
        sample(x(2, 3, 4), x(5, 4), x(5), x(2, 3, 5), activation="gelu_tanh", scale=2.0, keep=False),
        sample(x(4), x(5, 4), activation="silu"),
        sample(rng.random((2, 900)), rng.random((3, 900)), x(3), x(2, 3)),  # a split sum
        sample(x(72, 40), x(136, 40), x(136), x(72, 136), activation="gelu", smooth=False),
        sample(x(3, 0), x(2, 0), x(2), activation="silu", keep=False),
        sample(x(0, 3), x(2, 3), x(2), activation="gelu"),
    ]


def _sizes(rng: np.random.Generator) -> list[Sample]:
    x = normals(rng)
    return [
        Sample(x(8192, 768), x(3072, 768), x(3072), None, activation="gelu_tanh", scale=1.0, keep=False),
        Sample(x(8192, 3072), x(768, 3072), x(768), x(8192, 768), activation="none", scale=1.0, keep=False),
    ]


def _work(
    x: Any, weight: Any, bias: Any = None, residual: Any = None, *, activation: str = "none", scale: float = 1.0, keep: bool = False
) -> Work:
    """linear's, an operation an element for each of activation, scale and residual; the residual and what is kept move once."""
    product = linear.work(x, weight, bias)
    size = math.prod(x.shape[:-1]) * weight.shape[0]
    kept = keep and activation != "none"
    more = size * ((activation != "none") + (scale != 1) + (residual is not None))
    return Work(product.flops + more, product.bytes + size * x.dtype.itemsize * (kept + (residual is not None)))


op(
    "linear_activation", _reference, cpu=_cpu, shape=_shape, forward=_forward, rule=_rule, backward=_backward, cpu_backward=_cpu_backward,
    outputs=("y", "inner"), residuals=("inner",), samples=_samples, sizes=_sizes, work=_work, condition=("measured", "measured", "stored"),
    borrows=("bias", "residual"), autocast="lower",
)  # fmt: skip


# ---------------------------------------------------------------- activations whose gradient needs their result alone: nothing else is kept


def _result_shape(x: Any, weight: Any, bias: Any = None, *, activation: str = "relu") -> Spec:
    named.refuse_unknown("linear_activation_by_result", activation, NAMES_BY_RESULT)
    found: Spec = registry["linear"].shape(x, weight, bias)
    return found


def _result_forward(x: CudaArray, weight: CudaArray, bias: CudaArray | None = None, *, activation: str = "relu") -> CudaArray:
    y = allocate((*x.shape[:-1], weight.shape[0]), x.dtype, x)
    _product(x, weight, bias, y, activation, Epilogue())
    return y


def _result_rule(g: Any, x: Any, weight: Any, y: Any, activation: str, needs: tuple[bool, ...]) -> tuple[Any, ...]:
    return linear.rules(named.ON_TENSORS[activation](g, y), x, weight, needs)


def _result_backward(
    g: CudaArray, x: CudaArray, weight: CudaArray, y: CudaArray, activation: str, needs: tuple[bool, ...]
) -> tuple[Any, ...]:
    """The activation's gradient, then the two launches of linear's."""
    return linear.backward(named.BACKWARD[activation](g, y), x, weight, needs)


def _result_reference(x: np.ndarray, weight: np.ndarray, bias: np.ndarray | None = None, *, activation: str = "relu") -> np.ndarray:
    """y = activation(x @ weight^T + bias), rounded once: x (..., in), weight (out, in), bias (out,); activation: "relu", "sigmoid" or "tanh"."""
    return named.reference(activation, linear.reference(x, weight, bias))


def _result_cpu(x: np.ndarray, weight: np.ndarray, bias: np.ndarray | None = None, *, activation: str = "relu") -> np.ndarray:
    return _cpu(x, weight, bias, activation=activation)[0]


def _result_cpu_backward(
    g: np.ndarray, x: np.ndarray, weight: np.ndarray, y: np.ndarray, activation: str, needs: tuple[bool, ...]
) -> tuple[Any, ...]:
    return linear.cpu_backward(named.ON_NUMPY[activation](g, y), x, weight, needs)


def _result_samples(rng: np.random.Generator) -> list[Sample]:
    x = normals(rng)
    apart = np.where(rng.random((2, 3, 1)) > 0.5, 1.0, -1.0)
    return [
        Sample(apart * (1 + rng.random((2, 3, 2))), 1 + rng.random((5, 2)), None, activation="relu"),
        Sample(x(3, 4), x(5, 4), x(5), activation="sigmoid"),
        Sample(x(4), x(5, 4), x(5), activation="tanh"),
        Sample(x(72, 40), x(136, 40), x(136), activation="relu", smooth=False),
        Sample(x(3, 0), x(2, 0), x(2), activation="tanh"),
    ]


def _result_sizes(rng: np.random.Generator) -> list[Sample]:
    return [Sample(rng.standard_normal((8192, 1024)), rng.standard_normal((4096, 1024)), rng.standard_normal(4096), activation="relu")]


def _result_work(x: Any, weight: Any, bias: Any = None, *, activation: str = "relu") -> Work:
    """linear's, and an operation an element."""
    return _work(x, weight, bias, activation=activation)


op(
    "linear_activation_by_result", _result_reference,
    cpu=_result_cpu, shape=_result_shape, forward=_result_forward, rule=_result_rule,
    backward=_result_backward, cpu_backward=_result_cpu_backward, samples=_result_samples, sizes=_result_sizes, work=_result_work,
    outputs=("y",), condition=("measured", "measured", "stored"), autocast="lower",
)  # fmt: skip
