"""Trajectories in torch: every optimizer and schedule with its options, step by step; what their states look like; hooks."""

from __future__ import annotations

import itertools
import math
import warnings
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import tritensor as tt
from tests.optim.test_groups import GROUPS, steps_of
from tests.peer.optimizers import walk

pytestmark = pytest.mark.peer

START = np.array([[1.0, -2.0, 3.0], [0.0, -0.25, 4.0]])


def trajectory(library: Any, kind: str, options: dict[str, Any], dtype: str, steps: int = 5) -> Any:
    """The values of two parameters (one without a gradient at times) after every step; the settings and names of the state."""
    if "lr" in options and options["lr"] == "tensor":
        options = {**options, "lr": library.tensor(0.1)}
    a, b = (library.nn.Parameter(library.tensor((START * k).tolist(), dtype=getattr(library, dtype))) for k in (1.0, 0.5))
    optimizer = getattr(library.optim, kind)([{"params": [a]}, {"params": [b], "weight_decay": 0.25}], **options)
    found = []
    for t in range(steps):
        optimizer.zero_grad(set_to_none=t % 2 == 0)
        (a.sin() * (t + 1)).sum().backward()
        if t != 2:
            (b * b * b).mean().backward()
        optimizer.step()
        found.append((a.tolist(), b.tolist()))
    state = optimizer.state_dict()
    names = {i: sorted(s) for i, s in state["state"].items()}
    return found, names, [{k: str(v) for k, v in g.items() if k != "lr"} for g in state["param_groups"]]


SGD = [
    {"lr": lr, "momentum": m, "dampening": d, "weight_decay": w, "nesterov": n, "maximize": x}
    for lr, m, d, w, n, x in itertools.product([0.1, 0.0, "tensor"], [0, 0.9], [0, 0.5], [0, 0.1], [False, True], [False, True])
    if not (n and (m == 0 or d))
]
ADAM = [
    {"lr": lr, "betas": b, "eps": e, "weight_decay": w, "amsgrad": a, "maximize": x}
    for lr, b, e, w, a, x in itertools.product(
        [0.1, "tensor"], [(0.9, 0.999), (0.0, 0.0), (0.5, 0.0)], [1e-8, 1.0], [0, 0.1], [False, True], [False, True]
    )
]
CASES = (
    [("SGD", o) for o in SGD]
    + [(k, o) for k in ("Adam", "AdamW") for o in ADAM]
    + [("Adam", {"decoupled_weight_decay": True, "weight_decay": 0.5})]
)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_optimizers_go_where_torchs_go(dtype: str) -> None:
    for kind, options in CASES:
        ours, our_names, our_groups = trajectory(tt, kind, options, dtype)
        theirs, their_names, their_groups = trajectory(torch, kind, options, dtype)
        exact = dtype == "float64" and options.get("lr") != "tensor"  # a rate in float32 makes torch's step sizes float32, too
        for mine, other in zip(ours, theirs, strict=True):
            np.testing.assert_allclose(
                mine, other, rtol=1e-10 if exact else 2e-5, atol=1e-12 if exact else 1e-6, err_msg=f"{kind} {options}"
            )
        assert (our_names, our_groups) == (their_names, their_groups), (kind, options)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("name", "group", "expected"), GROUPS)
def test_groups_say_what_the_constructor_refuses(name: str, group: dict[str, Any], expected: Any, dtype: str) -> None:
    theirs = steps_of(torch, name, group, dtype)
    near = {"float32": 3e-5, "float64": 1e-10}[dtype]
    np.testing.assert_allclose(steps_of(tt, name, group, dtype), theirs, rtol=near)
    np.testing.assert_allclose(theirs, expected, rtol=max(near, 1e-9))


BAD = [
    ("SGD", {"lr": -1.0}), ("SGD", {"momentum": -1.0}), ("SGD", {"weight_decay": -1.0}), ("SGD", {"nesterov": True}),
    ("SGD", {"nesterov": True, "momentum": 0.5, "dampening": 0.5}), ("Adam", {"lr": -1.0}), ("Adam", {"eps": -1.0}), ("Adam", {"betas": (1.0, 0.5)}),
    ("Adam", {"betas": (0.5, -0.1)}), ("AdamW", {"weight_decay": -0.1}), ("AdamW", {"betas": (0.5, 1.0)}),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "options"), BAD, ids=str)
def test_settings_are_refused_where_torch_refuses(kind: str, options: dict[str, Any]) -> None:
    for library in (torch, tt):
        with pytest.raises(ValueError, match=r".+"):
            getattr(library.optim, kind)([library.nn.Parameter(library.zeros(1))], **options)


