"""Batch normalisation with what follows it: act(batch_norm(x) + residual), by the batch's mean and variance or by given ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from tritensor.ground import dtypes
from tritensor.ground.errors import ShapeError
from tritensor.kernels.normalization import batch_norm as plain
from tritensor.kernels.normalization import channels_cpu
from tritensor.kernels.normalization.activated import formulas
from tritensor.kernels.normalization.affine import allocate_image, refuse_images
from tritensor.kernels.parts.allocation import allocate
from tritensor.kernels.parts.cpu.blocks import upcast
from tritensor.kernels.parts.filling import filled
from tritensor.kernels.parts.formulas import named
from tritensor.kernels.parts.reduction import fold, spread
from tritensor.ops.array import CudaArray
from tritensor.ops.table import Sample, Spec, Work, op, ops, refuse_mixed

Arrays = tuple[Any, ...]


def _checked(name: str, x: Any, residual: Any, activation: Any, **vectors: Any) -> None:
    refuse_images(name, x, **vectors)
    named.refuse_unknown(name, activation, formulas.NAMES)
    refuse_mixed(name, ("x", x), ("residual", residual))
    if residual is not None and tuple(residual.shape) != tuple(x.shape):
        raise ShapeError(f"{name}: residual {tuple(residual.shape)} is not of x's shape {tuple(x.shape)}; expand it, or add it afterwards")


def _given(*arrays: Any) -> Arrays:
    """Those that are there."""
    return tuple([a for a in arrays if a is not None])


# ---------------------------------------------------------------- by the batch's mean and variance


def _shape(x: Any, weight: Any, bias: Any, residual: Any = None, *, activation: str = "relu", eps: float = 1e-5) -> tuple[Spec, Spec, Spec]:
    _checked("batch_norm_activation", x, residual, activation, weight=weight, bias=bias)
    kept = Spec((x.shape[1],), dtypes.accumulator(x.dtype))
    return Spec(x.shape, x.dtype), kept, kept


def _applied(
    x: CudaArray, mean: CudaArray, var: CudaArray, weight: CudaArray, bias: CudaArray, residual: CudaArray | None, activation: str, eps: float
) -> CudaArray:  # fmt: skip
    y = allocate_image(x)
    formula = formulas.of(activation, x.dtype, residual is not None).forward
    vectors = [plain.along(v, x.shape) for v in (mean, var, weight, bias)]
    spread(formula, (*_given(x, residual), *vectors), plain.others(x.shape), (y,), (np.float64(eps),))
    return y


def _forward(
    x: CudaArray, weight: CudaArray, bias: CudaArray, residual: CudaArray | None = None, *, activation: str = "relu", eps: float = 1e-5
) -> Arrays:
    mean, var = plain.mean_and_variance(x)
    return _applied(x, mean, var, weight, bias, residual, activation, eps), mean, var


def _sums(made: formulas.Formulas, arrays: Arrays, vectors: list[CudaArray], mean: CudaArray, x: CudaArray, eps: float) -> Arrays:
    """The sums of u, what passes the activation, and of u (x - mean) of each channel."""
    kept = dtypes.accumulator(x.dtype)
    sums = allocate(mean.shape, kept, x), allocate(mean.shape, kept, x)
    fold(made.products, (*arrays, *vectors), plain.others(x.shape), sums, (kept, kept), numbers=(np.float64(eps),))
    return sums


def _backward(
    g: Arrays, x: CudaArray, weight: CudaArray, bias: CudaArray, residual: CudaArray | None, mean: CudaArray, var: CudaArray, activation: str,
    eps: float, needs: tuple[bool, ...],
) -> Arrays:  # fmt: skip
    """Two passes: the sums of each channel, then dx with the residual's gradient. Both take the activation's slope from x (and the residual)."""
    up, dm, dv = g
    # the loss uses the statistics alone: zeros, so that one kernel serves all cases
    if up is None:
        up = filled(x.shape, x.dtype, x.device, 0.0)
    made = formulas.of(activation, x.dtype, residual is not None)
    arrays, vectors = _given(x, residual, up), [plain.along(v, x.shape) for v in (mean, var, weight, bias)]
    sums = _sums(made, arrays, vectors, mean, x, eps)
    through = None if residual is None else allocate_image(x)

    def write(out: CudaArray) -> None:
        sides = [plain.along(v, x.shape) for v in sums]
        numbers = np.float64(plain.count(x.shape)), np.float64(eps)
        spread(made.backward, (*arrays, *vectors, *sides), plain.others(x.shape), _given(out, through), numbers)

    dx = plain.add_moment_gradients(x, mean, dm, dv, write) if needs[0] or needs[3] else None
    dw, db = plain.vector_gradients(sums, var, weight, bias, eps, needs[1:3])  # type: ignore[arg-type]
    return tuple([d if need else None for d, need in zip((dx, dw, db, through), needs, strict=True)])


def _reference(
    x: np.ndarray, weight: np.ndarray, bias: np.ndarray, residual: np.ndarray | None = None, *, activation: str = "relu", eps: float = 1e-5
) -> Arrays:
    """y = activation(batch_norm(x) + residual), rounded once, with the mean and the variance (of n) of each channel; also those two.

    x and residual (batch, channels, ...) of one type, weight and bias (channels,); activation: "relu", "gelu", "gelu_tanh" or "silu".
    """
    z, mean, var = plain.reference(x, weight, bias, eps=eps)
    return named.reference(activation, z if residual is None else z + residual), mean, var


def _cpu(
    x: np.ndarray, weight: np.ndarray, bias: np.ndarray, residual: np.ndarray | None = None, *, activation: str = "relu", eps: float = 1e-5
) -> Arrays:
    z, mean, var = channels_cpu.forward(upcast(x), weight, bias, eps=eps)
    return named.of_numpy(activation, _summed(z, residual)).astype(x.dtype, copy=False), mean, var


def _summed(z: np.ndarray, residual: np.ndarray | None) -> np.ndarray:
    return z if residual is None else z + upcast(residual)


def _passed(up: np.ndarray, z: np.ndarray, residual: np.ndarray | None, activation: str) -> np.ndarray:
    """The gradient of z + residual."""
    return named.ON_NUMPY[activation](upcast(up), _summed(z, residual))  # type: ignore[no-any-return]


def _cpu_backward(
    g: Arrays, x: np.ndarray, weight: np.ndarray, bias: np.ndarray, residual: np.ndarray | None, mean: np.ndarray, var: np.ndarray,
    activation: str, eps: float, needs: tuple[bool, ...],
) -> Arrays:  # fmt: skip
    up, dm, dv = g
    wide = upcast(x)
    # z is computed again: to keep it would take as much memory as x
    u = None if up is None else _passed(up, channels_cpu.given_forward(wide, mean, var, weight, bias, eps=eps), residual, activation)
    dx, dw, db = channels_cpu.backward((u, dm, dv), wide, weight, bias, mean, var, eps, needs[:3])
    through = np.zeros_like(x) if u is None else u.astype(x.dtype, copy=False)
    found = (None if dx is None else dx.astype(x.dtype, copy=False), dw, db, through)
    return tuple([d if need else None for d, need in zip(found, needs, strict=True)])


def _rule(g: Arrays, x: Any, weight: Any, bias: Any, residual: Any, activation: str, eps: float, needs: tuple[bool, ...]) -> Arrays:
    """From the inputs alone, in our own ops, so that it can be differentiated again."""
    up, dm, dv = g
    given, u = x._array.dtype, None
    if up is not None:
        kept = dtypes.accumulator(given)
        z = ops.batch_norm(ops.cast(x, dtype=kept), weight, bias, eps=eps)[0]
        z = z if residual is None else ops.add(z, ops.cast(residual, dtype=kept))
        u = named.ON_TENSORS[activation](ops.cast(up, dtype=kept), z)
    dx, dw, db = plain._rule((u, dm, dv), x, weight, bias, eps, needs[:3])
    through = ops.mul(x, 0.0) if u is None else ops.cast(u, dtype=given)
    return tuple([d if need else None for d, need in zip((dx, dw, db, through), needs, strict=True)])


def _gradient_scales(g: Arrays, inputs: Arrays, attrs: dict[str, Any]) -> Arrays:
    """The normalisation's own, of what passes the activation: its slope is at most 1.2, and moves by less than the roundings of z."""
    x, weight, bias, residual = inputs
    beside = (-1, *(1,) * (x.ndim - 2))
    h = (np.abs(x) + np.abs(x.mean(plain.others(x.shape), keepdims=True))) / np.sqrt(
        x.var(plain.others(x.shape), keepdims=True) + attrs["eps"]
    )
    z = h * np.abs(weight).reshape(beside) + np.abs(bias).reshape(beside) + (0 if residual is None else np.abs(residual))
    up = None if g[0] is None else np.abs(g[0]) * (1.2 + z)
    found = plain._gradient_scales((up, *g[1:]), (x, weight), {"eps": attrs["eps"]})
    return *found, np.zeros_like(x) if up is None else up


