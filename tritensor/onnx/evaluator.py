"""onnx's reference evaluator, with those operators written anew in which it departs from the standard."""

from __future__ import annotations

from typing import Any

import numpy as np


def evaluator(model: Any) -> Any:
    """A ReferenceEvaluator of a model."""
    from onnx.reference import ReferenceEvaluator

    return ReferenceEvaluator(model, new_ops=_mended())


def _mended() -> list[Any]:
    """Operators to take instead of onnx's own, each beside the reason."""
    from onnx.reference.op_run import OpRun

    class RNN(OpRun):
        """onnx's knows Tanh and Affine alone among the activations, and not the Relu of the standard."""

        def _run(self, x: Any, w: Any, r: Any, b: Any = None, lengths: Any = None, h: Any = None, **attrs: Any) -> Any:
            act = {"Tanh": np.tanh, "Relu": lambda t: np.maximum(t, 0)}[(attrs.get("activations") or ["Tanh"])[0]]
            size, steps = r.shape[-1], range(x.shape[0])
            bias = np.zeros(2 * size, x.dtype) if b is None else b[0]
            state = np.zeros((x.shape[1], size), x.dtype) if h is None else h[0]
            y = np.empty((x.shape[0], 1, x.shape[1], size), x.dtype)
            for t in reversed(steps) if attrs.get("direction") == "reverse" else steps:
                y[t, 0] = state = act(x[t] @ w[0].T + state @ r[0].T + bias[:size] + bias[size:])
            return y, state[None]

    return [RNN]
