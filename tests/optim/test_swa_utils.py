"""Averaged models: plain and exponential means, buffers, devices; SWALR; statistics computed anew."""

import copy

import numpy as np
import pytest

import tritensor as tt
from tritensor import nn, optim
from tritensor.optim.swa_utils import (
    SWALR,
    AveragedModel,
    get_ema_avg_fn,
    get_ema_multi_avg_fn,
    get_swa_avg_fn,
    get_swa_multi_avg_fn,
    update_bn,
)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 2)
        self.register_buffer("seen", tt.zeros(2))
        self.register_buffer("count", tt.tensor(0))

    def forward(self, x):
        return self.layer(x)


def walked(averaged, steps=5):
    """The values of the weight, a buffer and the count at each update."""
    rng, net, found = np.random.default_rng(0), Net(), []
    averaged = averaged(net)
    for t in range(steps):
        with tt.no_grad():
            net.layer.weight.copy_(tt.tensor(rng.standard_normal((2, 3)), dtype=tt.float32))
            net.seen.fill_(float(t))
            net.count.fill_(10 * t)
        averaged.update_parameters(net)
        found.append(net.layer.weight.detach().numpy().copy())
    return averaged, np.array(found)


@pytest.mark.parametrize("function", [{}, {"avg_fn": get_swa_avg_fn()}, {"multi_avg_fn": get_swa_multi_avg_fn()}], ids=["", "avg", "multi"])
@pytest.mark.parametrize("on", ["cpu", "cuda"])
def test_means(function, on):
    averaged, seen = walked(lambda net: AveragedModel(net, device=None if on == "cpu" else on, **function))
    assert averaged.module.layer.weight.device.type == on
    np.testing.assert_allclose(averaged.module.layer.weight.detach().cpu().numpy(), seen.mean(axis=0), rtol=1e-5, atol=1e-6)
    assert averaged.n_averaged.item() == 5
    assert averaged.module.seen.tolist() == [4.0, 4.0]  # as the model's are
    assert set(averaged.state_dict()) == {"n_averaged", "module.layer.weight", "module.layer.bias", "module.seen", "module.count"}


@pytest.mark.parametrize("function", [{"avg_fn": get_ema_avg_fn(0.75)}, {"multi_avg_fn": get_ema_multi_avg_fn(0.75)}], ids=["avg", "multi"])
def test_exponential_means(function):
    averaged, seen = walked(lambda net: AveragedModel(net, use_buffers=True, **function))
    want = seen[0]
    mean = count = 0.0
    for t in range(1, 5):
        want = 0.75 * want + 0.25 * seen[t]
        mean = 0.75 * mean + 0.25 * t
        count = int(0.75 * count + 0.25 * 10 * t)
    np.testing.assert_allclose(averaged.module.layer.weight.detach().numpy(), want, rtol=1e-5)
    assert averaged.module.seen.tolist() == pytest.approx([mean] * 2)
    assert averaged.module.count.item() == count


def test_a_model_of_its_own():
    net = Net()
    averaged = AveragedModel(net)
    x = tt.ones(1, 3)
    assert averaged(x).tolist() == net(x).tolist()
    with tt.no_grad():
        net.layer.weight.zero_()
    assert averaged(x).tolist() != net(x).tolist()
    again = AveragedModel(Net())
    again.load_state_dict(copy.deepcopy(averaged.state_dict()))
    assert again(x).tolist() == averaged(x).tolist()


def test_swalr():
    def rates(strategy, epochs, before=0):
        opt = optim.SGD([{"params": [nn.Parameter(tt.zeros(1))], "lr": lr} for lr in (1.0, 0.5)], lr=1.0)
        schedule = SWALR(opt, [0.1, 0.2], epochs, strategy)
        found = []
        for _ in range(6):
            found.append(schedule.get_last_lr())
            opt.step()
            schedule.step()
        return np.array(found)

    t = np.minimum(np.arange(6) / 4, 1)
    for strategy, share in (("linear", t), ("cos", (1 - np.cos(np.pi * t)) / 2)):
        want = np.outer(1 - share, [1.0, 0.5]) + np.outer(share, [0.1, 0.2])
        np.testing.assert_allclose(rates(strategy, 4), want, rtol=1e-12)
    np.testing.assert_allclose(rates("cos", 0), [[0.1, 0.2]] * 6)


def test_statistics_anew():
    update_bn([tt.ones(2, 3)], Net())  # nothing to do
    net = nn.Sequential(nn.BatchNorm1d(3, momentum=0.3), nn.Linear(3, 1)).eval()
    batches = [tt.tensor(np.random.default_rng(k).standard_normal((4, 3)), dtype=tt.float32) for k in range(3)]
    update_bn([(x, 1) for x in batches], net)
    np.testing.assert_allclose(net[0].running_mean.numpy(), np.mean([x.numpy().mean(0) for x in batches], axis=0), rtol=1e-5, atol=1e-6)
    assert (net[0].momentum, net.training) == (0.3, False)
    with pytest.raises(tt.ShapeError):
        update_bn([tt.ones(2, 4)], net)
    assert (net[0].momentum, net.training) == (0.3, False)


def test_mistakes_are_named():
    opt = optim.SGD([nn.Parameter(tt.zeros(1))])
    for make, kind, message in [
        (lambda: AveragedModel(Net(), avg_fn=get_swa_avg_fn(), multi_avg_fn=get_swa_multi_avg_fn()), AssertionError, "Only one of"),
        (lambda: AveragedModel(Net().parameters()), TypeError, "AveragedModel: model is generator; give a Module"),
        (lambda: AveragedModel(Net()).update_parameters(nn.Linear(2, 2)), tt.ShapeError, "Linear has not the parameters of the model"),
        (lambda: get_ema_avg_fn(1.5), ValueError, r"Invalid decay value 1.5 .* \[0,1\]"),
        (lambda: get_ema_multi_avg_fn(-0.5), ValueError, "Invalid decay value -0.5"),
        (lambda: SWALR(opt, 0.1, anneal_strategy="x"), ValueError, "'cos' or 'linear', instead got x"),
        (lambda: SWALR(opt, 0.1, anneal_epochs=1.5), ValueError, "anneal_epochs must be equal or greater than 0, got 1.5"),
        (lambda: SWALR(opt, [0.1, 0.2]), ValueError, "swa_lr has 2 values, param_groups has 1"),
        (lambda: SWALR(Net(), 0.1), TypeError, "SWALR: Net is not an Optimizer"),
    ]:
        with pytest.raises(kind, match=message):
            make()
