"""Metrics of training and validation, evaluation and prediction: means over samples, objects that count for themselves, outputs in their nest."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import tritensor as tt
import tritensor.nn.functional as F
from tests.training.test_trainer import DEVICES, X, Y, linear, pairs, trained
from tritensor import nn, optim
from tritensor.ground.errors import ShapeError
from tritensor.training import Trainer


class Largest:
    """Counts for itself, as torchmetrics' objects do."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.reset()

    def reset(self) -> None:
        self.value = -math.inf
        self.calls.append("reset")

    def update(self, outputs: tt.Tensor, targets: tt.Tensor) -> None:
        assert not outputs.requires_grad or not tt.is_grad_enabled()
        self.value = max(self.value, targets.max().item())

    def compute(self) -> Any:
        return tt.tensor(self.value)

    def state_dict(self) -> dict[str, Any]:
        return {"value": self.value}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.value = state["value"]


def error(outputs: tt.Tensor, targets: tt.Tensor) -> tt.Tensor:
    return (outputs - targets).abs().mean()


@pytest.mark.parametrize("device", DEVICES)
def test_objects_and_functions_over_validation_and_training(device: str) -> None:
    largest, own = Largest(), Largest()
    trainer = trained(
        pairs(5, 7), device, pairs(4, 8), metrics={"largest": largest, "error": error}, train_metrics={"largest": own, "error": error}
    )
    with tt.no_grad():
        whole = error(trainer.model(X.to(device)), Y.to(device)).item()
    last = trainer.history[-1]
    assert last["val_error"] == pytest.approx(whole, rel=1e-6), "the mean over samples, not over batches"
    assert last["val_largest"] == last["largest"] == Y.max().item()
    assert last["error"] < trainer.history[0]["error"], "of one epoch, not of all"
    assert trainer.evaluate(pairs(12)) == pytest.approx({"loss": last["val_loss"], "error": whole, "largest": Y.max().item()}, rel=1e-6)
    assert set(trainer.validate(pairs(12))) == {"val_loss", "val_error", "val_largest"}


def test_metrics_of_training_are_of_the_epoch_so_far() -> None:
    trainer = trained(pairs(6, 6), epochs=1, train_metrics={"mean": lambda out, y: y.mean()}, validate_every=1)
    assert trainer.history[0]["mean"] == pytest.approx(Y[:6].mean().item(), rel=1e-6)
    assert trainer.history[1]["mean"] == pytest.approx(Y.mean().item(), rel=1e-6, abs=1e-7)


def test_metrics_that_are_on_the_host_beside_a_loss_on_a_gpu() -> None:
    given = {"host": lambda out, y: (out - y).abs().mean().cpu(), "number": lambda out, y: 2}
    found = trained(pairs(12), "cuda", pairs(5, 7), metrics={**given, "gpu": error}).history[-1]
    assert found["val_host"] == pytest.approx(found["val_gpu"], rel=1e-6)
    assert found["val_number"] == 2.0


def test_what_is_no_metric() -> None:
    both = Largest()
    for given, said in (
        ({"metrics": [error]}, "metrics is a list of 1; give {name"),
        ({"metrics": {"a": 3}}, r"metrics\['a'\] is an int; give a function"),
        ({"metrics": {"a": both}, "train_metrics": {"a": both}}, "one object stands in metrics or train_metrics twice"),
    ):
        with pytest.raises((TypeError, ValueError), match=f"Trainer: {said}"):
            Trainer(*linear(), F.mse_loss, epochs=1, **given)