def rates(library: Any, make: Any, starts: list[float], epochs: int, tensor: bool = False) -> list[list[float]]:
    """Every group's rate, epoch by epoch, of a schedule (or of several, stepped in turn)."""
    groups = [{"params": [library.nn.Parameter(library.zeros(1))], "lr": library.tensor(lr) if tensor else lr} for lr in starts]
    optimizer = library.optim.SGD(groups)
    made = make(library.optim.lr_scheduler, optimizer)
    found = []
    for epoch in range(epochs):
        found.append([float(g["lr"]) for g in optimizer.param_groups])
        optimizer.step()
        for s in made if isinstance(made, list) else [made]:
            s.step(math.sin(epoch)) if type(s).__name__ == "ReduceLROnPlateau" else s.step()
        last = (made[-1] if isinstance(made, list) else made).get_last_lr()
        assert [float(lr) for lr in last] == [float(g["lr"]) for g in optimizer.param_groups]
    return found


SCHEDULES = {
    "step": lambda L, o: L.StepLR(o, 3), "step 1": lambda L, o: L.StepLR(o, 1, gamma=0.5), "step gamma": lambda L, o: L.StepLR(o, 2, gamma=1.5),
    "multi": lambda L, o: L.MultiStepLR(o, [2, 5, 5, 9]), "multi 0": lambda L, o: L.MultiStepLR(o, [0, 1], gamma=0.5),
    "multi none": lambda L, o: L.MultiStepLR(o, []), "exp": lambda L, o: L.ExponentialLR(o, 0.9), "exp 0": lambda L, o: L.ExponentialLR(o, 0.0),
    "linear": lambda L, o: L.LinearLR(o), "linear down": lambda L, o: L.LinearLR(o, 1.0, 0.1, 7), "linear to 0": lambda L, o: L.LinearLR(o, 0.5, 0.0, 3),
    "linear 1": lambda L, o: L.LinearLR(o, 0.5, total_iters=1), "linear flat": lambda L, o: L.LinearLR(o, 1.0, 1.0),
    "lambda": lambda L, o: L.LambdaLR(o, lambda e: 0.95**e), "lambda list": lambda L, o: L.LambdaLR(o, [lambda e: 1 / (e + 1), lambda e: e]),
    "cosine": lambda L, o: L.CosineAnnealingLR(o, 5), "cosine min": lambda L, o: L.CosineAnnealingLR(o, 4, eta_min=0.03),
    "cosine 1": lambda L, o: L.CosineAnnealingLR(o, 1), "cosine above": lambda L, o: L.CosineAnnealingLR(o, 3, eta_min=2.0),
    "chain": lambda L, o: [L.ExponentialLR(o, 0.9), L.StepLR(o, 2, 0.5)], "warm-up": lambda L, o: [L.LinearLR(o, 0.1, total_iters=4), L.CosineAnnealingLR(o, 12)],
    "plateau": lambda L, o: L.ReduceLROnPlateau(o, patience=1), "plateau max": lambda L, o: L.ReduceLROnPlateau(o, "max", 0.5, patience=0, cooldown=2),
    "plateau abs": lambda L, o: L.ReduceLROnPlateau(o, threshold=0.3, threshold_mode="abs", patience=0, min_lr=[0.01, 0.02]),
    "plateau eps": lambda L, o: L.ReduceLROnPlateau(o, patience=0, eps=0.05), "plateau 1": lambda L, o: L.ReduceLROnPlateau(o, patience=0, threshold=1.0),
    "plateau after": lambda L, o: [L.ExponentialLR(o, 0.99), L.ReduceLROnPlateau(o, patience=2, factor=0.3)],
}  # fmt: skip


@pytest.mark.parametrize("tensor", [False, True])
@pytest.mark.parametrize("name", SCHEDULES)
def test_schedules_go_where_torchs_go(name: str, tensor: bool) -> None:
    ours, theirs = (rates(library, SCHEDULES[name], [0.5, 0.1], 30, tensor) for library in (tt, torch))
    np.testing.assert_allclose(ours, theirs, rtol=2e-6 if tensor else 1e-12, atol=1e-12)


@pytest.mark.parametrize("name", [n for n in SCHEDULES if "plateau" not in n and n not in ("chain", "warm-up")])
def test_schedules_jump_and_go_on_as_torchs(name: str) -> None:
    def run(library: Any) -> list[Any]:
        optimizer = library.optim.SGD([{"params": [library.nn.Parameter(library.zeros(1))], "lr": lr} for lr in (0.5, 0.1)])
        schedule = SCHEDULES[name](library.optim.lr_scheduler, optimizer)
        found: list[Any] = []
        for epoch in (3, None, 7, 0, None, None):
            optimizer.step()
            schedule.step(epoch)
            found.append((schedule.last_epoch, schedule.get_last_lr()))
        other = library.optim.SGD([{"params": [library.nn.Parameter(library.zeros(1))]} for _ in range(2)])
        again = SCHEDULES[name](library.optim.lr_scheduler, other)
        other.load_state_dict(optimizer.state_dict())
        again.load_state_dict(schedule.state_dict())
        for _ in range(3):
            other.step()
            again.step()
            found.append((again.last_epoch, again.get_last_lr()))
        return found

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        ours, theirs = run(tt), run(torch)
    for (epoch, mine), (their_epoch, other) in zip(ours, theirs, strict=True):
        assert epoch == their_epoch
        np.testing.assert_allclose(mine, other, rtol=1e-12, atol=1e-12)


