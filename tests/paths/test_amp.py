"""GradScaler scales, skips and grows as PyTorch's; autocast says that nothing is cast."""

from __future__ import annotations

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


def test_autocast_does_not_pretend() -> None:
    assert not tt.amp.is_autocast_available("cpu")
    with pytest.raises(NotImplementedError, match=r"give enabled=False, or convert the model"):
        tt.autocast("cpu", dtype=tt.bfloat16)
    with pytest.raises(ValueError, match="device_type 3"):
        tt.amp.autocast(3)

    @tt.amp.autocast("cuda", enabled=False)
    def f(x: tt.Tensor) -> tt.Tensor:
        return x + 1

    assert f(tt.ones(1)).item() == 2.0
    assert tt.amp.custom_fwd(len) is tt.cuda.amp.custom_bwd(len) is len


def test_without_a_gpu_both_warn_and_do_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tt.cuda, "is_available", lambda: False)
    with pytest.warns(UserWarning, match="CUDA is not available"), tt.cuda.amp.autocast():
        pass
    with pytest.warns(UserWarning, match="CUDA is not available"):
        scaler = tt.cuda.amp.GradScaler()
    x = tt.ones(2)
    assert scaler.scale(x) is x
    assert scaler.state_dict() == {}
