"""Convolution and the ReLU behind it in one kernel, over one axis, two and three."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tritensor.kernels.convolution import convolution, gpu, samples
from tritensor.kernels.convolution.geometry import Sizes, geometry
from tritensor.kernels.parts import backends
from tritensor.kernels.parts.elementwise import backward_of
from tritensor.kernels.parts.formula_llvm import numpy_gradient
from tritensor.kernels.parts.formulas.activations import relu, relu_grad
from tritensor.ops.array import CudaArray
from tritensor.ops.table import Sample, op, registry

_on_tensors = backends.translate(relu_grad, backends.on_tensors)
_on_gpu = backward_of((relu_grad,))[0]
_on_numpy = numpy_gradient(relu_grad, False)
FEW = 3  # of the convolution's samples, which reach its own paths: an image without features, strides, dilations


def _reference(
    x: np.ndarray, weight: np.ndarray, bias: np.ndarray | None = None, *, stride: Sizes, padding: Sizes, dilation: Sizes, groups: int = 1
) -> np.ndarray:
    """max(0, conv(x, weight) + bias), rounded once: x (N, C, *size), weight (O, C / groups, *kernel), bias (O,)."""
    return np.maximum(convolution.reference(x, weight, bias, stride=stride, padding=padding, dilation=dilation, groups=groups), 0)


def _cpu(x: np.ndarray, weight: np.ndarray, bias: np.ndarray | None = None, **sizes: Any) -> np.ndarray:
    return np.asarray(registry["relu"].cpu(convolution.cpu_forward(x, weight, bias, **sizes)))


def _forward(x: CudaArray, weight: CudaArray, bias: CudaArray | None = None, **how: Any) -> CudaArray:
    return gpu.kernel_choice.correlate(x, weight, bias, geometry(x.shape, weight.shape, **how), False, relu)


def _rule(
    g: Any, x: Any, weight: Any, y: Any, stride: Sizes, padding: Sizes, dilation: Sizes, groups: int, needs: tuple[bool, ...]
) -> tuple[Any, ...]:
    down, how = _on_tensors(g, y), {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    dx = convolution.rule_x(down, weight, x._array.shape, **how) if needs[0] else None
    dw = convolution.rule_weight(down, x, weight._array.shape, **how) if needs[1] else None
    return (dx, dw, convolution.rule_bias(down) if needs[-1] and len(needs) == 3 else None)[: len(needs)]


def _backward(
    g: CudaArray, x: CudaArray, weight: CudaArray, y: CudaArray, stride: Sizes, padding: Sizes, dilation: Sizes, groups: int,
    needs: tuple[bool, ...],
) -> tuple[CudaArray | None, ...]:  # fmt: skip
    """The gradient of ReLU by the result, then the convolution's."""
    return convolution.backward(_on_gpu(g, y), x, weight, x.shape, weight.shape, stride, padding, dilation, groups, needs)


def _cpu_backward(
    g: np.ndarray, x: np.ndarray, weight: np.ndarray, y: np.ndarray, stride: Sizes, padding: Sizes, dilation: Sizes, groups: int,
    needs: tuple[bool, ...],
) -> tuple[Any, ...]:  # fmt: skip
    down, how = _on_numpy(g, y), {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    dx = convolution.cpu_backward_x(down, weight, x.shape, **how) if needs[0] else None
    dw = convolution.cpu_backward_weight(down, x, weight.shape, **how) if needs[1] else None
    return (dx, dw, convolution.cpu_backward_bias(down) if needs[-1] and len(needs) == 3 else None)[: len(needs)]


def _samples(axes: int) -> Callable[[np.random.Generator], list[Sample]]:
    """The convolution's first calls, of positive numbers, half of the channels turned, so that no result is near 0; and one of all numbers, channels last."""

    def made(rng: np.random.Generator) -> list[Sample]:
        found = []
        for s in samples.forward(axes)(rng)[:FEW]:
            x, w, *bias = s.inputs
            turned = np.where(np.arange(len(w)) % 2, 1.0, -1.0)
            sides = turned.reshape(-1, *(1,) * (w.ndim - 1))
            found.append(Sample(1 + np.abs(x), (0.5 + np.abs(w)) * sides, *[np.abs(b) * turned for b in bias], **s.attrs))
        plain: dict[str, Any] = {"stride": (1,) * axes, "padding": (1,) * axes, "dilation": (1,) * axes, "groups": 1}
        last = np.moveaxis(rng.standard_normal((1, *(4, 3, 3)[:axes], 18)), -1, 1)
        wide = rng.standard_normal((17, 18, *(2,) * axes))
        return [*found, Sample(last, wide, rng.standard_normal(17), smooth=False, **plain)]

    return made


def _sizes(axes: int) -> Callable[[np.random.Generator], list[Sample]]:
    return lambda rng: samples.sizes(axes)(rng)[-2:]


for _axes in (1, 2, 3):
    op(
        f"conv{_axes}d_relu", _reference, cpu=_cpu, shape=registry[f"conv{_axes}d"].shape, forward=_forward, rule=_rule, backward=_backward,
        cpu_backward=_cpu_backward, outputs=("y",), samples=_samples(_axes), sizes=_sizes(_axes), work=convolution.work,
        condition=("absolute", "measured"), autocast="lower", layout="images",
    )  # fmt: skip
