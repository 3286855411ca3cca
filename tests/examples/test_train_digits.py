"""The main job: LeNet on real digits, a few steps of it on both devices, its repeatability, and all of it in time."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import tritensor as tt
from examples import train_digits
from tritensor.utils.data import TensorDataset

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def digits() -> tuple[TensorDataset, TensorDataset]:
    return train_digits.split(train_digits.digits(), tt.device("cpu"))


def losses(data: TensorDataset, images: int, seed: int = 0, device: str = "cpu", batch_size: int = 32) -> list[float]:
    """The losses of one epoch over the first images."""
    few = TensorDataset(*(t[:images].to(device) for t in data.tensors))
    return train_digits.train(few, device=tt.device(device), epochs=1, batch_size=batch_size, lr=2e-3, seed=seed).losses


def test_the_data_is_the_real_set(digits: tuple[TensorDataset, TensorDataset]) -> None:
    training, test = digits
    assert (len(training), len(test)) == (1437, 360)
    images, labels = (tt.cat([a, b]) for a, b in zip(training.tensors, test.tensors, strict=True))
    assert tuple(images.shape) == (1797, 1, 32, 32)
    assert np.bincount(labels.numpy()).tolist() == [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]
    assert abs(images.mean().item()) < 1e-5
    assert len({i.tobytes() for i in images.numpy()}) == 1797, "a training image is also a test image"


def test_lenet_is_the_tutorials() -> None:
    model = train_digits.LeNet()
    assert sum(p.numel() for p in model.parameters()) == 61_706
    assert model(tt.zeros(3, 1, 32, 32)).shape == (3, 10)


def test_the_same_seed_gives_the_same_numbers(digits: tuple[TensorDataset, TensorDataset]) -> None:
    first = losses(digits[0], 200)
    assert len(first) == 7
    assert losses(digits[0], 200) == first
    assert losses(digits[0], 200, seed=1) != first


@pytest.mark.slow
def test_the_device_agrees_with_the_cpu(digits: tuple[TensorDataset, TensorDataset]) -> None:
    there, here = (losses(digits[0], 6, device=device, batch_size=2) for device in ("cuda", "cpu"))
    assert len(there) == 3
    np.testing.assert_allclose(there, here, rtol=0, atol=1e-4)


def test_a_file_that_reads_otherwise_is_noticed(digits: tuple[TensorDataset, TensorDataset], tmp_path: Path) -> None:
    few = TensorDataset(*(t[:50] for t in digits[1].tensors))
    model = train_digits.LeNet()
    chances = train_digits.predict(model, few)
    np.testing.assert_allclose(chances.sum(1).numpy(), 1, rtol=1e-5)
    train_digits.keep(model, tmp_path / "good.safetensors", few, chances)
    with pytest.raises(SystemExit, match="reads the test images differently"):
        train_digits.keep(model, tmp_path / "bad.safetensors", few, 1 - chances)


def test_the_whole_job(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    start = time.perf_counter()
    accuracy = train_digits.main(["--device", "cpu", "--seed", "0", "--out", str(tmp_path / "made")])
    assert accuracy >= 0.97
    assert time.perf_counter() - start < 90
    shown = capsys.readouterr()
    assert f"test accuracy {accuracy:.4f}" in shown.out
    assert "confusion matrix" in shown.out
    assert "images/s" in shown.err, "no progress bar"
    assert (tmp_path / "made" / "train_digits.png").read_bytes().startswith(b"\x89PNG")
    weights = tt.load(tmp_path / "made" / "lenet.safetensors")
    assert weights.keys() == train_digits.LeNet().state_dict().keys()


@pytest.mark.parametrize("missing", ["tqdm", "matplotlib", "sklearn"])
def test_a_missing_extra_is_one_clear_line(missing: str) -> None:
    code = f"import sys; sys.modules[{missing!r}] = None; import runpy; runpy.run_path('examples/train_digits.py', run_name='__main__')"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, env={"PYTHONPATH": str(ROOT), "PATH": ""})
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == f"This example needs {missing}, which is not installed: pip install tritensor[examples]"


def test_bad_options_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        train_digits.main(["--epochs", "0"])
    assert "--epochs and --batch-size are at least 1" in capsys.readouterr().err
