"""The optimizers of formulas: their recurrences written out in numpy; steps that are differentiated; what their states look like."""

from __future__ import annotations

import copy
import gc
import inspect
import pickle
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tritensor as tt
from tritensor import nn, optim
from tritensor.ground.errors import ShapeError
from tritensor.optim.formula_optimizer import FormulaOptimizer
from tritensor.optim.plan import Plan, load_decay_kinds, load_formula

# Every optimizer of a formula is asked; one without a recurrence in CASES, or states in STATES, is asked all but these.
OPTIMIZERS = [n for n, c in vars(optim).items() if isinstance(c, type) and issubclass(c, FormulaOptimizer)]
MOMENTUM = {"SGD": {"momentum": 0.9}}
START = np.array([[1.0, -2.0, 3.0], [0.5, -0.25, 4.0]])
Step = Callable[[int, np.ndarray, np.ndarray, dict[str, Any]], np.ndarray]


def gradient(t: int, p: Any) -> Any:
    return np.cos(np.arange(6).reshape(2, 3) + t) + 0.1 * p


def moments(g: Any, s: dict[str, Any], b1: float = 0.9, b2: float = 0.999) -> tuple[Any, Any]:
    s["m"] = b1 * s.get("m", 0.0) + (1 - b1) * g
    s["v"] = b2 * s.get("v", 0.0) + (1 - b2) * g * g
    return s["m"], s["v"]


def nadam(t: int, p: Any, g: Any, s: dict[str, Any]) -> Any:
    m, v = moments(g, s)
    mu, after = (0.9 * (1 - 0.5 * 0.96 ** (k * 0.004)) for k in (t, t + 1))
    s["product"] = float(np.float32(s.get("product", 1.0)) * np.float32(mu))
    size = np.sqrt(v / (1 - 0.999**t)) + 1e-8
    return p - 0.05 * (1 - mu) / (1 - s["product"]) * g / size - 0.05 * after / (1 - s["product"] * after) * m / size


def radam(t: int, p: Any, g: Any, s: dict[str, Any]) -> Any:
    m, v = moments(g, s)
    most = 2 / 0.001 - 1
    rho = most - 2 * t * 0.999**t / (1 - 0.999**t)
    u = 0.05 * m / (1 - 0.9**t)
    if rho <= 5:
        return p - u
    rect = np.sqrt((rho - 4) * (rho - 2) * most / ((most - 4) * (most - 2) * rho))
    return p - u * np.sqrt(1 - 0.999**t) / (np.sqrt(v) + 1e-8) * rect


def adamax(t: int, p: Any, g: Any, s: dict[str, Any]) -> Any:
    s["m"] = 0.9 * s.get("m", 0.0) + 0.1 * g
    s["u"] = np.maximum(0.999 * s.get("u", 0.0), np.abs(g) + 1e-8)
    return p - 0.05 / (1 - 0.9**t) * s["m"] / s["u"]


def adagrad(t: int, p: Any, g: Any, s: dict[str, Any]) -> Any:
    s["s"] = s.get("s", 0.5) + g * g
    return p - 0.05 / (1 + (t - 1) * 0.1) * g / (np.sqrt(s["s"]) + 1e-10)


def adadelta(t: int, p: Any, g: Any, s: dict[str, Any]) -> Any:
    s["v"] = 0.9 * s.get("v", 0.0) + 0.1 * g * g
    d = np.sqrt(s.get("a", 0.0) + 1e-6) / np.sqrt(s["v"] + 1e-6) * g
    s["a"] = 0.9 * s.get("a", 0.0) + 0.1 * d * d
    return p - 0.05 * d


def rmsprop(momentum: float, centered: bool) -> Step:
    def step(t: int, p: Any, g: Any, s: dict[str, Any]) -> Any:
        s["v"] = 0.99 * s.get("v", 0.0) + 0.01 * g * g
        s["mean"] = 0.99 * s.get("mean", 0.0) + 0.01 * g
        s["buf"] = momentum * s.get("buf", 0.0) + g / (np.sqrt(s["v"] - centered * s["mean"] ** 2) + 1e-8)
        return p - 0.05 * s["buf"]

    return step


