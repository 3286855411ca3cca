"""The main job on the GPU: the digits example takes the CPU's steps, repeats itself, and learns as well as there."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import sys
import types
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tritensor as tt
from tests.gpu.scale import real, scaled
from tritensor.utils.data import TensorDataset

pytestmark = pytest.mark.gpu


def glyphs() -> Any:
    """1,797 images of 8 x 8 of ten different shapes, shifted and noisy, with their labels: sklearn's digits in form."""
    rng = np.random.default_rng(11)
    shapes = rng.random((10, 6, 6)) < 0.45
    target = rng.integers(0, 10, 1797)
    images = np.zeros((1797, 8, 8))
    for image, label, (down, right) in zip(images, target, rng.integers(0, 3, (1797, 2)), strict=True):
        image[down : down + 6, right : right + 6] = 14.0 * shapes[label]
    return types.SimpleNamespace(images=np.clip(images + rng.normal(0, 1.5, images.shape), 0, 16), target=target)


class _Bar(contextlib.nullcontext[Any]):
    """tqdm's bar where it is not installed: draws nothing."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(self)

    def update(self, n: int) -> None:
        self.n = n

    def set_description(self, text: str, refresh: bool = True) -> None:
        self.text = text


@pytest.fixture(scope="module")
def example() -> Iterator[Any]:
    """examples/train_digits.py, with stand-ins for the extras that this machine lacks."""
    stand_ins = {
        "tqdm": {"tqdm": _Bar},
        "matplotlib": {},
        "matplotlib.pyplot": {},
        "sklearn": {},
        "sklearn.datasets": {"load_digits": glyphs},
    }
    missing = [n for n in ("tqdm", "matplotlib", "sklearn") if importlib.util.find_spec(n) is None]
    with pytest.MonkeyPatch.context() as patch:
        for name, members in stand_ins.items():
            if name.partition(".")[0] in missing:
                module = types.ModuleType(name)
                vars(module).update(members)
                patch.setitem(sys.modules, name, module)
        yield importlib.import_module("examples.train_digits")


def losses(example: Any, device: str, images: int, batch: int, seed: int = 0) -> list[float]:
    """The losses of one epoch over the first images."""
    training, _ = example.split(example.digits(), tt.device("cpu"))
    few = TensorDataset(*(t[:images].to(device) for t in training.tensors))
    return example.train(few, device=tt.device(device), epochs=1, batch_size=batch, lr=2e-3, seed=seed).losses


def test_the_first_steps_are_the_cpus(example: Any) -> None:
    images, batch = scaled((320, 32), (2, 1))
    there, here = (losses(example, device, images, batch) for device in ("cuda", "cpu"))
    assert len(there) == images // batch
    np.testing.assert_allclose(there, here, rtol=0, atol=1e-3)


def test_the_same_seed_gives_the_same_losses(example: Any) -> None:
    images, batch = scaled((640, 32), (2, 1))
    first = losses(example, "cuda", images, batch)
    assert losses(example, "cuda", images, batch) == first
    assert losses(example, "cuda", images, batch, seed=1) != first


@pytest.mark.skipif(not real(), reason="twenty epochs take hours in the interpreter")
def test_it_learns_as_on_the_cpu(example: Any) -> None:
    training, test = example.split(example.digits(), tt.device("cuda"))
    run = example.train(training, device=tt.device("cuda"), epochs=20, batch_size=32, lr=2e-3, seed=0)
    guesses = example.predict(run.model, test).argmax(1)
    accuracy = (guesses == test.tensors[1].cpu()).float().mean().item()
    assert accuracy >= 0.97, f"accuracy {accuracy:.4f}"
