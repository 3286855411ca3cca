"""SGD, Adam, AdamW against their recurrences in numpy; groups, state, and refusals."""

import copy
import itertools
import pickle

import numpy as np
import pytest

import tritensor as tt
from tritensor import nn, optim
from tritensor.ground.errors import CheckpointError, GradError, ShapeError

START = np.array([[1.0, -2.0, 3.0], [0.5, -0.25, 4.0]])


def gradient(t, p):
    """A gradient that depends on the step and the parameter."""
    return np.cos(np.arange(6).reshape(2, 3) + t) + 0.1 * p


def run(make, steps=6, dtype=tt.float64):
    p = nn.Parameter(tt.tensor(START, dtype=dtype))
    optimizer = make([p])
    for t in range(steps):
        p.grad = tt.tensor(gradient(t, p.detach().numpy().astype(np.float64)), dtype=dtype)
        optimizer.step()
    return p.detach().numpy()


SGDS = [
    {"lr": lr, "momentum": m, "dampening": d, "weight_decay": w, "nesterov": n, "maximize": x}
    for lr, m, d, w, n, x in itertools.product([0.1], [0, 0.9], [0, 0.5], [0, 0.01], [False, True], [False, True])
    if not (n and (m == 0 or d))
]


@pytest.mark.parametrize("settings", SGDS, ids=str)
def test_sgd_follows_its_recurrence(settings):
    p, buf = START.copy(), None
    m, d = settings["momentum"], settings["dampening"]
    for t in range(6):
        g = gradient(t, p)
        g = (-g if settings["maximize"] else g) + settings["weight_decay"] * p
        if m:
            buf = g if buf is None else m * buf + (1 - d) * g
            g = g + m * buf if settings["nesterov"] else buf
        p = p - settings["lr"] * g
    np.testing.assert_allclose(run(lambda ps: optim.SGD(ps, **settings)), p, rtol=1e-12)
    np.testing.assert_allclose(run(lambda ps: optim.SGD(ps, **settings), dtype=tt.float32), p, rtol=1e-5)


@pytest.mark.parametrize("decoupled", [False, True])
@pytest.mark.parametrize("amsgrad", [False, True])
@pytest.mark.parametrize("maximize", [False, True])
@pytest.mark.parametrize("decay", [0, 0.1])
def test_adam_follows_its_recurrence(decoupled, amsgrad, maximize, decay):
    lr, b1, b2, eps = 0.05, 0.8, 0.95, 1e-6
    p, m, v, largest = START.copy(), 0.0, 0.0, 0.0
    for t in range(6):
        g = gradient(t, p)
        g = -g if maximize else g
        if decoupled:
            p = p * (1 - lr * decay)
        else:
            g = g + decay * p
        m, v = b1 * m + (1 - b1) * g, b2 * v + (1 - b2) * g * g
        largest = np.maximum(largest, v)
        scale = np.sqrt((largest if amsgrad else v) / (1 - b2 ** (t + 1))) + eps
        p = p - lr * (m / (1 - b1 ** (t + 1))) / scale
    kind = optim.AdamW if decoupled else optim.Adam
    settings = {"lr": lr, "betas": (b1, b2), "eps": eps, "weight_decay": decay, "amsgrad": amsgrad, "maximize": maximize}
    np.testing.assert_allclose(run(lambda ps: kind(ps, **settings)), p, rtol=1e-11)
    np.testing.assert_allclose(run(lambda ps: kind(ps, **settings), dtype=tt.float32), p, rtol=2e-5)


def test_defaults_are_pytorchs():
    p = [nn.Parameter(tt.zeros(1))]
    assert optim.SGD(p).defaults["lr"] == 1e-3
    assert optim.Adam(p).defaults["weight_decay"] == 0
    assert optim.AdamW(p).defaults["weight_decay"] == 1e-2
    assert optim.AdamW(p, fused=True).defaults["betas"] == (0.9, 0.999)
    assert optim.Adam(p, decoupled_weight_decay=True, weight_decay=0.5).param_groups[0]["decoupled_weight_decay"]


