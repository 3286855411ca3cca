"""Every op between others: after a step on its inputs and before one on its results, its plan gives what its calls give, and its gradients too."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tritensor as tt
from tests.fusion.graphs import Graph
from tests.kernels.tapes.captured import own_ops
from tritensor.ground import dtypes
from tritensor.ground.device import device
from tritensor.ops.table import Op, ops
from tritensor.ops.tuning.gpu_calls import attributes
from tritensor.testing.questions.cases import samples

# what draws is asked in test_structure.py
OPS = [
    op for op in own_ops()
    if not op.mutates and not op.view and "float32" in op.dtypes and getattr(op.forward, "draws", None) is None
]  # fmt: skip


def _programs(op: Op, on: str) -> Any:
    for sample in samples(op)[:6]:
        inputs = [x.astype(np.float32) if isinstance(x, np.ndarray) and x.dtype.kind == "f" else x for x in sample.inputs]
        arrays = [x for x in inputs if isinstance(x, np.ndarray)]
        if any(x.dtype.kind == "c" or 0 in x.shape for x in arrays) or not sample.smooth:
            continue
        yield inputs, attributes(op, sample, device(on))


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_between_others(op: Op) -> None:
    _ask(op, "cpu")


@pytest.mark.slow
@pytest.mark.parametrize("op", [op for op in OPS if op.forward is not None and op.host is None], ids=lambda op: op.name)
def test_between_others_on_a_gpu(op: Op) -> None:
    _ask(op, "cuda")


def _ask(op: Op, on: str) -> None:
    """Compare the plans of programs of one op with their calls."""
    for inputs, attrs in _programs(op, on):
        tensors = [
            tt.tensor(x, device=on, requires_grad=op.rule is not None and dtypes.is_float(x.dtype)) if isinstance(x, np.ndarray) else x
            for x in inputs
        ]

        def program(tensors: list[Any] = tensors, attrs: dict[str, Any] = attrs) -> Any:
            given = [x * 1.0 if isinstance(x, tt.Tensor) and x.dtype == tt.float32 else x for x in tensors]
            made = getattr(ops, op.name)(*given, **attrs)
            outs = [y for y in (made if isinstance(made, tuple) else (made,)) if isinstance(y, tt.Tensor)]
            found = [y * 0.5 + 1 if y.dtype == tt.float32 else y for y in outs]
            ends = [y for y in found if y.requires_grad]
            if ends:
                sum([(y * y).sum() for y in ends]).backward()  # type: ignore[attr-defined]
                found += [x.grad for x in tensors if isinstance(x, tt.Tensor) and x.grad is not None]
            return found

        Graph(program).check(1e-4, least=1.0)  # gradients of norms over two elements cancel
