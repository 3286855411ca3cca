"""Schedules in torch: each sequence of rates and momenta over forty steps, resumed halfway; what their states look like, and what they refuse."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import tritensor as tt

pytestmark = [pytest.mark.peer, pytest.mark.filterwarnings("ignore")]

STEPS = 40


class Falling:
    """A function with a state."""

    def __init__(self, by: float) -> None:
        self.by = by

    def __call__(self, x: float) -> float:
        return 1 / (1 + self.by * x)


def swa_utils(schedules: Any) -> Any:
    """Its library's module beside lr_scheduler."""
    return (torch if schedules is torch.optim.lr_scheduler else tt).optim.swa_utils


SCHEDULES: dict[str, Callable[[Any, Any], Any]] = {
    "lambda": lambda s, o: s.LambdaLR(o, lambda e: 0.95**e),
    "lambdas": lambda s, o: s.LambdaLR(o, [Falling(0.1), lambda e: 0.5 + e % 3]),
    "multiplicative": lambda s, o: s.MultiplicativeLR(o, lambda e: 0.9 + 0.2 * (e % 2)),
    "step": lambda s, o: s.StepLR(o, 7, 0.5),
    "multistep": lambda s, o: s.MultiStepLR(o, [3, 11, 11, 30], 0.3),
    "constant": lambda s, o: s.ConstantLR(o, 0.25, 9),
    "linear": lambda s, o: s.LinearLR(o, 0.1, 0.7, 12),
    "exponential": lambda s, o: s.ExponentialLR(o, 0.93),
    "polynomial": lambda s, o: s.PolynomialLR(o, 25, 2.5),
    "cosine": lambda s, o: s.CosineAnnealingLR(o, 9, 0.01),
    "restarts": lambda s, o: s.CosineAnnealingWarmRestarts(o, 5, 2, 0.01),
    "restarts of one length": lambda s, o: s.CosineAnnealingWarmRestarts(o, 6),
    "cyclic": lambda s, o: s.CyclicLR(o, 0.01, 0.2, 4, 7),
    "cyclic, halved": lambda s, o: s.CyclicLR(o, [0.01, 0.02], [0.2, 0.3], 5, mode="triangular2", base_momentum=0.7, max_momentum=0.95),
    "cyclic, by steps": lambda s, o: s.CyclicLR(o, 0.01, 0.2, 5, mode="exp_range", gamma=0.95, cycle_momentum=False),
    "cyclic, own": lambda s, o: s.CyclicLR(o, 0.01, 0.2, 5, scale_fn=Falling(0.5), scale_mode="iterations"),
    "one cycle": lambda s, o: s.OneCycleLR(o, 0.5, STEPS + 2),
    "one cycle, linear, three": lambda s, o: s.OneCycleLR(
        o, [0.5, 0.3], epochs=7, steps_per_epoch=6, anneal_strategy="linear", three_phase=True, base_momentum=0.8
    ),
    "one cycle, without momentum": lambda s, o: s.OneCycleLR(o, 0.5, STEPS + 2, pct_start=0.5, cycle_momentum=False, div_factor=3.0),
    "sequential": lambda s, o: s.SequentialLR(o, [s.LinearLR(o, 0.1, total_iters=5), s.CosineAnnealingLR(o, 20), s.ExponentialLR(o, 0.9)], [5, 28]),
    "sequential, restarts": lambda s, o: s.SequentialLR(o, [s.ConstantLR(o, 0.1, 4), s.CosineAnnealingWarmRestarts(o, 6, 2)], [4]),
    "sequential of one": lambda s, o: s.SequentialLR(o, [s.StepLR(o, 4)], []),
    "chained": lambda s, o: s.ChainedScheduler([s.ConstantLR(o, 0.1, 5), s.ExponentialLR(o, 0.9)]),
    "chained in sequential": lambda s, o: s.SequentialLR(
        o, [s.ChainedScheduler([s.LinearLR(o, 0.5, total_iters=6), s.ExponentialLR(o, 0.9)], o), s.StepLR(o, 3)], [20]
    ),
    "swa": lambda s, o: swa_utils(s).SWALR(o, [0.05, 0.02], 7),
    "swa, linear": lambda s, o: swa_utils(s).SWALR(o, 0.05, 9, "linear"),
    "swa at once": lambda s, o: swa_utils(s).SWALR(o, 0.05, 0),
    "plateau": lambda s, o: s.ReduceLROnPlateau(o, "min", 0.5, 2, cooldown=1),
}  # fmt: skip


def optimizer(library: Any, kind: str, tensor: bool = False) -> Any:
    groups = [{"params": [library.nn.Parameter(library.zeros(2))], "lr": lr} for lr in (0.1, 0.3)]
    for group in groups:
        group["lr"] = library.tensor(group["lr"], dtype=library.float64) if tensor else group["lr"]
    return library.optim.SGD(groups, momentum=0.9) if kind == "SGD" else library.optim.Adam(groups)


