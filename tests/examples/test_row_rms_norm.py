"""The op that CONTRIBUTING.md walks through, examples/row_rms_norm.py: asked every question in every type on both devices, and used as a program uses it."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import tritensor as tt
from tritensor.ops.table import Op, registry
from tritensor.testing.questions.ask import ask
from tritensor.testing.questions.cases import cases, samples

FILE = Path(__file__).resolve().parents[2] / "examples" / "row_rms_norm.py"
DEVICES = {"cpu": tt.device("cpu"), "emulated": tt.device("cuda", 0)}


@pytest.fixture
def op() -> Iterator[Op]:
    """The op, for one test: another asks what the table holds."""
    spec = importlib.util.spec_from_file_location("row_rms_norm_example", FILE)
    assert spec is not None
    assert spec.loader is not None
    sys.modules[spec.name] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield registry["row_rms_norm"]
    del registry["row_rms_norm"]
    del sys.modules[spec.name]


@pytest.mark.parametrize("where", DEVICES)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_five_questions(op: Op, dtype: str, where: str) -> None:
    said = [line for case in cases(op, dtype, DEVICES[where]) for line in ask(case)]
    assert not said, "\n".join(said[:20])


def test_it_reaches_its_paths(op: Op) -> None:
    rows = [s.inputs[0].shape for s in samples(op)]
    module = sys.modules["row_rms_norm_example"]
    assert any(r[-1] > module.LARGEST for r in rows)
    assert any(np.prod(r[:-1]) > module.ROWS * 2 for r in rows)


@pytest.mark.parametrize("where", ["cpu", "cuda"])
def test_it_is_the_librarys_own(op: Op, where: str) -> None:
    x, w = tt.randn(6, 33, device=where, requires_grad=True), tt.rand(33, device=where, requires_grad=True)
    tt.testing.assert_close(tt.row_rms_norm(x, w), tt.nn.functional.rms_norm(x, (33,), w, eps=1e-6))
    assert x.row_rms_norm(weight=w, eps=0.1).shape == (6, 33)
    loss = x.row_rms_norm(w).pow(2).sum()
    (gx,) = tt.autograd.grad(loss, x, create_graph=True)
    (ggw,) = tt.autograd.grad(gx.pow(2).sum(), w)
    assert ggw.shape == (33,)
    with pytest.raises(tt.ShapeError, match=r"row_rms_norm: input \(6, 33\) with weight \(32,\): weight must have"):
        tt.row_rms_norm(x, w[:32])
