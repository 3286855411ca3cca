"""GradScaler scales, skips and grows as PyTorch's."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import tritensor as tt
from tritensor import nn


def gpu_model() -> tuple[nn.Module, tt.optim.Optimizer]:
    tt.manual_seed(0)
    model = nn.Linear(3, 1).to("cuda")
    return model, tt.optim.SGD(model.parameters(), lr=0.1)


def test_a_scaled_step_is_the_step() -> None:
    x = tt.ones(4, 3, device="cuda")
    weights = []
    for scaled in (False, True):
        model, optimizer = gpu_model()
        scaler = tt.cuda.amp.GradScaler(init_scale=8.0, growth_interval=2, enabled=scaled)
        assert scaler.is_enabled() is scaled
        for _ in range(2):
            with tt.autocast("cuda", enabled=False):
                loss = model(x).square().mean()
            optimizer.zero_grad()
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)
            scaler.step(optimizer)
            scaler.update()
        weights.append(model.weight.detach().cpu())
        assert scaler.get_scale() == (16.0 if scaled else 1.0)
    assert tt.allclose(weights[0], weights[1], rtol=1e-6)


def test_a_step_with_an_infinite_gradient_is_left_out() -> None:
    model, optimizer = gpu_model()
    scaler = tt.amp.GradScaler("cuda", init_scale=4.0)
    before = model.weight.detach().clone()
    scaler.scale(model(tt.full((2, 3), float("inf"), device="cuda")).sum()).backward()
    assert scaler.step(optimizer) is None
    with pytest.raises(RuntimeError, match="already been called"):
        scaler.step(optimizer)
    scaler.update()
    assert scaler.get_scale() == 2.0
    assert tt.equal(model.weight, before)
    with pytest.raises(AssertionError, match="No inf checks"):
        scaler.update()
    again = tt.amp.GradScaler("cuda")
    again.load_state_dict(scaler.state_dict())
    assert again.get_scale() == 2.0
    assert [t.item() for t in scaler.scale([tt.tensor(1.0), tt.tensor(2.0)])] == [2.0, 4.0]
    scaler.unscale_(optimizer)
    with pytest.raises(RuntimeError, match="already been called on this optimizer"):
        scaler.unscale_(optimizer)


def test_a_step_waits_for_nothing() -> None:
    """The scale and the flag stay on the device; an optimizer of somebody else's may take the flag itself, too."""
    model, optimizer = gpu_model()
    scaler = tt.amp.GradScaler("cuda", init_scale=4.0)
    x = tt.ones(2, 3, device="cuda")
    for count in (None, 0):  # the optimizer makes its tables at the first step
        with tt.debug.sync_trace() as waits:
            scaler.scale(model(x).sum()).backward()
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad(set_to_none=False)
        assert count is None or waits.count == count

    class TakesTheFlag(tt.optim.SGD):
        _step_supports_amp_scaling = True

        def step(self, closure=None):
            seen.append((self.found_inf.item(), None if self.grad_scale is None else self.grad_scale.item()))

    seen: list[tuple[float, float | None]] = []
    other = TakesTheFlag(model.parameters(), lr=0.1)
    scaler.scale(model(x).sum()).backward()
    scaler.step(other)
    scaler.update()
    scaler.scale(model(x * float("nan")).sum()).backward()
    scaler.unscale_(other)
    scaler.step(other)
    assert seen == [(0.0, 4.0), (1.0, None)]


@np.errstate(invalid="ignore")
@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "RMSprop", "Adagrad"])
@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_a_step_that_is_left_out_changes_nothing(name: str, device: str) -> None:
    """Neither parameters nor states nor step counts; the next one goes on as if it had not been."""
    trained = []
    for bad in (False, True):
        tt.manual_seed(0)
        model = nn.Linear(3, 2, device=device)
        optimizer = getattr(tt.optim, name)(model.parameters(), lr=0.1)
        scaler = tt.amp.GradScaler(device, init_scale=4.0)
        for scale in (1.0, float("inf"), 1.0) if bad else (1.0, 1.0):
            optimizer.zero_grad()
            scaler.scale(model(tt.full((2, 3), scale, device=device)).sum()).backward()
            scaler.step(optimizer)
            scaler.update()
        states = [v for entry in optimizer.state.values() for v in entry.values()]
        trained.append([t.detach().cpu() for t in (*model.parameters(), *states) if isinstance(t, tt.Tensor)])
        assert scaler.get_scale() == (2.0 if bad else 4.0)
        assert not hasattr(optimizer, "found_inf") or optimizer.found_inf is None
    assert len(trained[0]) == len(trained[1])
    assert all(tt.equal(a, b) for a, b in zip(*trained, strict=True))


@np.errstate(over="ignore")
def test_growth_stops_before_infinity_and_settings_are_kept() -> None:
    model = nn.Linear(2, 1)
    optimizer = tt.optim.SGD(model.parameters(), lr=0.0)
    scaler = tt.amp.GradScaler("cpu", init_scale=2.0**127, growth_interval=1)
    (model(tt.zeros(1, 2)).sum() * 0).backward()
    scaler.scale(tt.ones(1))
    for _ in range(2):
        scaler.step(optimizer)
        scaler.update()
    assert scaler.get_scale() == 2.0**127
    scaler.update(8.0)
    assert scaler.get_scale() == 8.0
    scaler.set_growth_factor(3.0)
    scaler.set_backoff_factor(0.25)
    scaler.set_growth_interval(7)
    assert scaler.state_dict() == {"scale": 8.0, "growth_factor": 3.0, "backoff_factor": 0.25, "growth_interval": 7, "_growth_tracker": 0}
    again = pickle.loads(pickle.dumps(scaler))
    assert again.state_dict() == scaler.state_dict()
    with pytest.raises(AssertionError, match="growth factor must be > 1"):
        tt.amp.GradScaler("cpu", growth_factor=1.0)
    with pytest.raises(AssertionError, match="did not use scaler"):
        tt.amp.GradScaler("cpu").step(optimizer)
    half = nn.Linear(2, 1).half()
    half.weight.grad = tt.ones(1, 2, dtype=tt.float16)
    again.scale(tt.ones(1))
    with pytest.raises(ValueError, match="Attempting to unscale FP16"):
        again.unscale_(tt.optim.SGD(half.parameters(), lr=0.1))


def test_without_a_gpu_both_warn_and_do_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tt.cuda, "is_available", lambda: False)
    with pytest.warns(UserWarning, match="CUDA is not available"), tt.cuda.amp.autocast():
        pass
    with pytest.warns(UserWarning, match="CUDA is not available"):
        scaler = tt.cuda.amp.GradScaler()
    x = tt.ones(2)
    assert scaler.scale(x) is x
    assert scaler.state_dict() == {}