RESUMED = {
    "step": lambda L, o, e: L.StepLR(o, 2, last_epoch=e), "exp": lambda L, o, e: L.ExponentialLR(o, 0.9, last_epoch=e),
    "linear": lambda L, o, e: L.LinearLR(o, last_epoch=e), "cosine": lambda L, o, e: L.CosineAnnealingLR(o, 6, last_epoch=e),
    "multi": lambda L, o, e: L.MultiStepLR(o, [1, 4], last_epoch=e), "lambda": lambda L, o, e: L.LambdaLR(o, lambda t: 0.9**t, last_epoch=e),
}  # fmt: skip


@pytest.mark.parametrize("epoch", [0, 1, 3, 6])
@pytest.mark.parametrize("name", RESUMED)
def test_schedules_made_for_a_later_epoch(name: str, epoch: int) -> None:
    def run(library: Any) -> list[float]:
        optimizer = library.optim.SGD([{"params": [library.nn.Parameter(library.zeros(1))], "lr": 0.07, "initial_lr": 0.5}])
        schedule = RESUMED[name](library.optim.lr_scheduler, optimizer, epoch)
        found = [*schedule.get_last_lr()]
        for _ in range(10):
            optimizer.step()
            schedule.step()
            found += schedule.get_last_lr()
        return found

    np.testing.assert_allclose(run(tt), run(torch), rtol=1e-12)


@settings(deadline=None, max_examples=150)
@given(
    st.lists(st.floats(-3, 3) | st.sampled_from([0.0, -0.0, math.inf, -math.inf, math.nan]), max_size=25),
    st.fixed_dictionaries(
        {
            "mode": st.sampled_from(["min", "max"]), "factor": st.sampled_from([0.1, 0.5, 0.99]), "patience": st.integers(0, 3),
            "threshold": st.sampled_from([0.0, 1e-4, 0.3, 1.0, 2.0]), "threshold_mode": st.sampled_from(["rel", "abs"]),
            "cooldown": st.integers(0, 2), "min_lr": st.sampled_from([0.0, 0.05, [0.0, 0.2]]), "eps": st.sampled_from([1e-8, 0.1]),
        }
    ),
)  # fmt: skip
def test_plateaus_as_torchs(metrics: list[float], options: dict[str, Any]) -> None:
    def run(library: Any) -> list[Any]:
        optimizer = library.optim.SGD([{"params": [library.nn.Parameter(library.zeros(1))], "lr": lr} for lr in (0.5, 0.3)])
        schedule = library.optim.lr_scheduler.ReduceLROnPlateau(optimizer, **options)
        found = []
        for m in metrics:
            schedule.step(m)
            found.append((schedule.get_last_lr(), schedule.num_bad_epochs, schedule.cooldown_counter, repr(schedule.best)))
        return found

    assert run(tt) == run(torch)


def test_hooks_are_called_as_torchs() -> None:
    def run(library: Any) -> list[Any]:
        seen: list[Any] = []
        p = library.nn.Parameter(library.zeros(1))
        p.grad = library.ones(1)
        optimizer = library.optim.SGD([("p", p)], lr=0.5, momentum=0.5)
        optimizer.register_step_pre_hook(lambda o, args, kwargs: seen.append(("pre", args == (o,), kwargs)))
        optimizer.register_step_post_hook(lambda o, args, kwargs: seen.append(("post", args == (o,), kwargs, p.item())))
        optimizer.register_state_dict_pre_hook(lambda o: seen.append("state"))
        optimizer.register_state_dict_post_hook(lambda o, d: seen.append(sorted(d)))
        optimizer.register_load_state_dict_pre_hook(lambda o, d: seen.append(d["param_groups"][0]["param_names"]))
        optimizer.register_load_state_dict_post_hook(lambda o: seen.append(o is optimizer))
        optimizer.step()
        optimizer.load_state_dict(optimizer.state_dict())
        return seen

    assert run(tt) == run(torch)


@pytest.mark.filterwarnings("ignore")  # torch's own
@pytest.mark.parametrize("name", sorted(set(walk.INFOS) - set(walk.ABSENT)))
def test_pytorchs_own_inputs(name: str) -> None:
    """Fifty steps with each input of PyTorch's database; with the first of them, each library goes on from the other's state."""
    inputs = walk.inputs_of(name)
    said = [f"{what}, {t}: {walk.differs(name, s, t)}" for what, s in inputs for t in walk.BOUNDS]
    said += [f"{inputs[0][0]}, {t}, exchanged: {walk.differs(name, inputs[0][1], t, exchange=True)}" for t in walk.BOUNDS]
    assert not [line for line in said if not line.endswith(": ")], said


@pytest.mark.parametrize("name", sorted(walk.INFOS))
def test_pytorchs_own_bad_inputs(name: str) -> None:
    assert not walk.accepted(name)


def test_every_optimizer_is_walked_but_one() -> None:
    assert len(walk.INFOS) == 15
    assert set(walk.ABSENT) == {"SparseAdam"}