def settings(o: Any) -> list[Any]:
    return [[float(g["lr"]), float(g.get("momentum", 0.0)), [float(b) for b in g.get("betas", ())]] for g in o.param_groups]


def advance(library: Any, name: str, o: Any, s: Any, t: int) -> None:
    o.step()
    s.step(*([float(np.cos(t * t))] if name == "plateau" else []))


def run(library: Any, name: str, kind: str, tensor: bool = False) -> tuple[list[Any], Any]:
    """The settings of all groups, step by step; at half the way everything goes through state dicts into new objects."""
    make = SCHEDULES[name]
    o = optimizer(library, kind, tensor)
    s = make(library.optim.lr_scheduler, o)
    found, states = [settings(o)], None
    for t in range(STEPS):
        advance(library, name, o, s, t)
        found.append(settings(o))
        assert [float(x) for x in s.get_last_lr()] == [g[0] for g in found[-1]]
        if t == STEPS // 2:
            states = {k: type(v).__name__ for k, v in s.state_dict().items()}
            kept = copy.deepcopy((o.state_dict(), s.state_dict()))
            o = optimizer(library, kind, tensor)
            s = make(library.optim.lr_scheduler, o)
            o.load_state_dict(kept[0])
            s.load_state_dict(kept[1])
    return found, states


OWN = {"_scale_fn_ref"}  # PyTorch's way to find a function again


@pytest.mark.parametrize("kind", ["SGD", "Adam"])
@pytest.mark.parametrize("name", SCHEDULES)
def test_sequences(name: str, kind: str) -> None:
    (ours, state), (theirs, other) = run(tt, name, kind), run(torch, name, kind)
    np.testing.assert_allclose(flat(ours), flat(theirs), rtol=1e-12)
    assert {k: v for k, v in state.items() if k not in OWN} == {k: v for k, v in other.items() if k not in OWN}


@pytest.mark.parametrize("name", ["step", "cosine", "one cycle", "sequential", "plateau", "cyclic"])
def test_sequences_of_a_rate_that_is_a_tensor(name: str) -> None:
    np.testing.assert_allclose(flat(run(tt, name, "SGD", True)[0]), flat(run(torch, name, "SGD", True)[0]), rtol=1e-12)


def kinds(x: Any) -> Any:
    """What tensors there are, and of what type and shape, in lists and dicts."""
    if isinstance(x, dict):
        return {k: kinds(v) for k, v in x.items() if k not in ("params", "_scale_fn_ref")}
    if isinstance(x, list | tuple):
        return [kinds(v) for v in x]
    return (str(x.dtype).split(".")[-1], tuple(x.shape)) if hasattr(x, "dtype") else type(x).__name__


@pytest.mark.parametrize("name", SCHEDULES)
def test_rates_that_are_tensors_are_told_as_tensors(name: str) -> None:
    def told(library: Any) -> Any:
        o = optimizer(library, "SGD")
        o.param_groups[0]["lr"] = library.tensor(0.1)
        s = SCHEDULES[name](library.optim.lr_scheduler, o)
        first = s.get_last_lr()
        for t in range(6):
            advance(library, name, o, s, t)
        return kinds([first, s.get_last_lr(), s.state_dict(), o.param_groups]), [float(x) for x in first]

    (ours, begun), (theirs, there) = told(tt), told(torch)
    assert ours == theirs
    np.testing.assert_allclose(begun, there, rtol=1e-6)


def flat(found: Any) -> np.ndarray:
    return np.array([[lr, m, *betas] for step in found for lr, m, betas in step])


@pytest.mark.parametrize(
    "name", [n for n in SCHEDULES if n not in ("plateau",) and "swa" not in n and "sequential" not in n and "chained" not in n]
)
def test_jumps_to_an_epoch(name: str) -> None:
    """The deprecated step(epoch)."""

    def rates(library: Any) -> Any:
        o = optimizer(library, "SGD")
        s = SCHEDULES[name](library.optim.lr_scheduler, o)
        found = []
        for epoch in (1, 5, 4, 17, None, None):
            o.step()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                s.step(epoch)
            found.append(settings(o))
        return flat(found)

    np.testing.assert_allclose(rates(tt), rates(torch), rtol=1e-12)


def test_parts_of_epochs() -> None:
    def rates(library: Any) -> Any:
        o = optimizer(library, "SGD")
        s = library.optim.lr_scheduler.CosineAnnealingWarmRestarts(o, 3, 2)
        found = []
        for k in range(40):
            s.step(k / 4)
            found.append(settings(o))
        return flat(found)

    np.testing.assert_allclose(rates(tt), rates(torch), rtol=1e-12)


