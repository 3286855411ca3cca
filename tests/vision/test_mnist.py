"""MNIST and its kin: the original files, gzipped or not, where they lie; damage is named; downloads are checked and go on."""

from __future__ import annotations

import gzip
import pickle
import zipfile
from pathlib import Path

import numpy as np
import pytest

import tritensor as tt
from tests.hub.faulty_server import Served, Server
from tests.vision import data_files
from tests.vision.data_files import idx, md5, mnist, write
from tritensor.ground.errors import CheckpointError, DownloadError
from tritensor.vision import datasets
from tritensor.vision import transforms as T
from tritensor.vision.datasets.files import PublishedFile
from tritensor.vision.datasets.idx import read_idx

FILES = mnist()
PIXELS = {
    half: np.frombuffer(gzip.decompress(FILES[f"{half}-images-idx3-ubyte.gz"])[16:], np.uint8).reshape(-1, 28, 28)
    for half in ("train", "t10k")
}


@pytest.mark.parametrize("folder", ["MNIST/raw", "MNIST", "."])
@pytest.mark.parametrize("form", ["gz", "plain", "dotted"])
def test_files_are_read_where_they_lie(tmp_path: Path, folder: str, form: str) -> None:
    for name, content in FILES.items():
        plain = name.removesuffix(".gz")
        at = {"gz": name, "plain": plain, "dotted": plain.replace("-idx", ".idx")}[form]
        write(tmp_path / folder, {at: content if form == "gz" else gzip.decompress(content)})
    train, test = datasets.MNIST(tmp_path), datasets.MNIST(str(tmp_path), train=False, download=True)  # nothing is missing
    assert (len(train), len(test)) == (12, 5)
    assert np.array_equal(train.data.numpy(), PIXELS["train"])
    assert (train.data.dtype, train.targets.dtype) == (tt.uint8, tt.int64)
    assert train.targets.tolist() == [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1]
    image, label = test[3]
    assert (image.mode, image.size, label) == ("L", (28, 28), 3)
    assert np.array_equal(np.asarray(image), PIXELS["t10k"][3])


def test_as_a_training_script_uses_it(tmp_path: Path) -> None:
    write(tmp_path, FILES)
    transform = T.Compose([T.ToTensor(), T.Normalize((0.1307,), (0.3081,))])
    data = datasets.MNIST(tmp_path, transform=transform, target_transform=lambda y: y + 100)
    x, y = next(iter(tt.utils.data.DataLoader(data, batch_size=4)))
    assert (x.shape, y.tolist()) == ((4, 1, 28, 28), [100, 101, 102, 103])
    assert np.allclose(x.numpy()[:, 0], (PIXELS["train"][:4] / 255 - 0.1307) / 0.3081, atol=1e-5)
    assert data.class_to_idx["7 - seven"] == 7
    data.data, data.targets = data.data[:5], data.targets[:5]  # as scripts make a set smaller
    assert (len(data), data[4][1]) == (5, 104)
    assert repr(data).splitlines()[:8] == [  # the transform is not indented, as it is not in torchvision
        "Dataset MNIST",
        "    Number of datapoints: 5",
        f"    Root location: {tmp_path}",
        "    Split: Train",
        "    StandardTransform",
        "Transform: Compose(",
        "               ToTensor()",
        "               Normalize(mean=(0.1307,), std=(0.3081,))",
    ]
    del data.target_transform, data.transforms
    assert len(pickle.loads(pickle.dumps(datasets.MNIST(tmp_path)))) == 12


