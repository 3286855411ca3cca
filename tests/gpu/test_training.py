"""The main job on the GPU: the digits example takes the CPU's steps, repeats itself, and learns as well as there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tritensor as tt
from tests.gpu.scale import real, scaled
from tests.gpu.stand_ins import example
from tritensor.utils.data import TensorDataset

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module")
def digits() -> Iterator[Any]:
    """examples/train_digits.py."""
    with example("train_digits") as module:
        yield module


def losses(digits: Any, device: str, images: int, batch: int, seed: int = 0) -> list[float]:
    """The losses of one epoch over the first images."""
    training, _ = digits.split(digits.digits(), tt.device("cpu"))
    few = TensorDataset(*(t[:images].to(device) for t in training.tensors))
    return digits.train(few, device=tt.device(device), epochs=1, batch_size=batch, lr=2e-3, seed=seed).losses


def test_the_first_steps_are_the_cpus(digits: Any) -> None:
    images, batch = scaled((320, 32), (2, 1))
    there, here = (losses(digits, device, images, batch) for device in ("cuda", "cpu"))
    assert len(there) == images // batch
    np.testing.assert_allclose(there, here, rtol=0, atol=1e-3)


def test_the_same_seed_gives_the_same_losses(digits: Any) -> None:
    images, batch = scaled((640, 32), (2, 1))
    first = losses(digits, "cuda", images, batch)
    assert losses(digits, "cuda", images, batch) == first
    assert losses(digits, "cuda", images, batch, seed=1) != first


@pytest.mark.skipif(not real(), reason="twenty epochs take hours in the interpreter")
def test_it_learns_as_on_the_cpu(digits: Any) -> None:
    training, test = digits.split(digits.digits(), tt.device("cuda"))
    run = digits.train(training, device=tt.device("cuda"), epochs=20, batch_size=32, lr=2e-3, seed=0)
    guesses = digits.predict(run.model, test).argmax(1)
    accuracy = (guesses == test.tensors[1].cpu()).float().mean().item()
    assert accuracy >= 0.97, f"accuracy {accuracy:.4f}"