BAD: list[Callable[[Any, Any], Any]] = [
    lambda s, o: s.StepLR(3, 1), lambda s, o: s.LambdaLR(torch.nn.Linear, abs), lambda s, o: s.ReduceLROnPlateau("sgd"), lambda s, o: s.OneCycleLR(None, 0.1, 3),
    lambda s, o: s.CyclicLR([], 0.1, 0.2), lambda s, o: s.LambdaLR(o, [abs]), lambda s, o: s.MultiplicativeLR(o, [abs] * 3), lambda s, o: s.MultiplicativeLR(o, 3),
    lambda s, o: s.ConstantLR(o, 1.5), lambda s, o: s.LinearLR(o, 0.0), lambda s, o: s.LinearLR(o, 0.5, 1.5), lambda s, o: s.CosineAnnealingWarmRestarts(o, 0),
    lambda s, o: s.CosineAnnealingWarmRestarts(o, 1.5), lambda s, o: s.CosineAnnealingWarmRestarts(o, 2, 0), lambda s, o: s.CosineAnnealingWarmRestarts(o, 2, 1, "x"),
    lambda s, o: s.CosineAnnealingWarmRestarts(o, 2).step(-1), lambda s, o: s.CyclicLR(o, [0.1], 0.2), lambda s, o: s.CyclicLR(o, 0.1, [0.2] * 3),
    lambda s, o: s.CyclicLR(o, 0.1, 0.2, mode="x"), lambda s, o: s.OneCycleLR(o, 0.1), lambda s, o: s.OneCycleLR(o, 0.1, 0), lambda s, o: s.OneCycleLR(o, 0.1, 2.5),
    lambda s, o: s.OneCycleLR(o, 0.1, epochs=2), lambda s, o: s.OneCycleLR(o, 0.1, epochs=-2, steps_per_epoch=2), lambda s, o: s.OneCycleLR(o, 0.1, 9, pct_start=2.0),
    lambda s, o: s.OneCycleLR(o, 0.1, 9, anneal_strategy="x"), lambda s, o: [r.step() for r in [s.OneCycleLR(o, 0.1, 3)] for _ in range(5)],
    lambda s, o: s.SequentialLR(o, [], []), lambda s, o: s.SequentialLR(o, [s.StepLR(o, 1)], [3]), lambda s, o: s.SequentialLR(o, [3], []),
    lambda s, o: s.SequentialLR(o, [s.ReduceLROnPlateau(o)], []), lambda s, o: s.ChainedScheduler([]), lambda s, o: s.ChainedScheduler([s.ReduceLROnPlateau(o)]),
    lambda s, o: s.ChainedScheduler([s.StepLR(o, 1), 3]), lambda s, o: s.ReduceLROnPlateau(o, factor=1.0), lambda s, o: s.ReduceLROnPlateau(o, "x"),
    lambda s, o: s.ReduceLROnPlateau(o, threshold_mode="x"), lambda s, o: s.ReduceLROnPlateau(o, min_lr=[0.1]), lambda s, o: s.StepLR(o, 1, last_epoch=3),
]  # fmt: skip


@pytest.mark.parametrize("k", range(len(BAD)))
def test_what_torch_refuses_is_refused(k: int) -> None:
    with pytest.raises(Exception) as theirs:
        BAD[k](torch.optim.lr_scheduler, optimizer(torch, "SGD"))
    with pytest.raises(theirs.type if theirs.type is not AttributeError else TypeError):
        BAD[k](tt.optim.lr_scheduler, optimizer(tt, "SGD"))


@pytest.mark.parametrize("library", [torch, tt], ids=["torch", "tritensor"])
def test_schedules_of_two_optimizers(library: Any) -> None:
    s, one, two = library.optim.lr_scheduler, optimizer(library, "SGD"), optimizer(library, "SGD")
    for make in (lambda: s.SequentialLR(one, [s.StepLR(two, 1)], []), lambda: s.ChainedScheduler([s.StepLR(one, 1), s.StepLR(two, 1)])):
        with pytest.raises(ValueError, match="expects all schedulers to belong to the same optimizer"):
            make()


@pytest.mark.parametrize("kind", ["order", "get_lr", "epoch", "overridden"])
def test_warnings(kind: str) -> None:
    for library in (torch, tt):
        o = optimizer(library, "SGD")
        s = library.optim.lr_scheduler.StepLR(o, 3)
        match kind:
            case "order":
                with pytest.warns(UserWarning, match=r"Detected call of `lr_scheduler.step\(\)` before `optimizer.step\(\)`"):
                    s.step()
            case "get_lr":
                with pytest.warns(UserWarning, match=r"please use `get_last_lr\(\)`"):
                    s.get_lr()
            case "epoch":
                o.step()
                with pytest.warns(UserWarning, match="deprecated"):
                    s.step(3)
            case "overridden":
                o.step = lambda: None
                with pytest.warns(UserWarning, match=r"Seems like `optimizer.step\(\)` has been overridden"):
                    s.step()