_SHAPES = ((4, 3, 5), (6, 2), (2, 3, 4, 2), (2, 2, 2, 3, 2), (3, 2, 4))


def _samples(rng: np.random.Generator) -> list[Sample]:
    """Every activation, 2 to 5 dims, with a residual and without."""
    found = []
    for i, (shape, activation) in enumerate(zip(_SHAPES, ("relu", "silu", "gelu", "gelu_tanh", "relu"), strict=True)):
        x, c = rng.normal(size=shape) + 0.5, shape[1]
        residual = rng.normal(size=shape) if i % 2 == 0 else None
        found.append(Sample(x, 1 + 0.3 * rng.normal(size=c), rng.normal(size=c), residual, activation=activation, eps=1e-5 if i else 1e-3))
    return found


def _sizes(rng: np.random.Generator) -> list[Sample]:
    draw = rng.standard_normal
    found = []
    for shape, added in (((128, 64, 32, 32), False), ((64, 512, 7, 7), True)):
        c = shape[1]
        found.append(Sample(draw(shape), draw(c), draw(c), draw(shape) if added else None, activation="relu", eps=1e-5))
    return found


def _work(x: Any, weight: Any, bias: Any, residual: Any = None, **attrs: Any) -> Work:
    """The normalisation's, an operation an element for each of activation and residual; x is read twice, a residual once."""
    more = residual is not None
    return Work((9 + more) * x.size, (3 + more) * x.size * x.dtype.itemsize)