def test_step_skips_what_has_no_gradient_and_returns_the_closures_loss():
    a, b = nn.Parameter(tt.ones(2)), nn.Parameter(tt.ones(2))
    optimizer = optim.Adam([a, b], lr=0.5)

    def closure():
        optimizer.zero_grad()
        loss = (a * a).sum()
        loss.backward()
        return loss

    with tt.no_grad():
        assert optimizer.step(closure).item() == 2.0
    assert a.tolist() == pytest.approx([0.5, 0.5])
    assert b.tolist() == [1.0, 1.0]
    assert b not in optimizer.state


def test_step_is_seen_by_autograd():
    p = nn.Parameter(tt.ones(2))
    loss = (p * p).sum()
    p.grad = tt.ones(2)
    optim.SGD([p], lr=0.1).step()
    with pytest.raises(GradError, match=r"overwrote in place|overwritten"):
        loss.backward()


def test_groups():
    a, b, c = (nn.Parameter(tt.zeros(1)) for _ in range(3))
    optimizer = optim.SGD([{"params": [a]}, {"params": b, "lr": 0.5}], lr=0.1, momentum=0.9)
    assert [g["lr"] for g in optimizer.param_groups] == [0.1, 0.5]
    optimizer.add_param_group({"params": [c], "momentum": 0.0})
    for p in (a, b, c):
        p.grad = tt.ones(1)
    optimizer.step()
    assert [p.item() for p in (a, b, c)] == pytest.approx([-0.1, -0.5, -0.1])
    assert len(optimizer.state) == 2
    assert repr(optimizer).splitlines()[:3] == ["SGD (", "Parameter Group 0", "    dampening: 0"]
    assert "    weight_decay: 0\n\nParameter Group 1\n    dampening" in repr(optimizer)
    optimizer.zero_grad(set_to_none=False)
    assert a.grad.item() == 0.0
    optimizer.zero_grad()
    assert a.grad is None


@pytest.mark.parametrize("kind", [optim.SGD, optim.Adam, optim.AdamW])
def test_a_group_may_be_empty(kind):
    p = nn.Parameter(tt.zeros(1))
    optimizer = kind([{"params": []}, {"params": [p]}], lr=0.5)
    p.grad = tt.ones(1)
    optimizer.step()
    assert p.item() == pytest.approx(-0.5)
    again = kind([{"params": []}, {"params": [p]}])
    again.load_state_dict(optimizer.state_dict())
    assert [g["params"] for g in again.param_groups] == [[], [p]]


@pytest.mark.parametrize("kind", [lambda ps: optim.SGD(ps, lr=0.1, momentum=0.9), lambda ps: optim.AdamW(ps, lr=0.1, amsgrad=True)])
def test_state_dict_goes_on_where_it_was(kind):
    whole = run(kind, steps=6)
    p = nn.Parameter(tt.tensor(START))
    first = kind([p])
    for t in range(3):
        p.grad = tt.tensor(gradient(t, p.detach().numpy()))
        first.step()
    saved = pickle.loads(pickle.dumps(first.state_dict()))
    assert set(saved) == {"state", "param_groups"}
    assert saved["param_groups"][0]["params"] == [0]
    q = nn.Parameter(p.detach().clone())
    second = kind([q])
    second.param_groups[0]["lr"] = 77.0
    second.load_state_dict(saved)
    assert second.param_groups[0]["lr"] == 0.1
    for t in range(3, 6):
        q.grad = tt.tensor(gradient(t, q.detach().numpy()))
        second.step()
    np.testing.assert_array_equal(q.detach().numpy(), whole)
    assert p.tolist() != q.tolist()  # the state was copied


