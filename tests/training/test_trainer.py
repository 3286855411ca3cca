"""Trainer beside loops written by hand: the same numbers, accumulated, clipped, scaled; validation, schedules, what it refuses."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tritensor as tt
import tritensor.nn.functional as F
from tritensor import nn, optim
from tritensor.data import DataLoader, TensorDataset
from tritensor.training import Callback, EarlyStopping, Trainer

DEVICES = ["cpu", "cuda"]
X = tt.randn(12, 3, generator=tt.Generator().manual_seed(1))
Y = X.sum(1, keepdim=True) * 0.5


def linear(device: str = "cpu", rate: float = 0.1) -> tuple[nn.Module, optim.Optimizer]:
    tt.manual_seed(0)
    model = nn.Linear(3, 1).to(device)
    return model, optim.SGD(model.parameters(), lr=rate, momentum=0.9)


def pairs(*sizes: int) -> list[Any]:
    """X and Y in batches of these sizes."""
    return list(zip(tt.split(X, list(sizes)), tt.split(Y, list(sizes)), strict=True))


def trained(data: Any, device: str = "cpu", validation: Any = None, **given: Any) -> Trainer:
    trainer = Trainer(*linear(device), **({"loss": F.mse_loss, "epochs": 2, "progress": False} | given))
    trainer.fit(data, validation)
    return trainer


@pytest.mark.parametrize("device", DEVICES)
def test_it_is_the_loop_that_one_writes(device: str) -> None:
    model, optimizer = linear(device)
    expected = []
    for _ in range(2):
        for x, y in pairs(6, 6):
            loss = F.mse_loss(model(x.to(device)), y.to(device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            expected.append(loss.item())
    trainer = trained(pairs(6, 6), device)
    assert trainer.losses == expected
    assert tt.equal(trainer.model.weight, model.weight)
    assert [(h["epoch"], h["step"]) for h in trainer.history] == [(0, 2), (1, 4)]
    assert trainer.history[1]["loss"] == sum(expected[2:]) / 2
    assert trainer.history[0]["lr"] == 0.1


@pytest.mark.parametrize("sizes", [(4, 4, 4), (5, 5, 2), (3, 1, 4, 4), (4, 4, 2, 2)], ids=str)
def test_accumulated_batches_are_the_large_batch(sizes: tuple[int, ...]) -> None:
    """Of any sizes; the last step of an epoch has what is left."""
    trainer = trained(pairs(*sizes), accumulate=3)
    large = [sum(sizes[i : i + 3]) for i in range(0, len(sizes), 3)]
    alone = trained(pairs(*large))
    tt.testing.assert_close(trainer.model.weight, alone.model.weight, rtol=1e-6, atol=1e-7)
    assert np.allclose(trainer.losses, alone.losses, rtol=1e-6)
    assert trainer.step == 2 * len(large)


class Looks(Callback):
    """Notes the norm and the largest element of the gradients that the optimizer gets."""

    def on_fit_start(self, trainer: Trainer) -> None:
        self.found: list[tuple[float, float]] = []

        def look(*_: Any) -> None:
            g = tt.cat([p.grad.flatten() for p in trainer.model.parameters()])
            self.found.append((g.norm().item(), g.abs().max().item()))

        trainer.optimizer.register_step_pre_hook(look)


def test_gradients_are_clipped() -> None:
    free, by_norm, by_value = Looks(), Looks(), Looks()
    trained(pairs(12), callbacks=[free])
    trained(pairs(12), callbacks=[by_norm], clip_norm=0.05)
    trained(pairs(12), callbacks=[by_value], clip_value=0.01)
    assert free.found[0][0] > 0.1
    assert by_norm.found[0][0] == pytest.approx(0.05, rel=1e-4)
    assert by_value.found[0][1] == pytest.approx(0.01)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("device", DEVICES)
def test_a_scaled_step_with_an_infinite_gradient_is_left_out(device: str) -> None:
    class Breaks(Callback):
        def on_batch_start(self, trainer: Trainer, batch: Any) -> Any:
            self.before = trainer.model.weight.detach().clone()
            return (batch[0] * math.inf, batch[1]) if trainer.step == 1 else None

        def on_batch_end(self, trainer: Trainer) -> None:
            moved.append(not tt.equal(self.before, trainer.model.weight))

    moved: list[bool] = []
    scaler = tt.amp.GradScaler(device, init_scale=8.0)
    trainer = trained(pairs(4, 4, 4), device, epochs=1, scaler=scaler, callbacks=[Breaks()])
    assert moved == [True, False, True]
    assert scaler.get_scale() == 4.0
    assert not math.isfinite(trainer.losses[1])
    assert all(math.isfinite(v) for v in trainer.losses[::2])


def test_scaling_changes_nothing_but_the_scale() -> None:
    """Clipping, accumulation and hooks before the step see unscaled gradients."""
    looks = [Looks(), Looks()]
    plain = trained(pairs(4, 4, 4), accumulate=2, clip_norm=0.1, callbacks=[looks[0]])
    scaled = trained(pairs(4, 4, 4), accumulate=2, clip_norm=0.1, callbacks=[looks[1]], scaler=tt.amp.GradScaler("cpu", init_scale=1024.0))
    assert plain.losses == scaled.losses
    assert np.allclose(looks[0].found, looks[1].found, rtol=1e-6)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_autocast_computes_in_the_type_and_float16_is_scaled() -> None:
    types = []

    def step(model: nn.Module, batch: Any) -> Any:
        types.append(model(batch[0]).dtype)
        return F.mse_loss(model(batch[0]).float(), batch[1])

    assert trained(pairs(12), loss=None, step=step, autocast=tt.bfloat16).scaler is None
    half = trained(pairs(12), loss=None, step=step, autocast=tt.float16)
    assert half.scaler is not None
    assert half.scaler.is_enabled()
    assert types == [tt.bfloat16] * 2 + [tt.float16] * 2


def test_validation_is_a_mean_over_samples_and_changes_nothing() -> None:
    model = nn.Sequential(nn.Dropout(0.5), nn.Linear(3, 1), nn.BatchNorm1d(1))
    model[2].eval()  # frozen, and stays so
    tt.manual_seed(4)
    trainer = Trainer(
        model,
        optim.SGD(model.parameters(), lr=0.1),
        F.mse_loss,
        epochs=1,
        progress=False,
        metrics={"most": lambda out, y: out.max() + 0 * tt.rand(())},
    )
    kept = tt.get_rng_state()
    found = trainer.validate(pairs(5, 7))
    assert tt.equal(kept, tt.get_rng_state())
    assert model.training
    assert not model[2].training
    with tt.no_grad():
        outputs = model[2](model[1](X))
        largest = [outputs[:5].max().item(), outputs[5:].max().item()]
    assert found == pytest.approx({"val_loss": F.mse_loss(outputs, Y).item(), "val_most": (5 * largest[0] + 7 * largest[1]) / 12})
    with pytest.raises(ValueError, match=r"Trainer\.evaluate: the loader gave no batch"):
        trainer.validate([])


def test_with_and_without_validation_the_losses_are_the_same() -> None:
    data = DataLoader(TensorDataset(X, Y), 4, shuffle=True)
    plain = trained(data)
    often = trained(data, validation=DataLoader(TensorDataset(X, Y), 4, shuffle=True), validate_every=2)
    assert plain.losses == often.losses
    assert [h["step"] for h in often.history] == [2, 3, 4, 6]
    assert all("val_loss" in h for h in often.history)


def test_the_end_is_the_first_that_is_reached() -> None:
    by_steps = trained(pairs(4, 4, 4), epochs=None, steps=4, validation=pairs(12))
    assert (by_steps.step, by_steps.epoch, by_steps.batch_index) == (4, 1, 1)
    assert [h["step"] for h in by_steps.history] == [3, 4]
    whole = trained(pairs(4, 4, 4), epochs=9, steps=6)
    assert (whole.step, whole.epoch, whole.batch_index) == (6, 2, 0), "the last step of an epoch ends it"
    assert trained(pairs(4, 4, 4), epochs=1, steps=50).step == 3


def test_each_fit_begins_anew() -> None:
    trainer = trained(pairs(12))
    again = trainer.fit(pairs(12))
    assert [h["step"] for h in again] == [1, 2]
    assert again[0]["loss"] < 0.5 * trained(pairs(12), epochs=1).history[0]["loss"], "the model is the one that was trained"


@pytest.mark.parametrize(("interval", "expected"), [("epoch", [0.1, 0.1, 0.05, 0.05]), ("step", [0.1, 0.05, 0.025, 0.0125])])
def test_schedules_by_epoch_and_by_step(interval: str, expected: list[float]) -> None:
    class Rates(Callback):
        def on_before_optimizer_step(self, trainer: Trainer) -> None:
            rates.append(trainer.optimizer.param_groups[0]["lr"])

    rates: list[float] = []
    model, optimizer = linear()
    scheduler = optim.lr_scheduler.StepLR(optimizer, 1, 0.5)
    given = {"epochs": 2, "progress": False, "callbacks": [Rates()]}
    Trainer(model, optimizer, F.mse_loss, scheduler=scheduler, scheduler_interval=interval, **given).fit(pairs(6, 6))
    assert rates == expected


def test_a_plateau_is_seen_in_what_is_monitored() -> None:
    model, optimizer = linear()
    scheduler = optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=0, threshold=1e9)
    Trainer(model, optimizer, F.mse_loss, scheduler=scheduler, epochs=3, progress=False).fit(pairs(12))
    assert optimizer.param_groups[0]["lr"] < 0.1
    wrong = Trainer(model, optimizer, F.mse_loss, scheduler=scheduler, epochs=1, monitor="val_f1", progress=False)
    with pytest.raises(KeyError, match=r"ReduceLROnPlateau looks at 'val_f1', and known is"):
        wrong.fit(pairs(12))


def test_a_step_of_ones_own() -> None:
    """Its batch is whatever the loader gives; metrics get the outputs and the batch."""

    def step(model: nn.Module, batch: Any) -> Any:
        outputs = model(batch["x"])
        return F.mse_loss(outputs, batch["y"]), outputs

    data = [{"x": x, "y": y, "name": ["a"]} for x, y in pairs(4, 4, 4)]
    trainer = trained(data, loss=None, step=step, metrics={"sum": lambda out, batch: (out - batch["y"]).sum()}, validation=data)
    assert trainer.losses == trained(pairs(4, 4, 4)).losses
    assert "val_sum" in trainer.history[0]


class Two(nn.Module):
    """A model of two arguments."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(3, 1)

    def forward(self, x: tt.Tensor, scale: tt.Tensor) -> tt.Tensor:
        return self.inner(x) * scale