op(
    "batch_norm_activation", _reference, cpu=_cpu, shape=_shape, forward=_forward, rule=_rule, backward=_backward, cpu_backward=_cpu_backward,
    outputs=("y", "mean", "var"), layout="images", samples=_samples, sizes=_sizes, work=_work, condition=("measured", _gradient_scales),
    borrows=("bias", "residual"),
)  # fmt: skip


# ---------------------------------------------------------------- by given ones


def _by_shape(
    x: Any, mean: Any, var: Any, weight: Any, bias: Any, residual: Any = None, *, activation: str = "relu", eps: float = 1e-5
) -> Spec:
    _checked("batch_norm_by_activation", x, residual, activation, mean=mean, var=var, weight=weight, bias=bias)
    return Spec(x.shape, x.dtype)


def _by_backward(
    g: CudaArray, x: CudaArray, mean: CudaArray, var: CudaArray, weight: CudaArray, bias: CudaArray, residual: CudaArray | None,
    activation: str, eps: float, needs: tuple[bool, ...],
) -> Arrays:  # fmt: skip
    """The sums of each channel where a vector asks for them; dx with the residual's gradient."""
    made = formulas.of(activation, x.dtype, residual is not None)
    arrays, vectors = _given(x, residual, g), [plain.along(v, x.shape) for v in (mean, var, weight, bias)]
    dx = through = None
    if needs[0] or needs[5]:
        dx, through = allocate_image(x), None if residual is None else allocate_image(x)
        spread(made.backward_given, (*arrays, *vectors), plain.others(x.shape), _given(dx, through), (np.float64(eps),))
    found: Arrays = (None,) * 4
    if any(needs[1:5]):
        found = plain.given_gradients(_sums(made, arrays, vectors, mean, x, eps), mean, var, weight, bias, eps, needs[1:5])
    return dx if needs[0] else None, *found, through if needs[5] else None


def _by_reference(
    x: np.ndarray, mean: np.ndarray, var: np.ndarray, weight: np.ndarray, bias: np.ndarray, residual: np.ndarray | None = None, *,
    activation: str = "relu", eps: float = 1e-5,
) -> np.ndarray:  # fmt: skip
    """activation((x - mean) / sqrt(var + eps) * weight + bias + residual), rounded once, one mean and variance given for each channel.

    x and residual (batch, channels, ...) of one type, the others (channels,); activation: "relu", "gelu", "gelu_tanh" or "silu".
    """
    z = plain.given_reference(x, mean, var, weight, bias, eps=eps)
    return named.reference(activation, z if residual is None else z + residual)


