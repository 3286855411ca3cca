"""Tools over tensors on device meta: workers and processes send them, callers of numbers leave them alone, checks of values are silent."""

from __future__ import annotations

import pickle
from multiprocessing.reduction import ForkingPickler

import pytest

import tritensor as tt
from tritensor import nn
from tritensor.utils import data


def test_they_are_sent() -> None:
    x = tt.ones(4, 2, device="meta")
    import tritensor.multiprocessing  # noqa: F401  (tells Python's queues how tensors go)

    for one in (x, nn.Parameter(x)):
        again = pickle.loads(ForkingPickler.dumps(one))
        assert (type(again), again.shape, again.is_meta, again.requires_grad) == (type(one), one.shape, True, one.requires_grad)
    whole = [b.shape for (b,) in data.DataLoader(data.TensorDataset(x), batch_size=2)]
    assert whole == [(2, 2), (2, 2)]


@pytest.mark.standard
def test_workers_send_them() -> None:
    batches = [b for (b,) in data.DataLoader(data.TensorDataset(tt.ones(4, 2, device="meta")), batch_size=2, num_workers=1)]
    assert [(tuple(b.shape), b.is_meta) for b in batches] == [((2, 2), True)] * 2


def test_functions_of_numbers_are_not_called() -> None:
    x = tt.ones(2, 3, device="meta")
    assert x.apply_(lambda v: 1 / 0) is x
    assert x.map_(x, lambda v, w: 1 / 0) is x


def test_checks_of_values_are_silent() -> None:
    net = nn.Linear(3, 4, device="meta")
    assert not tt.utils.lint(net)
    with pytest.warns(UserWarning, match="Anomaly Detection"), tt.autograd.detect_anomaly():
        net(tt.ones(2, 3, device="meta")).sum().backward()
    assert net.weight.grad.is_meta


def test_complex_parameters_are_stepped() -> None:
    p = nn.Parameter(tt.ones(3, dtype=tt.complex64, device="meta"))
    optimizer = tt.optim.Adam([p])
    (p * p.conj()).real.sum().backward()
    optimizer.step()
    assert optimizer.state[p]["exp_avg"].dtype is tt.complex64


def test_other_tools_run() -> None:
    net, x = nn.Linear(3, 4, device="meta"), tt.ones(2, 3, device="meta")
    with tt.utils.flop_counter.FlopCounterMode(display=False) as counted:
        net(x)
    assert counted.get_total_flops() == 2 * 2 * 3 * 4
    assert nn.utils.parameters_to_vector(net.parameters()).shape == (16,)
    assert nn.utils.parametrizations.weight_norm(net)(x).is_meta
    assert tt.optim.swa_utils.AveragedModel(net).module.bias.is_meta
    with pytest.raises(tt.errors.MetaError, match="device meta has none"):
        tt.optim.LBFGS(net.parameters()).step(lambda: net(x).sum())
