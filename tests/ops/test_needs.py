"""Walks the op table: the gradient by one input alone is the one that comes with all others, on both devices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tritensor as tt
import tritensor.kernels
from tritensor.ops.table import Op, Sample, registry
from tritensor.testing.questions.cases import samples, types

OPS = [op for op in registry.values() if op.rule is not None and not op.view and (len(op.inputs) > 1 or op.variadic)]
NOWHERE = {("complex", "cuda")}  # complex numbers stay on the CPU


def _given(sample: Sample, dtype: str, on: str, leaves: set[int] | None) -> list[Any]:
    """The inputs as tensors, of which those of `leaves` (None: all that can) require grad."""
    found = []
    for i, x in enumerate(sample.inputs):
        if not isinstance(x, np.ndarray):
            found.append(x)
            continue
        t = tt.tensor(x.astype(dtype) if x.dtype.kind == "f" else x, device=on)
        found.append(t.requires_grad_(t.is_floating_point() and (leaves is None or i in leaves)))
    return found


def _gradients(op: Op, sample: Sample, dtype: str, on: str, leaves: set[int] | None) -> dict[int, tt.Tensor | None]:
    given = _given(sample, dtype, on, leaves)
    made = getattr(tt.ops, op.name)(*given, **sample.attrs)
    outs = [y for y in (made if isinstance(made, tuple) else (made,)) if y.requires_grad]
    wanted = {i: x for i, x in enumerate(given) if isinstance(x, tt.Tensor) and x.requires_grad}
    if not outs or not wanted:
        return {}
    seeds = [tt.cos(tt.arange(y.numel(), dtype=tt.float64, device=on)).reshape(y.shape).to(y.dtype) for y in outs]
    return dict(zip(wanted, tt.autograd.grad(outs, list(wanted.values()), seeds, allow_unused=True), strict=True))


@pytest.mark.parametrize("on", ["cpu", "cuda"])
@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_one_alone(op: Op, on: str) -> None:
    if (op.name, on) in NOWHERE:
        with pytest.raises(tt.DeviceError):
            tt.ops.complex(tt.ones(1, device=on), tt.ones(1, device=on))
        return
    dtype = next(t for t in ("float32", "float64") if t in types(op))
    for sample in samples(op)[:2]:
        together = _gradients(op, sample, dtype, on, None)
        for i, expected in together.items() if len(together) > 1 else ():
            alone = _gradients(op, sample, dtype, on, {i})[i]
            if expected is None or alone is None:
                assert all(g is None or not bool((g != 0).any()) for g in (expected, alone))
            else:
                tt.testing.assert_close(alone, expected, rtol=1e-4, atol=1e-5, equal_nan=True)