def _by_cpu(
    x: np.ndarray, mean: np.ndarray, var: np.ndarray, weight: np.ndarray, bias: np.ndarray, residual: np.ndarray | None = None, *,
    activation: str = "relu", eps: float = 1e-5,
) -> np.ndarray:  # fmt: skip
    z = channels_cpu.given_forward(upcast(x), mean, var, weight, bias, eps=eps)
    return named.of_numpy(activation, _summed(z, residual)).astype(x.dtype, copy=False)  # type: ignore[no-any-return]


def _by_cpu_backward(
    g: np.ndarray, x: np.ndarray, mean: np.ndarray, var: np.ndarray, weight: np.ndarray, bias: np.ndarray, residual: np.ndarray | None,
    activation: str, eps: float, needs: tuple[bool, ...],
) -> Arrays:  # fmt: skip
    wide = upcast(x)
    u = _passed(g, channels_cpu.given_forward(wide, mean, var, weight, bias, eps=eps), residual, activation)
    dx, *vectors = channels_cpu.given_backward(u, wide, mean, var, weight, bias, eps, needs[:5])
    through = u.astype(x.dtype, copy=False) if needs[5] else None
    return None if dx is None else dx.astype(x.dtype, copy=False), *vectors, through


def _by_rule(
    g: Any, x: Any, mean: Any, var: Any, weight: Any, bias: Any, residual: Any, activation: str, eps: float, needs: tuple[bool, ...]
) -> Arrays:
    given = x._array.dtype
    kept = dtypes.accumulator(given)
    z = ops.batch_norm_by(ops.cast(x, dtype=kept), mean, var, weight, bias, eps=eps)
    z = z if residual is None else ops.add(z, ops.cast(residual, dtype=kept))
    u = ops.cast(named.ON_TENSORS[activation](ops.cast(g, dtype=kept), z), dtype=given)
    return (*plain._given_rule(u, x, mean, var, weight, bias, eps, needs[:5]), u if needs[5] else None)


def _by_scales(g: np.ndarray, inputs: Arrays, attrs: dict[str, Any]) -> Arrays:
    x, mean, var, weight, bias, residual = inputs
    beside = (-1, *(1,) * (x.ndim - 2))
    h = (np.abs(x) + np.abs(mean).reshape(beside)) / np.sqrt(var + attrs["eps"]).reshape(beside)
    z = h * np.abs(weight).reshape(beside) + np.abs(bias).reshape(beside) + (0 if residual is None else np.abs(residual))
    up = np.abs(g) * (1.2 + z)
    return *plain._given_scales(up, (x, mean, var, weight, bias), {"eps": attrs["eps"]}), up


def _by_samples(rng: np.random.Generator) -> list[Sample]:
    found = []
    for i, (shape, activation) in enumerate(zip(_SHAPES, ("silu", "relu", "gelu_tanh", "relu", "gelu"), strict=True)):
        c = shape[1]
        vectors = rng.normal(size=c), 0.5 + rng.random(c), 1 + 0.3 * rng.normal(size=c), rng.normal(size=c)
        residual = rng.normal(size=shape) if i % 2 == 0 else None
        found.append(Sample(rng.normal(size=shape), *vectors, residual, activation=activation, eps=1e-5 if i else 1e-3))
    return found


def _by_sizes(rng: np.random.Generator) -> list[Sample]:
    draw, c = rng.standard_normal, 64
    return [
        Sample(draw((128, c, 32, 32)), draw(c), 0.5 + rng.random(c), draw(c), draw(c), draw((128, c, 32, 32)), activation="relu", eps=1e-5)
    ]


def _by_work(x: Any, mean: Any, var: Any, weight: Any, bias: Any, residual: Any = None, **attrs: Any) -> Work:
    """x and a residual are read once."""
    more = residual is not None
    return Work((3 + more) * x.size, (2 + more) * x.size * x.dtype.itemsize)


op(
    "batch_norm_by_activation", _by_reference, cpu=_by_cpu, shape=_by_shape, rule=_by_rule, backward=_by_backward,
    cpu_backward=_by_cpu_backward, layout="images", samples=_by_samples, sizes=_by_sizes, work=_by_work,
    borrows=("bias", "residual"), condition=("measured", _by_scales),
    forward=lambda x, mean, var, weight, bias, residual=None, *, activation='relu', eps=1e-5: _applied(x, mean, var, weight, bias, residual, activation, eps),
)  # fmt: skip
