"""Recurrent nets without torch: against their formulas in numpy, launches of a time step, packed against single sequences, derivatives, any nonlinearity."""

from __future__ import annotations

import math

import numpy as np
import pytest

import tritensor as tt
from tritensor import nn
from tritensor.autograd import gradcheck, gradgradcheck
from tritensor.cuda import launch as launching
from tritensor.kernels.parts import gemm
from tritensor.kernels.parts.products import split_sums
from tritensor.kernels.recurrent import time_loop
from tritensor.nn.utils import rnn as packing


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def weights(net: nn.Module) -> dict[str, np.ndarray]:
    return {k: v.detach().numpy() for k, v in net.named_parameters()}


def test_lstm_is_its_formula() -> None:
    net = nn.LSTM(3, 2, dtype=tt.float64)
    x, p = np.random.default_rng(0).standard_normal((4, 5, 3)), weights(net)
    h, c, outs = np.zeros((5, 2)), np.zeros((5, 2)), []
    for step in x:
        z = step @ p["weight_ih_l0"].T + p["bias_ih_l0"] + h @ p["weight_hh_l0"].T + p["bias_hh_l0"]
        i, f, g, o = (z[:, 2 * k : 2 * k + 2] for k in range(4))
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        outs.append(h)
    y, (last, cell) = net(tt.tensor(x))
    np.testing.assert_allclose(y.detach().numpy(), outs, rtol=1e-12)
    np.testing.assert_allclose(last[0].detach().numpy(), h, rtol=1e-12)
    np.testing.assert_allclose(cell[0].detach().numpy(), c, rtol=1e-12)