def test_names_of_the_state_are_pytorchs():
    p = nn.Parameter(tt.zeros(2))
    p.grad = tt.ones(2)
    adam, sgd = optim.Adam([p], amsgrad=True), optim.SGD([p], momentum=0.5)
    adam.step()
    sgd.step()
    assert list(adam.state_dict()["state"][0]) == ["step", "exp_avg", "exp_avg_sq", "max_exp_avg_sq"]
    assert list(sgd.state_dict()["state"][0]) == ["momentum_buffer"]
    saved = adam.state_dict()
    saved["state"][0]["step"] = tt.tensor(1.0)  # as PyTorch writes it
    saved["state"][0]["exp_avg"] = saved["state"][0]["exp_avg"].double()
    adam.load_state_dict(saved)
    assert adam.state[p]["step"] == 1
    assert adam.state[p]["exp_avg"].dtype == tt.float32


def test_a_state_dict_that_does_not_fit_is_refused_whole():
    a, b = nn.Parameter(tt.zeros(2)), nn.Parameter(tt.zeros(3))
    two = optim.SGD([a, b], lr=0.1, momentum=0.5)
    with pytest.raises(CheckpointError, match=r"groups of \[2\] parameters, this optimizer of \[1\]"):
        optim.SGD([a]).load_state_dict(two.state_dict())
    a.grad, b.grad = tt.ones(2), tt.ones(3)
    two.step()
    other = optim.SGD([b, a], lr=0.7)
    with pytest.raises(CheckpointError, match=r"momentum_buffer of parameter 0 is \(2,\), the parameter \(3,\)"):
        other.load_state_dict(two.state_dict())
    assert other.param_groups[0]["lr"] == 0.7
    assert not other.state


def test_optimizer_survives_copy_and_pickle():
    net = nn.Linear(2, 1)
    optimizer = optim.Adam(net.parameters())
    net(tt.ones(1, 2)).sum().backward()
    optimizer.step()
    for net2, again in (copy.deepcopy((net, optimizer)), pickle.loads(pickle.dumps((net, optimizer)))):
        assert again.param_groups[0]["params"][0] is net2.weight
        assert again.state[net2.weight]["exp_avg"].tolist() == optimizer.state[net.weight]["exp_avg"].tolist()


def test_own_optimizers():
    class Sign(optim.Optimizer):
        def __init__(self, params, lr):
            super().__init__(params, {"lr": lr})

        @tt.no_grad()
        def step(self, closure=None):
            for group in self.param_groups:
                for p in group["params"]:
                    p.sub_(p.grad.sign() * group["lr"])

    p = nn.Parameter(tt.zeros(2))
    p.grad = tt.tensor([3.0, -2.0])
    Sign([p], 0.5).step()
    assert p.tolist() == [-0.5, 0.5]
    with pytest.raises(NotImplementedError, match=r"define _update\(group\)"):
        optim.Optimizer([p], {}).step()


def test_own_optimizers_as_they_are_written_for_pytorch():
    from tritensor.optim.optimizer import ParamsT, _use_grad_for_differentiable, required

    class Down(optim.Optimizer):
        def __init__(self, params: ParamsT, lr=required, **more):
            super().__init__(params, {"lr": lr, **more})

        def __setstate__(self, state):
            super().__setstate__(state)
            for group in self.param_groups:
                group.setdefault("steps", 1)

        @_use_grad_for_differentiable
        def step(self, closure=None):
            for group in self.param_groups:
                for p in group["params"]:
                    p.copy_(p - group["lr"] * p.grad)

    p = nn.Parameter(tt.zeros(2))
    with pytest.raises(ValueError, match="didn't specify a value of required optimization parameter lr"):
        Down([p])
    assert repr(required) == "<required parameter>"
    made = Down([{"params": [p], "lr": 0.5}])
    p.grad = tt.tensor([3.0, -2.0])
    made.step()
    assert p.tolist() == [-1.5, 1.0]
    assert p.is_leaf
    for again in (copy.deepcopy(made), copy.copy(made)):
        assert again.param_groups[0]["steps"] == 1
    made.load_state_dict(made.state_dict())
    assert made.param_groups[0]["steps"] == 1
    x = tt.ones(2, requires_grad=True)
    y = x * 1
    y.retain_grad()
    y.grad = tt.ones(2)
    Down([y], lr=0.5, differentiable=True).step()
    y.sum().backward()
    assert x.grad.tolist() == [1.0, 1.0]