@pytest.mark.parametrize(
    "pack", [lambda x, s: (x, s), lambda x, s: [x, s], lambda x, s: {"x": x, "scale": s}], ids=["tuple", "list", "dict"]
)
def test_inputs_that_are_several(pack: Callable[..., Any]) -> None:
    model = Two()
    trainer = Trainer(model, optim.SGD(model.parameters(), lr=0.1), F.mse_loss, epochs=1, progress=False)
    trainer.fit([(pack(X, tt.ones(12, 1)), Y)])
    assert len(trainer.losses) == 1


@pytest.mark.parametrize("device", DEVICES)
def test_a_loss_that_is_no_number_names_its_step_and_batch(device: str) -> None:
    data = pairs(4, 4, 4)
    data[1] = (data[1][0] * math.nan, data[1][1])
    model, optimizer = linear(device)
    trainer = Trainer(model, optimizer, F.mse_loss, epochs=1, accumulate=3, progress=False)
    with pytest.raises(FloatingPointError, match=r"^Trainer.fit: the loss is nan at step 0, batch 1 of epoch 0; "):
        trainer.fit(data)
    if device == "cpu":
        assert math.isfinite(model.weight.sum().item()), "the step was not taken"


@pytest.mark.parametrize(
    ("loss", "kind", "said"),
    [
        (lambda o, y: (o - y) ** 2, tt.ShapeError, r"the loss is \(4, 1\), not one number; reduce it"),
        (lambda o, y: 3.0, TypeError, "the loss is a float; give a tensor"),
        (lambda o, y: F.mse_loss(o.detach(), y), tt.GradError, "does not depend on a parameter that requires a gradient"),
    ],
    ids=["vector", "float", "detached"],
)
def test_a_loss_that_cannot_be_differentiated(loss: Any, kind: type[Exception], said: str) -> None:
    with pytest.raises(kind, match=f"^Trainer.fit: at step 0, batch 0 of epoch 0, .*{said}"):
        trained(pairs(4, 4, 4), loss=loss)


