"""Time steps in one call of machine code give what the same steps give one by one, whichever threads share them."""

from __future__ import annotations

import numpy as np
import pytest

import tritensor as tt
from tritensor.kernels.recurrent import machine_steps
from tritensor.llvm import products, threads
from tritensor.nn.utils import rnn

pytestmark = pytest.mark.quick
NETS = {"lstm": tt.nn.LSTM, "gru": tt.nn.GRU, "rnn": tt.nn.RNN}


@pytest.fixture(params=[1, 2])
def several(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "count", lambda: request.param)
    monkeypatch.setattr(products, "MANY", 1)  # few rows are many
    monkeypatch.setattr(machine_steps, "_ROWS", 1)
    monkeypatch.setattr(machine_steps, "_STEPS", 3)  # a call does some of the steps


def _results(net: tt.nn.RNNBase, x: tt.Tensor) -> list[np.ndarray]:
    net.zero_grad()
    leaf = x.detach().requires_grad_()
    lengths = [7, 7, 5, 2, 1]
    packed = rnn.pack_padded_sequence(leaf, lengths, batch_first=True)
    y, state = net(packed)
    states = state if isinstance(state, tuple) else (state,)
    (sum((s * s).sum() for s in states) + (y.data * y.data).sum()).backward()
    return [t.numpy() for t in (y.data.detach(), *[s.detach() for s in states], leaf.grad, *[p.grad for p in net.parameters()])]


@pytest.mark.parametrize("name", NETS)
@pytest.mark.parametrize("dtype", [tt.float32, tt.float64])
def test_steps_in_one_call_are_those_of_python(name: str, dtype: tt.dtype, several: None, monkeypatch: pytest.MonkeyPatch) -> None:
    tt.manual_seed(0)
    net = NETS[name](4, 20, 2, batch_first=True, bidirectional=True).to(dtype)
    x = tt.randn(5, 7, 4, dtype=dtype)
    made: list[bool] = []
    run = machine_steps.run

    def watched(*given: object) -> bool:
        made.append(run(*given))  # type: ignore[arg-type]
        return made[-1]

    monkeypatch.setattr(machine_steps, "run", watched)
    found = _results(net, x)
    assert any(made), "machine code took no step"
    monkeypatch.setattr(machine_steps, "run", lambda *given: False)
    for a, b in zip(found, _results(net, x), strict=True):
        np.testing.assert_allclose(a, b, 2e-5 if dtype == tt.float32 else 1e-12, 1e-6 if dtype == tt.float32 else 1e-13)