@pytest.mark.parametrize("lr", [None, "auto", -1.0])
def test_an_own_optimizer_says_itself_what_its_settings_may_be(lr):
    class Free(optim.Optimizer):
        def __init__(self, params, lr):
            super().__init__(params, {"lr": lr, "weight_decay": None})

    p = nn.Parameter(tt.zeros(2))
    assert Free([p], lr).param_groups[0]["lr"] == lr
    with pytest.raises((ValueError, TypeError)):
        optim.LBFGS([p], lr=-1.0 if lr is None else lr)


def test_mistakes_are_named():
    p, q = nn.Parameter(tt.zeros(2)), nn.Parameter(tt.zeros(2))
    for make, kind, message in [
        (lambda: optim.SGD([]), ValueError, "empty parameter list"),
        (lambda: optim.Adam([p], betas=(0.9,)), ValueError, r"Invalid betas: \(0.9,\)"),
        (lambda: optim.SGD(p), TypeError, "iterable of Tensors or dicts"),
        (lambda: optim.SGD([p, 3]), TypeError, "parameter 1 is int"),
        (lambda: optim.SGD([{"params": {p}}]), TypeError, "a set has none"),
        (lambda: optim.SGD([p * 2]), ValueError, "non-leaf.*MulBackward0"),
        (lambda: optim.SGD([p, p]), ValueError, "more than one parameter group, or twice"),
        (lambda: optim.SGD([{"params": [p]}, {"params": [q, p]}]), ValueError, "parameter 1 of shape"),
        (lambda: optim.SGD([p], lr=-0.1), ValueError, "Invalid learning rate: -0.1"),
        (lambda: optim.SGD([{"params": [p], "lr": 0.5}], lr=-2.0), ValueError, "Invalid learning rate: -2.0"),
        (lambda: optim.SGD([p], lr=float("nan")), ValueError, "Invalid learning rate: nan"),
        (lambda: optim.SGD([p], lr="0.1"), TypeError, "learning rate is '0.1', a str; give a number"),
        (lambda: optim.SGD([p], weight_decay=None), TypeError, "weight_decay value is None, a NoneType; give a number"),
        (lambda: optim.SGD([{"lr": 0.1}]), KeyError, "a parameter group has 'lr'; it needs 'params'"),
        (lambda: optim.SGD([p], momentum=-1), ValueError, "Invalid momentum value: -1"),
        (lambda: optim.SGD([p], weight_decay=-1), ValueError, "Invalid weight_decay value: -1"),
        (lambda: optim.SGD([p], nesterov=True), ValueError, "Nesterov momentum requires"),
        (lambda: optim.Adam([p], betas=(1.0, 0.9)), ValueError, "Invalid beta parameter at index 0: 1.0"),
        (lambda: optim.Adam([p], eps=-1), ValueError, "Invalid epsilon value: -1"),
    ]:
        with pytest.raises(kind, match=message):
            make()
    with tt.no_grad(), pytest.raises(ShapeError, match="sgd_step"):
        tt.ops.sgd_step(p, tt.zeros(3), tt.zeros(2))


@pytest.mark.parametrize("kind", [optim.SGD, optim.Adam, optim.AdamW])
def test_a_learning_rate_that_is_a_tensor(kind):
    found = [run(lambda p, lr=lr: kind(p, lr=lr)) for lr in (0.5, tt.tensor(0.5))]
    np.testing.assert_array_equal(*found)


def test_a_list_of_parameters_is_parameters_and_a_list_of_layers_is_a_model() -> None:
    weights = tt.nn.ParameterList([tt.nn.Parameter(tt.ones(2)), tt.nn.Parameter(tt.ones(3))])
    assert [p.shape for p in tt.optim.SGD(weights, lr=0.1).param_groups[0]["params"]] == [(2,), (3,)]
    with pytest.raises(TypeError, match="params is a model, Sequential"):
        tt.optim.SGD(tt.nn.Sequential(tt.nn.Linear(1, 1)), lr=0.1)  # type: ignore[arg-type]
