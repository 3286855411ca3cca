"""Group normalisation with an activation behind it: act(group_norm(x)), as diffusion's nets have it before each convolution."""

from __future__ import annotations

from typing import Any

import numpy as np

from tritensor.ground import dtypes
from tritensor.kernels.normalization import group_norm as plain
from tritensor.kernels.normalization import groups_cpu
from tritensor.kernels.normalization.activated import formulas
from tritensor.kernels.parts.cpu.blocks import upcast
from tritensor.kernels.parts.formulas import named
from tritensor.ops.array import CudaArray
from tritensor.ops.table import Sample, Spec, Work, op, ops

Arrays = tuple[Any, ...]


def _shape(x: Any, weight: Any, bias: Any, *, groups: int, activation: str = "silu", eps: float = 1e-5) -> tuple[Spec, Spec, Spec]:
    named.refuse_unknown("group_norm_activation", activation, formulas.NAMES)
    return plain.specs("group_norm_activation", x, weight, bias, groups)


def _forward(x: CudaArray, weight: CudaArray, bias: CudaArray, *, groups: int, activation: str = "silu", eps: float = 1e-5) -> Arrays:
    return plain.normalised(x, weight, bias, groups, eps, formulas.of(activation, x.dtype, within=True).forward)


def _backward(
    g: CudaArray, x: CudaArray, weight: CudaArray, bias: CudaArray, mean: CudaArray, var: CudaArray, groups: int, activation: str, eps: float,
    needs: tuple[bool, ...],
) -> Arrays:  # fmt: skip
    return plain.gradients(g, x, weight, bias, mean, var, groups, eps, needs, formulas.of(activation, x.dtype, within=True))


def _reference(x: np.ndarray, weight: np.ndarray, bias: np.ndarray, *, groups: int, activation: str = "silu", eps: float = 1e-5) -> Arrays:
    """y = activation(group_norm(x)), rounded once, mean and variance (of n) those of each instance's groups of channels; also those two.

    x (batch, channels, ...), weight and bias (channels,); activation: "relu", "gelu", "gelu_tanh" or "silu".
    """
    z, mean, var = plain.reference(x, weight, bias, groups=groups, eps=eps)
    return named.reference(activation, z), mean, var


def _cpu(x: np.ndarray, weight: np.ndarray, bias: np.ndarray, *, groups: int, activation: str = "silu", eps: float = 1e-5) -> Arrays:
    z, mean, var = groups_cpu.forward(upcast(x), weight, bias, groups=groups, eps=eps)
    return named.of_numpy(activation, z).astype(x.dtype, copy=False), mean, var


def _cpu_backward(
    g: np.ndarray, x: np.ndarray, weight: np.ndarray, bias: np.ndarray, mean: np.ndarray, var: np.ndarray, groups: int, activation: str,
    eps: float, needs: tuple[bool, ...],
) -> Arrays:  # fmt: skip
    wide = upcast(x)
    u = named.ON_NUMPY[activation](upcast(g), groups_cpu.forward(wide, weight, bias, groups=groups, eps=eps)[0])
    dx, dw, db = groups_cpu.backward(u, wide, weight, bias, mean, var, groups, eps, needs)
    return None if dx is None else dx.astype(x.dtype, copy=False), dw, db


def _rule(g: Any, x: Any, weight: Any, bias: Any, groups: int, activation: str, eps: float, needs: tuple[bool, ...]) -> Arrays:
    """From the inputs alone, in our own ops, so that it can be differentiated again."""
    kept = dtypes.accumulator(x._array.dtype)
    z = ops.group_norm(ops.cast(x, dtype=kept), weight, bias, groups=groups, eps=eps)
    return plain._rule(named.ON_TENSORS[activation](ops.cast(g, dtype=kept), z), x, weight, bias, groups, eps, needs)


def _gradient_scales(g: np.ndarray, inputs: Arrays, attrs: dict[str, Any]) -> Arrays:
    """The normalisation's own, of what passes the activation: its slope is at most 1.2, and moves by less than the roundings of z."""
    x, weight, bias = inputs
    shape = plain._split(x.shape, attrs["groups"])
    v, beside = x.reshape(shape), (-1, *(1,) * (x.ndim - 2))
    h = (np.abs(v) + np.abs(v.mean((2, 3), keepdims=True))) / np.sqrt(v.var((2, 3), keepdims=True) + attrs["eps"])
    z = h.reshape(x.shape) * np.abs(weight).reshape(beside) + np.abs(bias).reshape(beside)
    return plain._gradient_scales(np.abs(g) * (1.2 + z), (x, weight), {"eps": attrs["eps"], "groups": attrs["groups"]})


def _samples(rng: np.random.Generator) -> list[Sample]:
    """Every activation, 2 to 5 dims, one group, as many as channels."""
    found = []
    cases = (((4, 6, 5), 2, "silu"), ((3, 4), 2, "relu"), ((2, 4, 3, 2), 4, "gelu"), ((2, 2, 2, 3, 2), 1, "gelu_tanh"))
    for i, (shape, groups, activation) in enumerate(cases):
        weight, bias = 1 + 0.3 * rng.normal(size=shape[1]), rng.normal(size=shape[1])
        found.append(Sample(rng.normal(size=shape) + 0.5, weight, bias, groups=groups, activation=activation, eps=1e-5 if i else 1e-3))
    return found


def _sizes(rng: np.random.Generator) -> list[Sample]:
    draw = rng.standard_normal
    return [Sample(draw(s), draw(s[1]), draw(s[1]), groups=32, activation="silu", eps=1e-5) for s in ((32, 128, 64, 64), (64, 512, 8, 8))]


op(
    "group_norm_activation", _reference, cpu=_cpu, shape=_shape, forward=_forward, rule=_rule, backward=_backward, cpu_backward=_cpu_backward,
    outputs=("y", "mean", "var"), residuals=("mean", "var"), layout="images", samples=_samples, sizes=_sizes,
    borrows=("bias",), condition=("measured", _gradient_scales),
    # the normalisation's, and an operation an element.
    work=lambda x, weight, bias, **attrs: Work(9 * x.size, 3 * x.size * x.dtype.itemsize),
)  # fmt: skip
