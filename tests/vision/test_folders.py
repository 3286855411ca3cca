"""Folders of images, made-up images, the bundled digits, and the base of all data sets."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import tritensor as tt
from tritensor.vision import datasets
from tritensor.vision import transforms as T
from tritensor.vision.datasets import folder as folders


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name, colour in {"cat/2.png": 10, "cat/1.JPG": 20, "cat/deep/3.bmp": 30, "ant/x.png": 40, "cat/notes.txt": 0}.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".txt":
            path.write_text("no image")
        else:
            Image.new("L", (6, 5), colour).save(path)
    return tmp_path


def test_a_folder_for_each_class(root: Path) -> None:
    data = datasets.ImageFolder(root, T.ToTensor())
    assert (data.classes, data.class_to_idx) == (["ant", "cat"], {"ant": 0, "cat": 1})
    assert [(str(Path(p).relative_to(root)), y) for p, y in data.samples] == [
        ("ant/x.png", 0),
        ("cat/1.JPG", 1),
        ("cat/2.png", 1),
        ("cat/deep/3.bmp", 1),
    ]
    assert (data.imgs, data.targets) == (data.samples, [0, 1, 1, 1])
    x, y = data[2]
    assert (x.shape, y) == ((3, 5, 6), 1)
    assert np.allclose(x.numpy(), 10 / 255)
    assert len(datasets.ImageFolder(root, is_valid_file=lambda path: path.endswith("x.png"), allow_empty=True)) == 1
    assert next(iter(tt.utils.data.DataLoader(data, batch_size=4)))[1].tolist() == [0, 1, 1, 1]


def test_files_of_other_kinds(root: Path) -> None:
    data = datasets.DatasetFolder(root, lambda path: Path(path).read_text(), (".txt",), allow_empty=True, target_transform=str)
    assert data[0] == ("no image", "1")
    told = rf"make_dataset: {root}: no file that ends in .txt for ant; allow_empty=True lets it pass"
    with pytest.raises(FileNotFoundError, match=told):
        datasets.DatasetFolder(root, str, (".txt",))
    with pytest.raises(ValueError, match="extensions and is_valid_file: give one of them"):
        folders.make_dataset(root)
    with pytest.raises(ValueError, match="class_to_idx is empty"):
        folders.make_dataset(root, {}, ".png")
    with pytest.raises(FileNotFoundError, match="has no folder in it"):
        datasets.ImageFolder(root / "ant")
    with pytest.raises(FileNotFoundError):
        datasets.ImageFolder(root / "nowhere")


def test_images_that_are_none_are_named(root: Path) -> None:
    (root / "ant" / "x.png").write_bytes(b"no image")
    with pytest.raises(OSError, match=r"ant/x.png is no image that Pillow knows"):
        datasets.ImageFolder(root)[0]
    whole = (root / "cat" / "2.png").read_bytes()
    (root / "cat" / "2.png").write_bytes(whole[:50])
    with pytest.raises(OSError, match=r"cat/2.png"):
        datasets.ImageFolder(root)[2]
    (root / "cat" / "2.png").unlink()
    with pytest.raises(FileNotFoundError):
        folders.default_loader(root / "cat" / "2.png")


def test_made_up_images_are_the_same_each_time() -> None:
    data = datasets.FakeData(5, (3, 8, 9), 4, T.PILToTensor())
    x, y = data[3]
    again, label = datasets.FakeData(5, (3, 8, 9), 4, T.PILToTensor())[3]
    assert (x.shape, 0 <= y < 4, y) == ((3, 8, 9), True, label)
    assert tt.equal(x, again)
    assert not tt.equal(x, data[2][0])
    assert tt.equal(datasets.FakeData(5, (3, 8, 9), 4, T.PILToTensor(), random_offset=1)[2][0], x)
    before = tt.get_rng_state()
    data[1]
    assert tt.equal(tt.get_rng_state(), before)
    with pytest.raises(IndexError, match="index 5 is out of range for 5 samples"):
        data[5]
    assert sum(1 for _ in data) == 5


def test_the_bundled_digits(monkeypatch: pytest.MonkeyPatch) -> None:
    from sklearn.datasets import load_digits

    bunch = load_digits()
    data = datasets.Digits()
    assert np.array_equal(data.data.numpy(), bunch.images.astype(np.uint8))
    assert np.array_equal(data.targets.numpy(), bunch.target)
    assert (len(datasets.Digits(True)), len(datasets.Digits(False))) == (1437, 360)
    assert np.array_equal(datasets.Digits(False).data.numpy(), data.data.numpy()[1437:])
    image, label = datasets.Digits(transform=T.PILToTensor())[0]
    assert np.array_equal(image[0].numpy(), np.rint(bunch.images[0] * 255 / 16))
    assert (label, data.class_to_idx["3"]) == (0, 3)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(
        ModuleNotFoundError, match=r"Digits: come with scikit-learn, which is not installed: pip install 'tritensor\[examples\]'"
    ):
        datasets.Digits()


def test_the_base() -> None:
    class Own(datasets.VisionDataset):
        def __getitem__(self, index: int) -> object:
            return self.transforms(index, -index)

        def __len__(self) -> int:
            return 3

    data = Own("~", transform=lambda x: x + 1, target_transform=lambda y: y * 2)
    assert data[2] == (3, -4)
    assert "~" not in str(data.root)
    assert Own(transforms=lambda x, y: (y, x))[2] == (-2, 2)
    assert len(data + data) == 6
    with pytest.raises(ValueError, match="Own: transforms and transform/target_transform are given"):
        Own(transforms=min, transform=abs)
    with pytest.raises(NotImplementedError, match="VisionDataset has no __len__"):
        len(datasets.VisionDataset())
    with pytest.raises(NotImplementedError, match="VisionDataset has no __getitem__"):
        datasets.VisionDataset()[0]


def test_without_pillow_the_extra_is_named(monkeypatch: pytest.MonkeyPatch, root: Path) -> None:
    for name in [n for n in sys.modules if n.partition(".")[0] == "PIL"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(ModuleNotFoundError, match=r"pil_loader: needs Pillow, which is not installed: pip install 'tritensor\[vision\]'"):
        datasets.ImageFolder(root)[0]
    assert T.CenterCrop(2)(tt.ones(1, 4, 4)).shape == (1, 2, 2)  # tensors need none