@pytest.mark.parametrize(
    ("data", "kind", "said"),
    [
        ([X], TypeError, r"a batch is a Tensor \(12, 3\), and a loss takes a pair"),
        ([(X, Y, Y)], TypeError, "a batch is a tuple of 3, and"),
        ([{"x": X}], TypeError, "a batch is a dict of 1, and"),
        ([], ValueError, "train_loader gave no batch in epoch 0"),
        (iter([(X, Y)]), TypeError, "train_loader is a list_iterator, which is used up after one epoch"),
        (3, TypeError, "train_loader is an int"),
        (None, TypeError, "train_loader is None"),
    ],
    ids=["tensor", "triple", "dict", "empty", "iterator", "number", "none"],
)
def test_data_that_cannot_be_trained_on(data: Any, kind: type[Exception], said: str) -> None:
    with pytest.raises(kind, match=f"^Trainer.fit: {said}"):
        trained(data)


def test_what_cannot_be_trained_is_told_before_the_first_step() -> None:
    model, optimizer = linear()
    before = model.weight.detach().clone()
    with pytest.raises(ValueError, match="validation_loader has no batch; give one that is not empty, or None"):
        Trainer(model, optimizer, F.mse_loss, epochs=1, progress=False).fit(pairs(12), [])
    assert tt.equal(model.weight, before)
    with pytest.raises(ValueError, match="optimizer is LBFGS, whose step computes the loss several times"):
        Trainer(model, tt.optim.LBFGS(model.parameters()), F.mse_loss, epochs=1)


