"""The same modules and optimizers in torch: reprs, state names, values, gradients, trajectories."""

import numpy as np
import pytest
import torch

import tritensor as tt
from tritensor import nn
from tritensor.optim import SGD, Adam, AdamW, lr_scheduler

pytestmark = pytest.mark.peer


def both(make):
    """The same network twice, torch's with our values."""
    ours, theirs = make(nn), make(torch.nn)
    theirs.load_state_dict({k: torch.from_numpy(v.numpy().copy()) for k, v in ours.state_dict().items()})
    return ours, theirs


def close(ours, theirs, tolerance=2e-5):
    np.testing.assert_allclose(ours.detach().numpy(), theirs.detach().numpy(), rtol=tolerance, atol=tolerance)


NETS = {
    "lenet": (
        lambda n: n.Sequential(
            n.Conv2d(1, 6, 5), n.ReLU(), n.MaxPool2d(2), n.Conv2d(6, 16, 5), n.ReLU(), n.MaxPool2d(2), n.Flatten(), n.Linear(256, 10)
        ),
        (3, 1, 28, 28),
    ),
    "conv": (
        lambda n: n.Sequential(
            n.Conv2d(4, 6, (3, 2), 2, 1, 1, 2, bias=False), n.LeakyReLU(0.1), n.Conv2d(6, 4, 4, padding="same", dilation=2), n.SiLU(),
            n.AvgPool2d(3, 2, 1, count_include_pad=False), n.MaxPool2d(3, 2, 1, ceil_mode=True),
        ),
        (2, 4, 17, 19),
    ),
    "mlp": (
        lambda n: n.Sequential(
            n.Linear(7, 12), n.GELU(), n.LayerNorm(12), n.Unflatten(1, (3, 4)), n.Softmax(dim=1), n.LayerNorm((3, 4), bias=False), n.Flatten(), n.Linear(12, 5),
            n.GELU("tanh"), n.ELU(0.5), n.Softplus(2.0), n.ELU(inplace=True), n.Tanh(), n.Sigmoid(), n.LogSoftmax(-1), n.Identity(), n.Dropout(0.0),
        ),
        (6, 7),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", NETS)
def test_networks(name):
    make, shape = NETS[name]
    ours, theirs = both(make)
    assert repr(ours) == repr(theirs)
    assert list(ours.state_dict()) == list(theirs.state_dict())
    x = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
    a, b = tt.tensor(x, requires_grad=True), torch.tensor(x, requires_grad=True)
    y, z = ours(a), theirs(b)
    close(y, z)
    w = np.random.default_rng(2).standard_normal(y.shape).astype(np.float32)
    (y * tt.tensor(w)).sum().backward()
    (z * torch.from_numpy(w)).sum().backward()
    close(a.grad, b.grad)
    for p, q in zip(ours.parameters(), theirs.parameters(), strict=True):
        close(p.grad, q.grad, 1e-4)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_losses(reduction):
    rng = np.random.default_rng(3)
    x, w = rng.standard_normal((5, 4, 3)).astype(np.float32), (rng.random(4) + 0.5).astype(np.float32)
    t = rng.integers(0, 4, (5, 3))
    t[2, 1] = -100
    p = rng.random((5, 4, 3)).astype(np.float32)
    cases = [
        (lambda n, m: n.CrossEntropyLoss(weight=m(w), reduction=reduction, label_smoothing=0.1), x, t),
        (lambda n, m: n.CrossEntropyLoss(weight=m(w), reduction=reduction, label_smoothing=0.1), x, p),
        (lambda n, m: n.NLLLoss(weight=m(w), reduction=reduction), x, t),
        (lambda n, m: n.MSELoss(reduction=reduction), x, p),
        (lambda n, m: n.L1Loss(reduction=reduction), x, p),
        (lambda n, m: n.BCEWithLogitsLoss(reduction=reduction, pos_weight=m(w[:, None])), x, p),
    ]
    for make, given, target in cases:
        a, b = tt.tensor(given, requires_grad=True), torch.tensor(given, requires_grad=True)
        y = make(nn, tt.tensor)(a, tt.tensor(target))
        z = make(torch.nn, torch.tensor)(b, torch.tensor(target))
        close(y, z)
        y.sum().backward()
        z.sum().backward()
        close(a.grad, b.grad)


SGDS = [
    {"momentum": m, "nesterov": n, "weight_decay": w, "dampening": d}
    for m, n, w, d in [(0, 0, 0, 0), (0.9, 0, 0.01, 0), (0.9, 1, 0.01, 0), (0.8, 0, 0, 0.3)]
]
ADAMS = [
    {"weight_decay": w, "amsgrad": a, "maximize": m}
    for w, a, m in [(0, False, False), (0.1, False, False), (0.1, True, False), (0.1, False, True)]
]


@pytest.mark.parametrize(
    ("kind", "settings"),
    [(SGD, s) for s in SGDS] + [(Adam, s) for s in ADAMS] + [(AdamW, s) for s in ADAMS],
    ids=lambda v: getattr(v, "__name__", str(v)),
)
def test_trajectories_and_state(kind, settings):
    settings = {"lr": 0.02, **settings}
    ours, theirs = both(lambda n: n.Sequential(n.Linear(5, 8), n.Tanh(), n.Linear(8, 3)))
    mine, other = kind(ours.parameters(), **settings), getattr(torch.optim, kind.__name__)(theirs.parameters(), **settings)
    plan, plan2 = lr_scheduler.CosineAnnealingLR(mine, 7), torch.optim.lr_scheduler.CosineAnnealingLR(other, 7)
    rng = np.random.default_rng(4)

    def steps(count):
        for _ in range(count):
            x, y = rng.standard_normal((6, 5)).astype(np.float32), rng.standard_normal((6, 3)).astype(np.float32)
            for n, m, o in ((tt, ours, mine), (torch, theirs, other)):
                o.zero_grad()
                n.nn.functional.mse_loss(m(n.tensor(x)), n.tensor(y)).backward()
                o.step()
            plan.step()
            plan2.step()
        for p, q in zip(ours.parameters(), theirs.parameters(), strict=True):
            close(p, q, 1e-4)

    steps(12)
    saved = other.state_dict()  # torch's state loads here
    taken = {i: {k: None if v is None else tt.tensor(v.numpy()) for k, v in entry.items()} for i, entry in saved["state"].items()}
    assert set(mine.state_dict()["state"]) == set(saved["state"])
    mine.load_state_dict({**saved, "state": taken})
    steps(5)


def test_schedules():
    for name, args in [
        ("StepLR", (3, 0.5)), ("MultiStepLR", ([2, 5], 0.3)), ("ExponentialLR", (0.9,)), ("LinearLR", (0.2, 0.9, 5)), ("CosineAnnealingLR", (4, 0.01)),
        ("LambdaLR", (lambda e: 1 / (1 + e),)),
    ]:  # fmt: skip
        found = []
        for n, optim, library in ((tt, SGD, lr_scheduler), (torch, torch.optim.SGD, torch.optim.lr_scheduler)):
            o = optim([n.nn.Parameter(n.zeros(1))], lr=0.7)
            s = getattr(library, name)(o, *args)
            rates = []
            for _ in range(12):
                o.step()
                s.step()
                rates.append(o.param_groups[0]["lr"])
            found.append(rates)
        np.testing.assert_allclose(found[0], found[1], rtol=1e-9, atol=1e-12, err_msg=name)


def test_start_values_have_torchs_spread():
    tt.manual_seed(0)
    torch.manual_seed(0)
    for make in (
        lambda n: n.Linear(300, 200),
        lambda n: n.Conv2d(20, 60, 3),
        lambda n: n.Embedding(200, 50),
        lambda n: n.Bilinear(20, 30, 40),
    ):
        for p, q in zip(make(nn).parameters(), make(torch.nn).parameters(), strict=True):
            a, b = p.detach().numpy(), q.detach().numpy()
            assert a.shape == b.shape
            assert abs(a.std() - b.std()) < 0.15 * b.std()
            if a.size > 1000:
                assert abs(abs(a).max() - abs(b).max()) < 0.15 * abs(b).max()