def rprop(t: int, p: Any, g: Any, s: dict[str, Any]) -> Any:
    turned = g * s.get("before", 0.0)
    s["size"] = np.clip(s.get("size", 0.05) * np.where(turned > 0, 1.2, np.where(turned < 0, 0.5, 1.0)), 1e-6, 50)
    s["before"] = np.where(turned < 0, 0.0, g)
    return p - np.sign(s["before"]) * s["size"]


def asgd(t: int, p: Any, g: Any, s: dict[str, Any]) -> Any:
    eta = float(np.float32(s.get("eta", 0.05)))
    s["eta"] = 0.05 / (1 + 0.1 * 0.05 * t) ** 0.75
    return (1 - 0.1 * eta) * p - eta * g


def lion(t: int, p: Any, g: Any, s: dict[str, Any]) -> Any:
    m = s.get("m", 0.0)
    s["m"] = 0.99 * m + 0.01 * g
    return p * (1 - 0.05 * 0.1) - 0.05 * np.sign(0.9 * m + 0.1 * g)


CASES: dict[str, tuple[dict[str, Any], Step]] = {
    "NAdam": ({}, nadam), "RAdam": ({}, radam), "Adamax": ({}, adamax), "Adagrad": ({"lr_decay": 0.1, "initial_accumulator_value": 0.5}, adagrad),
    "Adadelta": ({}, adadelta), "Rprop": ({}, rprop), "ASGD": ({"lambd": 0.1}, asgd),
    "Lion": ({"weight_decay": 0.1}, lion), "RMSprop": ({}, rmsprop(0.0, False)), "RMSprop centered": ({"centered": True}, rmsprop(0.0, True)),
    "RMSprop moving": ({"momentum": 0.5}, rmsprop(0.5, False)), "RMSprop both": ({"momentum": 0.5, "centered": True}, rmsprop(0.5, True)),
}  # fmt: skip


@pytest.fixture
def plans(monkeypatch: pytest.MonkeyPatch) -> list[Plan]:
    """What the optimizers step by, a plan for each step."""
    seen: list[Plan] = []
    step = FormulaOptimizer._step
    monkeypatch.setattr(FormulaOptimizer, "_step", lambda self, params, plan, group: seen.append(plan) or step(self, params, plan, group))
    return seen


