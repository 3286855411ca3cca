"""Reference evaluator of onnx with the operators rewritten in which it departs from the standard.

Of onnx 1.23; older ones depart further: their LSTM gives no last cell.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np


def evaluator(model: Any) -> Any:
    """A ReferenceEvaluator of a model."""
    from onnx.reference import ReferenceEvaluator

    return ReferenceEvaluator(model, new_ops=_mended())


def _mended() -> list[Any]:
    """Operators to take instead of onnx's own, each beside the reason."""
    from onnx.reference.op_run import OpRun
    from onnx.reference.ops.op_grid_sample import GridSample as Own

    class RNN(OpRun):
        """onnx's knows Tanh and Affine alone among the activations, and not the Relu of the standard."""

        def _run(self, x: Any, w: Any, r: Any, b: Any = None, lengths: Any = None, h: Any = None, **attrs: Any) -> Any:
            return _rnn(x, w, r, b, h, (attrs.get("activations") or ["Tanh"])[0], attrs.get("direction") == "reverse")

    class GatherElements(OpRun):
        """onnx's reads along another axis where there is one row of indices."""

        def _run(self, x: Any, at: Any, axis: int = 0) -> Any:
            return (np.take_along_axis(x, at, axis) if at.size else np.empty(at.shape, x.dtype),)

    class ConvTranspose(OpRun):
        """onnx's mixes up the images of a batch where there are groups, and fails on an empty batch."""

        def _run(self, x: Any, w: Any, b: Any = None, **attrs: Any) -> Any:
            return (_transposed(x, w, b, attrs),)

    class GridSample(Own):
        """onnx's knows the names of modes that opset 20 gave them, and not the older ones of opset 16."""

        def _run(self, x: Any, grid: Any, **attrs: Any) -> Any:  # type: ignore[override]
            if not x.size or not grid.size:
                return (np.empty((*x.shape[:2], *grid.shape[1:-1]), x.dtype),)
            mode = {"bilinear": "linear", "bicubic": "cubic"}.get(attrs["mode"], attrs["mode"])
            return super()._run(x, grid, **{**attrs, "mode": mode})

    class MaxPool(OpRun):
        """onnx's places of maxima are wrong where there are channels, and it pads with zeros in some cases."""

        def _run(self, x: Any, **attrs: Any) -> Any:
            y, at = _max_pool(x, attrs)
            return (y, at) if len(self.onnx_node.output) > 1 else (y,)

    class BatchNormalization(OpRun):
        """onnx's takes the batch's own mean and variance before opset 14, where the standard has two outputs more for that."""

        def _run(self, x: Any, scale: Any, b: Any, mean: Any, var: Any, epsilon: float = 1e-5, **attrs: Any) -> Any:
            scale, b, mean, var = (v.reshape(-1, *(1,) * (x.ndim - 2)) for v in (scale, b, mean, var))
            return (((x - mean) / np.sqrt(var + epsilon) * scale + b).astype(x.dtype),)

    return [RNN, GatherElements, ConvTranspose, GridSample, MaxPool, BatchNormalization]


def _rnn(x: Any, w: Any, r: Any, b: Any, h: Any, activation: str, reverse: bool) -> tuple[np.ndarray, np.ndarray]:
    """h = f(x w^T + h r^T + b) over time steps."""
    act: Any = {"Tanh": np.tanh, "Relu": lambda t: np.maximum(t, 0)}[activation]
    size, steps = r.shape[-1], range(x.shape[0])
    bias = np.zeros(2 * size, x.dtype) if b is None else b[0]
    state = np.zeros((x.shape[1], size), x.dtype) if h is None else h[0]
    y = np.empty((x.shape[0], 1, x.shape[1], size), x.dtype)
    for t in reversed(steps) if reverse else steps:
        y[t, 0] = state = act(x[t] @ w[0].T + state @ r[0].T + bias[:size] + bias[size:])
    return y, state[None]


def _transposed(x: Any, w: Any, b: Any, attrs: dict[str, Any]) -> np.ndarray:
    """Each element of x adds its multiple of the weights to the output, whose border is then cut off."""
    n, axes, groups = x.shape[0], x.ndim - 2, attrs.get("group") or 1
    strides, dilations = (attrs.get(k) or [1] * axes for k in ("strides", "dilations"))
    pads, more = attrs.get("pads") or [0] * 2 * axes, attrs.get("output_padding") or [0] * axes
    kernel, channels = w.shape[2:], w.shape[1]
    size = [(m - 1) * s + d * (k - 1) + 1 + e for m, s, d, k, e in zip(x.shape[2:], strides, dilations, kernel, more, strict=True)]
    # sums of many taps would lose digits in 16 bits
    y = np.zeros((n, groups, channels, *size), np.float64 if x.dtype == np.float64 else np.float32)
    rows = x.reshape(n, groups, x.shape[1] // groups, *x.shape[2:])
    weights = w.reshape(groups, w.shape[0] // groups, channels, *kernel)
    for tap in itertools.product(*map(range, kernel)):
        at = tuple([slice(i * d, i * d + (m - 1) * s + 1, s) for i, d, m, s in zip(tap, dilations, x.shape[2:], strides, strict=True)])
        y[(slice(None),) * 3 + at] += np.einsum("ngc...,gco->ngo...", rows, weights[(..., *tap)])
    inner = tuple([slice(p, m - q) for p, q, m in zip(pads[:axes], pads[axes:], size, strict=True)])
    y = y[(slice(None),) * 3 + inner].reshape(n, groups * channels, *[s.stop - s.start for s in inner])
    return (y if b is None else y + b.reshape(-1, *[1] * axes)).astype(x.dtype)


def _max_pool(x: Any, attrs: dict[str, Any]) -> tuple[np.ndarray, np.ndarray]:
    """The largest element of each window, and its place counted through all of x."""
    kernel, axes = attrs["kernel_shape"], x.ndim - 2
    strides, dilations = (attrs.get(k) or [1] * axes for k in ("strides", "dilations"))
    pads = attrs.get("pads") or [0] * 2 * axes
    sides = [(0, 0), (0, 0), *zip(pads[:axes], pads[axes:], strict=True)]
    least = -np.inf if x.dtype.kind not in "iu" else np.iinfo(x.dtype).min
    # what is padded loses to every element, and stands at no place of x
    wide = np.pad(x, sides, constant_values=least)
    places = np.pad(np.arange(x.size).reshape(x.shape), sides, constant_values=-1)
    outs = [(m - d * (k - 1) - 1) // s + 1 for m, k, s, d in zip(wide.shape[2:], kernel, strides, dilations, strict=True)]
    taps, at = [], []
    for tap in itertools.product(*map(range, kernel)):
        index: Any = tuple([slice(i * d, i * d + (o - 1) * s + 1, s) for i, d, o, s in zip(tap, dilations, outs, strides, strict=True)])
        taps.append(wide[(..., *index)])
        at.append(places[(..., *index)])
    stacked = np.stack(taps)
    best = stacked.argmax(0)[None]
    return np.take_along_axis(stacked, best, 0)[0], np.take_along_axis(np.stack(at), best, 0)[0]