def test_gru_is_its_formula() -> None:
    net = nn.GRU(3, 2, dtype=tt.float64)
    x, p, h = np.random.default_rng(1).standard_normal((4, 5, 3)), weights(net), np.zeros((5, 2))
    for step in x:
        a, b = step @ p["weight_ih_l0"].T + p["bias_ih_l0"], h @ p["weight_hh_l0"].T + p["bias_hh_l0"]
        r, z = sigmoid(a[:, :2] + b[:, :2]), sigmoid(a[:, 2:4] + b[:, 2:4])
        h = (1 - z) * np.tanh(a[:, 4:] + r * b[:, 4:]) + z * h
    np.testing.assert_allclose(net(tt.tensor(x))[1][0].detach().numpy(), h, rtol=1e-12)


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_a_time_step_is_two_launches_and_the_input_is_one_product(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    launched: list[str] = []
    real = launching.launch

    def counted(kernel, *args, **kwargs):
        launched.append(kernel.__name__)
        real(kernel, *args, **kwargs)

    for module in (gemm, time_loop):
        monkeypatch.setattr(module, "launch", counted)
    net = getattr(nn, kind)(5, 8, device="cuda")
    counts = []
    for steps in (3, 5):
        launched.clear()
        with tt.no_grad():
            net(tt.ones(steps, 2, 5, device="cuda"))
        counts.append((launched.count("_matmul_kernel"), launched.count("_window_kernel"), len(launched)))
    assert [many[2] for many in counts][1] - counts[0][2] == 4, "two launches for each of two time steps more"
    assert [many[:2] for many in counts] == [(4, 3), (6, 5)], "one product for the input, then a product and a pass a step"


def test_a_product_of_a_time_step_is_not_split(monkeypatch: pytest.MonkeyPatch) -> None:
    launched = []
    real = launching.launch
    for file in (gemm, split_sums):
        monkeypatch.setattr(
            file, "launch", lambda kernel, *args, **kwargs: (launched.append(kernel.__name__), real(kernel, *args, **kwargs))
        )
    a, b = tt.ones(2, 900, device="cuda")._array, tt.ones(900, 3, device="cuda")._array
    found = []
    for whole in (False, True):
        out = tt.zeros(2, 3, device="cuda")
        gemm.gemm(a, b, out._array, whole=whole)
        found.append(out.tolist())
    assert launched == ["_matmul_kernel", "_sum_parts_kernel", "_matmul_kernel"]
    assert found == [[[900.0] * 3] * 2] * 2


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_many_elements_run_as_machine_code_and_give_the_same(kind: str) -> None:
    """Sequences one by one are too few elements for it; float32, both ways through time."""
    net = getattr(nn, kind)(6, 40, bidirectional=True)
    x = tt.randn(5, 12, 6)
    y = net(x)[0]
    alone = [net(x[:, k])[0] for k in range(12)]
    np.testing.assert_allclose(y.detach().numpy(), np.stack([a.detach().numpy() for a in alone], 1), rtol=2e-5, atol=2e-6)
    grads = []
    for outs in ([y], alone):
        net.zero_grad()
        (sum((o * o).sum() for o in outs) if len(outs) > 1 else (y * y).sum()).backward()
        grads.append([p.grad.numpy() for p in net.parameters()])
    for a, b in zip(*grads, strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-4)


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_packed_sequences_are_each_as_alone(kind: str) -> None:
    net = getattr(nn, kind)(3, 4, 2, bidirectional=True, dtype=tt.float64)
    given = [tt.randn(n, 3, dtype=tt.float64) for n in (2, 5, 1, 4)]
    out, state = net(packing.pack_sequence(given, enforce_sorted=False))
    last = state[0] if kind == "LSTM" else state
    for k, (x, y) in enumerate(zip(given, packing.unpack_sequence(out), strict=True)):
        alone, end = net(x)
        np.testing.assert_allclose(y.detach().numpy(), alone.detach().numpy(), rtol=1e-10)
        np.testing.assert_allclose(last[:, k].detach().numpy(), (end[0] if kind == "LSTM" else end).detach().numpy(), rtol=1e-10)


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_derivatives_of_second_and_third_order(kind: str) -> None:
    tt.manual_seed(0)
    net = getattr(nn, kind)(2, 2, dtype=tt.float64)
    x = tt.randn(2, 1, 2, dtype=tt.float64, requires_grad=True)
    assert gradcheck(lambda v: net(v)[0], (x,))
    assert gradgradcheck(lambda v: net(v)[0], (x,))

    def slope(v: tt.Tensor) -> tt.Tensor:
        first = tt.autograd.grad(net(v)[0].sin().sum(), v, create_graph=True)[0]
        return tt.autograd.grad((first * first).sum(), v, create_graph=True)[0]

    assert gradcheck(slope, (x,))


def test_any_nonlinearity_and_none() -> None:
    x = tt.randn(4, 2, 3)
    for act, same in ((tt.tanh, "tanh"), (nn.functional.relu, "relu")):
        net, usual = nn.RNN(3, 5, 2, act, bidirectional=True), nn.RNN(3, 5, 2, same, bidirectional=True)
        usual.load_state_dict(net.state_dict())
        np.testing.assert_allclose(net(x)[0].detach().numpy(), usual(x)[0].detach().numpy(), rtol=1e-5, atol=1e-6)
    cell = nn.RNNCell(3, 5, nonlinearity=None)
    p = weights(cell)
    want = x[0].numpy() @ p["weight_ih"].T + p["bias_ih"] + p["bias_hh"]
    np.testing.assert_allclose(cell(x[0]).detach().numpy(), want, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(nn.RNN(3, 5, nonlinearity=None)(x * 0)[0][0].detach().numpy().std(0), 0, atol=1e-7)


def test_start_and_dropout() -> None:
    tt.manual_seed(0)
    net = nn.LSTM(8, 64, 2, dropout=1.0)
    flat = np.concatenate([p.detach().numpy().ravel() for p in net.parameters()])
    assert abs(flat).max() <= 1 / 8
    assert abs(flat.std() - 1 / 8 / math.sqrt(3)) < 1e-3
    x = tt.randn(3, 2, 8)
    dropped = net(x)[0]
    assert not np.allclose(dropped.detach().numpy(), net.eval()(x)[0].detach().numpy())
    second = nn.LSTM(64, 64)  # with everything dropped the second layer sees zeros
    second.load_state_dict({k.replace("l1", "l0"): v for k, v in net.state_dict().items() if "l1" in k})
    np.testing.assert_allclose(dropped.detach().numpy(), second(tt.zeros(3, 2, 64))[0].detach().numpy(), rtol=1e-5, atol=1e-6)
    with pytest.warns(UserWarning, match="num_layers=1"):
        nn.GRU(3, 4, dropout=0.5)


def test_packed_sequences_are_cast() -> None:
    packed = packing.pack_sequence([tt.ones(2), tt.ones(3)], enforce_sorted=False)
    for name in ("double", "float", "half", "long", "int", "short", "char", "byte"):
        cast = getattr(packed, name)()
        assert cast.data.dtype is getattr(tt.ones(1), name)().dtype
        assert cast.unsorted_indices.tolist() == [1, 0]
    assert packed.to(tt.float64).data.dtype is tt.float64
    assert packed.to("cpu") is packed.float() is packed


def test_the_sizes_of_states() -> None:
    net, x = nn.LSTM(3, 5, 2, proj_size=2, bidirectional=True), tt.ones(4, 6, 3)
    assert net.get_expected_hidden_size(x, None) == (4, 6, 2)
    assert net.get_expected_cell_size(x, None) == (4, 6, 5)