@pytest.mark.parametrize("maximize", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_recurrences(name: str, maximize: bool) -> None:
    settings, step = CASES[name]
    p, state = START.copy(), {}
    params = [nn.Parameter(tt.tensor(START, dtype=k)) for k in (tt.float64, tt.float32)]
    optimizer = getattr(optim, name.partition(" ")[0])(params, lr=0.05, maximize=maximize, **settings)
    for t in range(1, 9):
        for q in params:
            q.grad = tt.tensor(gradient(t, q.detach().double().numpy()), dtype=q.dtype)
        g = gradient(t, p)
        p = step(t, p, -g if maximize else g, state)
        optimizer.step()
    np.testing.assert_allclose(params[0].detach().numpy(), p, rtol=1e-11)
    np.testing.assert_allclose(params[1].detach().numpy(), p, rtol=1e-4)


@pytest.mark.parametrize("name", [n for n in OPTIMIZERS if "weight_decay" in inspect.signature(getattr(optim, n)).parameters])
def test_weight_decay(name: str, plans: list[Plan]) -> None:
    """Coupled it is a gradient of weight_decay * p more; the decoupled kind shrinks p first."""
    settings, found = MOMENTUM.get(name, {}), []
    for decay, given in ((0.25, 0.0), (0.0, 0.25)):
        p = nn.Parameter(tt.tensor(START))
        optimizer = getattr(optim, name)([p], lr=0.05, weight_decay=decay, **settings)
        for t in range(3):
            extra = given * p.detach().numpy()
            if given and plans[0].decay == load_decay_kinds().DECOUPLED:
                with tt.no_grad():
                    p.mul_(1 - 0.05 * given)
                extra = 0.0
            p.grad = tt.tensor(np.cos(START + t) + extra)
            optimizer.step()
        found.append(p.detach().numpy())
    np.testing.assert_allclose(found[0], found[1], rtol=1e-12)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_steps_are_differentiated(name: str) -> None:
    """Two steps as a function of the first parameter, whose derivatives finite differences confirm; the values are those of plain steps."""
    settings = MOMENTUM.get(name, {})

    def stepped(start: tt.Tensor, differentiable: bool = True) -> tt.Tensor:
        p = start.clone() if differentiable else start
        optimizer = getattr(optim, name)([p], lr=0.1, differentiable=differentiable, **settings)
        for t in range(2):
            q = p.clone()  # the step writes over p
            p.grad = q * q * (t + 1.0) + 0.5 * q.sin()
            optimizer.step()
        return p

    start = tt.tensor(START[0] + 0.5, requires_grad=True)
    assert tt.autograd.gradcheck(stepped, (start,), eps=1e-6, atol=1e-5)
    plain = stepped(start.detach().clone(), differentiable=False)
    np.testing.assert_allclose(stepped(start).detach().numpy(), plain.numpy(), rtol=1e-12)


def test_a_rate_that_is_learnt() -> None:
    lr, w = tt.tensor(0.1, dtype=tt.float64, requires_grad=True), tt.tensor([1.0, -2.0])
    p = w.clone()
    optimizer = optim.SGD([p], lr=lr, differentiable=True)
    p.grad = tt.tensor([3.0, 4.0])
    optimizer.step()
    (p * p).sum().backward()
    assert lr.grad.item() == pytest.approx(2 * (0.7 * -3.0 + -2.4 * -4.0), rel=1e-6)


STATES = {  # as PyTorch names them
    "SGD": [], "Adam": ["step", "exp_avg", "exp_avg_sq"], "NAdam": ["step", "mu_product", "exp_avg", "exp_avg_sq"], "RAdam": ["step", "exp_avg", "exp_avg_sq"],
    "Adamax": ["step", "exp_avg", "exp_inf"], "Adagrad": ["step", "sum"], "Adadelta": ["step", "square_avg", "acc_delta"], "RMSprop": ["step", "square_avg"],
    "Rprop": ["step", "prev", "step_size"], "ASGD": ["step", "eta", "mu", "ax"],
}  # fmt: skip


@pytest.mark.parametrize("on", ["cpu", "cuda"])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_states_are_pytorchs_and_go_on(name: str, on: str, plans: list[Plan]) -> None:
    """Names and types; a state that was pickled, or whose counts are numbers, goes on as if nothing had been."""
    shapes = [(3,), (2, 2)]

    def graded(params: list[Any], t: int) -> None:
        for p in params:
            p.grad = tt.full(tuple(p.shape), 0.5 + t, device=on)

    one = [nn.Parameter(tt.ones(*s, device=on)) for s in shapes]
    first = getattr(optim, name)(one)
    for t in range(2):
        graded(one, t)
        first.step()
    saved, formula = first.state_dict(), plans[0].formula
    assert list(saved["state"].get(0, [])) == STATES.get(name, [*formula.scalars, *formula.states])
    assert all(
        v.shape == () and v.dtype == tt.float32
        for s in saved["state"].values()
        for k, v in s.items()
        if k in ("step", "mu_product", "eta", "mu")
    )
    loaded = pickle.loads(pickle.dumps(saved))
    for s in loaded["state"].values():
        if "step" in s:
            assert s["step"].item() == 2.0
            s["step"] = 2
    two = [nn.Parameter(p.detach().clone()) for p in one]
    second = getattr(optim, name)(two, lr=7.0)
    second.load_state_dict(loaded)
    copied_one, copied = copy.deepcopy((one, first))
    for t in range(2, 4):
        for params, optimizer in ((one, first), (two, second), (copied_one, copied)):
            graded(params, t)
            optimizer.step()
    for p, q, r in zip(one, two, copied_one, strict=True):
        assert p.tolist() == q.tolist() == r.tolist()
    if "step" in formula.scalars:
        first.state[one[0]]["step"].fill_(100.0)  # a view that the next step reads
        graded(one, 4)
        first.step()
        assert [first.state[p]["step"].item() for p in one] == [101.0, 5.0]


def test_parameters_that_join_late_and_rest() -> None:
    a, b = nn.Parameter(tt.zeros(2)), nn.Parameter(tt.zeros(3))
    optimizer = optim.Adam([a, b], lr=1.0)
    for with_b in (False, True, False, True):
        a.grad, b.grad = tt.ones(2), tt.ones(3) if with_b else None
        optimizer.step()
    assert [optimizer.state[p]["step"].item() for p in (a, b)] == [4.0, 2.0]
    np.testing.assert_allclose([a[0].item(), b[0].item()], [-4.0, -2.0], rtol=1e-5)


@pytest.mark.parametrize("on", ["cpu", "cuda"])
def test_states_of_another_form_are_refused_before_anything_is_written(on: str) -> None:
    p = nn.Parameter(tt.zeros(4, device=on))
    optimizer = optim.Adam([p])
    p.grad = tt.ones(4, device=on)
    optimizer.step()
    p.grad, p.data = None, tt.zeros(9, device=on)
    p.grad = tt.ones(9, device=on)
    with pytest.raises(
        ShapeError, match=r"Adam.step: state 'exp_avg' is float32 \(4,\).*parameter float32 \(9,\).*del optimizer.state\[p\]"
    ):
        optimizer.step()
    del optimizer.state[p]
    optimizer.step()
    assert p[8].item() == pytest.approx(-1e-3)
    optimizer.state[p]["exp_avg_sq"] = tt.zeros(9, dtype=tt.float64, device=on)
    with pytest.raises(ShapeError, match="state 'exp_avg_sq' is float64"):
        optimizer.step()


def test_parameters_that_others_replaced_are_let_go() -> None:
    """Splatting grows its points so: a larger parameter, and its state, in the place of the one before."""
    optimizer = optim.Adam([{"params": [nn.Parameter(tt.zeros(2))]}, {"params": [nn.Parameter(tt.zeros(1))]}], lr=1.0)
    kept = []
    for n in (2, 3, 4):
        group = optimizer.param_groups[0]
        old = group["params"][0]
        kept.append(weakref.ref(old))
        state = optimizer.state.pop(old, {})
        p = group["params"][0] = nn.Parameter(tt.cat([old.detach(), tt.zeros(n - len(old))]))
        if state:
            optimizer.state[p] = {k: v if k == "step" else tt.cat([v, tt.zeros(1)]) for k, v in state.items()}
        for each in optimizer.param_groups:
            each["params"][0].grad = tt.ones_like(each["params"][0])
        optimizer.step()
        del old, p
    gc.collect()
    assert [ref() for ref in kept] == [None] * 3
    np.testing.assert_allclose(optimizer.param_groups[0]["params"][0].tolist()[:2], [-3.0, -3.0], rtol=1e-5)


def test_a_formula_of_ones_own() -> None:
    """A new optimizer is its formula, and which of a group's settings it takes."""
    assert load_formula("lion.LION").count == 5

    class Halving(optim.Lion):
        def _plan(self, group: dict[str, Any]) -> Any:
            return super()._plan(group)._replace(settings=(group["lr"] / 2, *group["betas"]))

    p = nn.Parameter(tt.zeros(2))
    p.grad = tt.ones(2)
    Halving([p], lr=1.0).step()
    assert p.tolist() == [-0.5, -0.5]


def test_mistakes_are_named() -> None:
    p, c = nn.Parameter(tt.zeros(2)), nn.Parameter(tt.zeros(2, dtype=tt.complex64))
    net = nn.Linear(2, 2)
    for make, kind, message in [
        (lambda: optim.SGD(net), TypeError, r"SGD: params is a model, Linear; give model.parameters\(\)"),
        (lambda: optim.Adam(net.state_dict()), TypeError, r"Adam: params is a dict; give model.parameters\(\)"),
        (lambda: optim.Adam(3), TypeError, r"Adam: params is int; give model.parameters\(\)"),
        (lambda: optim.NAdam([p], momentum_decay=-1), ValueError, "Invalid momentum_decay value: -1"),
        (lambda: optim.RAdam([p], betas=(0.9, 1.0)), ValueError, "Invalid beta parameter at index 1: 1.0"),
        (lambda: optim.Adamax([p], eps=-1), ValueError, "Invalid epsilon value: -1"),
        (lambda: optim.Adagrad([p], lr_decay=-1), ValueError, "Invalid lr_decay value: -1"),
        (lambda: optim.Adadelta([p], rho=1.5), ValueError, "Invalid rho value: 1.5"),
        (lambda: optim.RMSprop([p], alpha=-0.5), ValueError, "Invalid alpha value: -0.5"),
        (lambda: optim.Rprop([p], etas=(1.5, 1.2)), ValueError, "Invalid eta values: 1.5, 1.2"),
        (lambda: optim.ASGD([p], lr=-1), ValueError, "Invalid learning rate: -1"),
        (lambda: optim.Lion([p], betas=(0.9,)), ValueError, r"Invalid betas: \(0.9,\)"),
        (lambda: optim.SGD([p], lr=tt.ones(2)), ValueError, r"Tensor lr must be 1-element, not of shape \(2,\)"),
        (
            lambda: optim.Adam([p], lr=tt.tensor(0.1), foreach=True),
            ValueError,
            "lr as a Tensor is not supported for capturable=False and foreach=True",
        ),
        (lambda: optim.Adam([p], betas=(tt.tensor(0.9), 0.9)), ValueError, "betas must be either both floats or both Tensors"),
        (lambda: optim.SGD([p], fused=True, foreach=True), RuntimeError, "cannot be `True` together"),
        (lambda: optim.AdamW([p], fused=True, differentiable=True), RuntimeError, "`fused` does not support `differentiable`"),
        (lambda: optim.Adafactor([p], d=0.5), ValueError, "Clipping threshold d should be >= 1 but is: 0.5"),
        (lambda: optim.Adafactor([p], eps=(-1.0, 1.0)), ValueError, "epsilon1 should be >= 0 but is: -1.0"),
        (
            lambda: optim.Muon([p]),
            ValueError,
            r"Muon: a parameter of size \(2,\), and Muon only supports 2D parameters; give it to AdamW",
        ),
        (lambda: optim.Muon([net.weight], adjust_lr_fn="x"), ValueError, "Adjust learning rate function x is not supported"),
        (lambda: optim.SparseAdam([c]), ValueError, r"Complex params at indices \[\[0, 0\]\]"),
        (lambda: optim.SparseAdam([p], lr=0.0), ValueError, "Invalid learning rate: 0.0"),
        (lambda: optim.LBFGS([{"params": [p]}, {"params": [c]}]), ValueError, "doesn't support per-parameter options"),
        (lambda: optim.LBFGS([p]).step(), TypeError, r"LBFGS.step: missing closure; give step\(closure\)"),
        (lambda: optim.LBFGS([p]).step(lambda: None), TypeError, "the closure returned None; make it return the loss"),
        (lambda: optim.LBFGS([p], line_search_fn="x").step(lambda: 0), RuntimeError, "only 'strong_wolfe' is supported, not 'x'"),
    ]:
        with pytest.raises(kind, match=message):
            make()
    p.grad = tt.ones(2)
    with pytest.raises(RuntimeError, match=r"SparseAdam does not support dense gradients, please consider Adam instead.*optim\.Adam"):
        optim.SparseAdam([p]).step()


def test_the_signature_of_step_says_whether_a_closure_must_be_given() -> None:
    p = nn.Parameter(tt.ones(2))
    required = {
        m: inspect.signature(m([p]).step).parameters["closure"].default is inspect.Parameter.empty for m in (optim.LBFGS, optim.SGD)
    }
    assert required == {optim.LBFGS: True, optim.SGD: False}