def test_a_parameter_of_another_model() -> None:
    model, optimizer = linear()
    with pytest.raises(ValueError, match="none of the optimizer's 2 parameters is one of the model's"):
        Trainer(nn.Linear(3, 1), optimizer, F.mse_loss, epochs=1)
    model.requires_grad_(False)
    with pytest.raises(tt.GradError, match="none of the optimizer's 2 parameters requires a gradient"):
        Trainer(model, optimizer, F.mse_loss, epochs=1)


def test_callbacks_of_another_kind() -> None:
    for given, said in (
        ([EarlyStopping], r"a class EarlyStopping; make one: EarlyStopping\(\)"),
        ([print], "a builtin_function_or_method; give instances"),
    ):
        with pytest.raises(TypeError, match=f"Trainer: callbacks has {said}"):
            Trainer(*linear(), F.mse_loss, epochs=1, callbacks=given)
    with pytest.raises(TypeError, match="Wrong: on_batch_begin is no hook of Callback, nothing would call it; name it on_batch_end"):
        type("Wrong", (Callback,), {"on_batch_begin": lambda self, trainer: None})


def test_a_folder_that_cannot_be_written_to_is_told_before_training(tmp_path: Any) -> None:
    (tmp_path / "file").write_text("")
    trainer = Trainer(*linear(), F.mse_loss, epochs=1, checkpoint=tmp_path / "file" / "out", progress=False)
    with pytest.raises(OSError, match=r"Trainer\.fit: no folder for checkpoints: Not a directory; give"):
        trainer.fit(pairs(12))
    assert trainer.step == 0