def test_what_is_missing_is_said(tmp_path: Path) -> None:
    told = rf"MNIST: train-images-idx3-ubyte.gz or train-images-idx3-ubyte is in none of {tmp_path}/MNIST/raw, .*give download=True, or put the file"
    with pytest.raises(FileNotFoundError, match=told):
        datasets.MNIST(tmp_path)
    with pytest.raises(RuntimeError, match="FashionMNIST: "):
        datasets.FashionMNIST(tmp_path)


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("train-images-idx3-ubyte.gz", FILES["train-images-idx3-ubyte.gz"][:-30], "the file is damaged"),
        ("train-images-idx3-ubyte.gz", gzip.compress(gzip.decompress(FILES["train-images-idx3-ubyte.gz"])[:-1]), "cannot hold 3 sizes"),
        ("train-images-idx3-ubyte.gz", b"<html>not found</html>", "opens with b'<htm', which no IDX file does"),
        ("train-images-idx3-ubyte.gz", b"", "opens with b''"),
        ("train-images-idx3-ubyte.gz", b"\0\0\x08\xff\0\0", "cannot hold 255 sizes"),
        ("train-images-idx3-ubyte.gz", b"\0\0\x08\x03" + b"\xff" * 12, "the file is cut off or damaged"),
        ("train-labels-idx1-ubyte.gz", idx(np.zeros(3, np.uint8)), "these are no images with a label each"),
        ("train-images-idx3-ubyte.gz", idx(np.zeros((12, 28, 28), np.float32)), "float32"),
    ],
)  # fmt: skip
def test_damage_is_named(tmp_path: Path, name: str, content: bytes, told: str) -> None:
    write(tmp_path, {**FILES, name: content})
    with pytest.raises(CheckpointError, match=told) as error:
        datasets.MNIST(tmp_path)
    assert str(tmp_path / name) in str(error.value)


def test_every_type_of_the_format(tmp_path: Path) -> None:
    for kind in data_files.CODES:
        values = np.arange(24).reshape(2, 3, 4).astype(kind)
        (tmp_path / kind).write_bytes(idx(values))
        found = read_idx(tmp_path / kind)
        assert found.dtype == values.dtype
        assert np.array_equal(found, values)
    (tmp_path / "scalar").write_bytes(idx(np.array(7, np.uint8)))
    assert read_idx(tmp_path / "scalar").shape == ()
    for sizes in ([1] * 65, [0, 2**32 - 1, 2**32 - 1, 2**32 - 1]):  # what numpy has no array for
        (tmp_path / "odd").write_bytes(bytes([0, 0, 8, len(sizes)]) + np.array(sizes, ">u4").tobytes() + bytes(min(sizes)))
        with pytest.raises(CheckpointError, match=rf"odd: holds {len(sizes)} dimensions of sizes \(.*, which no data set has"):
            read_idx(tmp_path / "odd")


