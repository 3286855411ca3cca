"""The ResNet example: it reads a folder of images, trains, and leaves a checkpoint that a new network takes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import tritensor as tt
from examples import train_resnet


@pytest.fixture
def images(tmp_path: Path) -> Path:
    """Two classes: dark and bright."""
    rng = np.random.default_rng(0)
    for name, level in (("dark", 40), ("bright", 200)):
        folder = tmp_path / "images" / name
        folder.mkdir(parents=True)
        for i in range(10):
            Image.fromarray(np.uint8(level + rng.integers(-30, 30, (9, 12, 3)))).save(folder / f"{i}.png")
    return tmp_path / "images"


def test_a_folder_of_images_is_learned(images: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    accuracy = train_resnet.main(
        ["--device", "cpu", "--images", str(images), "--size", "8", "--epochs", "1", "--batch-size", "8", "--out", str(out)]
    )
    assert 0 <= accuracy <= 1
    assert "16 training images, 4 test images, 2 classes" in capsys.readouterr().out
    assert (out / "train_resnet.png").stat().st_size > 1000
    again = tt.models.resnet18(2, small_images=True)
    assert not again.load_state_dict(tt.load(out / "resnet.safetensors")).missing_keys


def test_digits_are_enlarged() -> None:
    pixels, labels, classes = train_resnet.digits(16)
    assert pixels.shape == (1797, 16, 16, 3)
    assert len(labels) == 1797
    assert classes == list("0123456789")


def test_a_folder_without_classes_is_told(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="at least two"):
        train_resnet.folder(tmp_path, 8)