@pytest.mark.parametrize("device", DEVICES)
def test_predictions_are_the_outputs_of_all_batches(device: str) -> None:
    trainer = trained(pairs(12), device)
    trainer.model.train()
    with tt.no_grad():
        expected = trainer.model(X.to(device))
    for loader in (pairs(5, 7), [X[:5], X[5:]], [(X[:5],), (X[5:],)], [{"input": X}], iter([X])):
        found = trainer.predict(loader)
        assert found.device.type == device
        tt.testing.assert_close(found, expected, rtol=1e-6, atol=1e-6)
    assert trainer.model.training
    doubled = trainer.predict([X], step=lambda model, batch: {"y": (model(batch), batch)})
    assert doubled["y"][1].shape == X.shape
    with pytest.raises(ValueError, match=r"Trainer\.predict: the loader gave no batch"):
        trainer.predict([])
    with pytest.raises(TypeError, match=r"Trainer\.predict: an output is a float; give tensors"):
        trainer.predict([X], step=lambda model, batch: 1.0)
    with pytest.raises(TypeError, match=r"Trainer\.evaluate: loader is None; give"):
        trainer.evaluate(None)


def test_what_fails_in_evaluation_leaves_the_model_in_its_mode() -> None:
    trainer = trained(pairs(12))
    with pytest.raises(tt.ShapeError):
        trainer.evaluate([(X[:, :2], Y)])
    assert trainer.model.training
    assert tt.is_grad_enabled()


def test_norms_of_gradients_are_kept() -> None:
    trainer = trained(pairs(6, 6), clip_norm=math.inf)
    model, optimizer = linear()
    expected = []
    for x, y in pairs(6, 6) * 2:
        optimizer.zero_grad()
        F.mse_loss(model(x), y).backward()
        expected.append(math.sqrt(sum(float((p.grad**2).sum()) for p in model.parameters())))
        optimizer.step()
    assert np.allclose(trainer.grad_norms, expected, rtol=1e-5)
    assert trained(pairs(6, 6)).grad_norms == []
    tt.testing.assert_close(trainer.model.weight, model.weight)


def test_loaders_of_unknown_length() -> None:
    class Endless:
        def __iter__(self) -> Any:
            return iter(pairs(4, 4, 4))

    model = nn.Linear(3, 1)
    trainer = Trainer(model, optim.SGD(model.parameters(), lr=0.1), F.mse_loss, epochs=2, accumulate=2, progress=False)
    trainer.fit(Endless(), Endless())
    assert (trainer.step, trainer.epoch, trainer.total_steps) == (4, 2, None)
    assert trainer.predict(Endless()).shape == (12, 1)


def refuse(outputs: Any, targets: Any) -> Any:
    raise ZeroDivisionError("none counted")


@pytest.mark.parametrize(
    ("given", "kind", "said"),
    [
        ({"metrics": {"m": lambda out, y: out.expand(-1, 3)}}, ShapeError, r"metric 'm' is \(12, 3\) for a batch of 12; give one number"),
        ({"metrics": {"m": lambda out, y: None}}, TypeError, "metric 'm' is a NoneType; give one number"),
        ({"metrics": {"m": refuse}}, ZeroDivisionError, "none counted"),
        ({"metrics": {"loss": error}}, ValueError, "metrics has 'loss', which the history holds already"),
        ({"train_metrics": {"lr": error}}, ValueError, "train_metrics has 'lr', which the history holds already"),
        ({"metrics": {"m": error}, "train_metrics": {"val_m": error}}, ValueError, "train_metrics has 'val_m'"),
    ],
)
def test_metrics_that_make_no_sense_are_named(given: dict[str, Any], kind: type[Exception], said: str) -> None:
    with pytest.raises(kind, match=said) as told:
        trained(pairs(12), epochs=1, validation=pairs(12), **given)
    if "m" in given.get("metrics", {}) and "train_metrics" not in given:
        assert "in metric 'm'" in told.value.__notes__


def test_a_number_for_each_sample_is_a_mean_over_samples() -> None:
    each = trained(pairs(12), epochs=1, validation=pairs(5, 7), metrics={"m": lambda out, y: (out - y).abs().flatten(), "error": error})
    assert each.history[-1]["val_m"] == pytest.approx(each.history[-1]["val_error"], rel=1e-6)