def test_download(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(datasets.MNIST, "resources", tuple((name, md5(content)) for name, content in FILES.items()))
    monkeypatch.setattr(datasets.MNIST, "mirrors", (server.url + "/dead/", server.url + "/spoilt/", server.url + "/good/"))
    for name, content in FILES.items():
        server.files["/spoilt/" + name] = Served(content[::-1])
        server.files["/good/" + name] = Served(content, drops=[100])
    data = datasets.MNIST(tmp_path, download=True)
    assert np.array_equal(data.data.numpy(), PIXELS["train"])
    assert sorted(p.name for p in (tmp_path / "MNIST" / "raw").iterdir()) == sorted(FILES)
    assert server.gets("/good/t10k-labels-idx1-ubyte.gz") in ([""], ["", "bytes=100-"])
    asked = len(server.asked)
    (tmp_path / "MNIST" / "raw" / "train-labels-idx1-ubyte.gz").unlink()
    monkeypatch.setenv("TRITENSOR_DATASET_MIRROR", server.url + "/good")
    datasets.MNIST(tmp_path, download=True)  # what is missing, alone, and from our own mirror first
    assert [p for _, p, _ in server.asked[asked:]] == ["/good/train-labels-idx1-ubyte.gz"]
    monkeypatch.setenv("TRITENSOR_OFFLINE", "1")
    assert len(datasets.MNIST(tmp_path, download=True)) == 12
    (tmp_path / "MNIST" / "raw" / "train-labels-idx1-ubyte.gz").unlink()
    told = rf"train-labels-idx1-ubyte.gz of MNIST could not be had: .*OFFLINE.*put the file \(md5 [0-9a-f]+\) at {tmp_path}/MNIST/raw/train-labels"
    with pytest.raises(DownloadError, match=told):
        datasets.MNIST(tmp_path, download=True)


def test_torchvisions_paths(server: Server, tmp_path: Path) -> None:
    from tritensor.vision.datasets import utils
    from tritensor.vision.datasets.fakedata import FakeData
    from tritensor.vision.datasets.vision import VisionDataset
    from tritensor.vision.models.resnet import BasicBlock, resnet18
    from tritensor.vision.transforms.autoaugment import RandAugment
    from tritensor.vision.transforms.transforms import Compose

    assert (FakeData, VisionDataset, RandAugment, Compose) == (datasets.FakeData, datasets.VisionDataset, T.RandAugment, T.Compose)
    assert isinstance(resnet18(num_classes=2).layer1[0], BasicBlock)
    with zipfile.ZipFile(tmp_path / "made.zip", "w") as made:
        made.writestr("in/a.txt", b"words")
    content = (tmp_path / "made.zip").read_bytes()
    server.files["/x.zip"] = Served(content)
    utils.download_and_extract_archive(server.url + "/x.zip", tmp_path / "d", md5=md5(content))
    assert (tmp_path / "d" / "in" / "a.txt").read_bytes() == b"words"
    assert utils.check_integrity(tmp_path / "d" / "x.zip", md5(content))
    assert utils.check_md5(tmp_path / "d" / "x.zip", utils.calculate_md5(tmp_path / "made.zip"))
    assert not utils.check_integrity(tmp_path / "d" / "x.zip", "0" * 32)
    assert not utils.check_integrity(tmp_path / "nowhere")
    assert utils.extract_archive(tmp_path / "d" / "x.zip", remove_finished=True) == str(tmp_path / "d")
    assert not (tmp_path / "d" / "x.zip").exists()


def test_kin() -> None:
    for kind in (datasets.FashionMNIST, datasets.KMNIST):
        assert len(kind.classes) == 10
        assert [name for name, _ in kind.resources] == [name for name, _ in datasets.MNIST.resources]
        assert not {sum for _, sum in kind.resources} & {sum for _, sum in datasets.MNIST.resources}
    assert datasets.FashionMNIST.classes[9] == "Ankle boot"
    assert {s: len(c) for s, c in datasets.EMNIST.classes_split_dict.items()} == {
        "byclass": 62, "bymerge": 47, "balanced": 47, "letters": 27, "digits": 10, "mnist": 10,
    }  # fmt: skip


def test_emnist_of_its_archive(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = mnist("emnist-letters-{half}-{kind}-idx{dims}-ubyte", test="test")
    with zipfile.ZipFile(tmp_path / "gzip.zip", "w") as made:
        for name, content in {**files, "emnist-digits-train-images-idx3-ubyte.gz": b"other"}.items():
            made.writestr("gzip/" + name, content)
    content = (tmp_path / "gzip.zip").read_bytes()
    server.files["/gzip.zip"] = Served(content)
    monkeypatch.setattr(datasets.EMNIST, "archive", PublishedFile("gzip.zip", md5(content), (server.url + "/",)))
    with pytest.raises(FileNotFoundError, match="EMNIST: emnist-letters-train-images"):
        datasets.EMNIST(tmp_path / "root", "letters")
    assert len(datasets.EMNIST(tmp_path / "root", "letters", download=True)) == 12
    assert len(datasets.EMNIST(tmp_path / "root", "letters", train=False, download=True)) == 5
    assert server.gets("/gzip.zip") == [""]
    assert not (tmp_path / "root/EMNIST/raw/gzip/emnist-digits-train-images-idx3-ubyte.gz").exists()
    with pytest.raises(ValueError, match="split 'all'; give one of 'byclass'"):
        datasets.EMNIST(tmp_path, "all")
