"""CIFAR: python batches as they were published, read without running them; binary batches; archives; hostile pickles."""

from __future__ import annotations

import builtins
import io
import os
import pickle
import random
import tarfile
from pathlib import Path

import numpy as np
import pytest

from tests.hub.faulty_server import Served, Server
from tests.vision.data_files import md5, python2_pickle, rows, write
from tritensor.ground.errors import CheckpointError
from tritensor.vision import datasets
from tritensor.vision.datasets.batch_pickle import read_batch

NAMES = ["plane", "car", "bird", "cat"]
TRAIN, TEST = [(rows(3), [0, 1, 2]), (rows(2), [3, 1])], [(rows(4), [3, 2, 1, 0])]
FILES = {
    f"data_batch_{i + 1}": python2_pickle({"batch_label": "b", "labels": y, "data": x, "filenames": ["a"] * len(y)})
    for i, (x, y) in enumerate(TRAIN)
}
FILES["test_batch"] = python2_pickle({"labels": TEST[0][1], "data": TEST[0][0]})
META = {"batches.meta": python2_pickle({"label_names": NAMES, "num_vis": 3072})}


class Small(datasets.CIFAR10):
    """CIFAR-10 with the sums of the files here."""

    train_list = tuple((name, md5(FILES[name])) for name in ("data_batch_1", "data_batch_2"))
    test_list = (("test_batch", md5(FILES["test_batch"])),)
    meta = {"filename": "batches.meta", "key": "label_names", "md5": md5(META["batches.meta"])}  # noqa: RUF012


def archive(folder: str, files: dict[str, bytes]) -> bytes:
    held = io.BytesIO()
    with tarfile.open(fileobj=held, mode="w:gz") as made:
        for name, content in files.items():
            info = tarfile.TarInfo(f"{folder}/{name}")
            info.size = len(content)
            made.addfile(info, io.BytesIO(content))
    return held.getvalue()


def check(train: datasets.CIFAR10, test: datasets.CIFAR10) -> None:
    want = np.concatenate([x for x, _ in TRAIN]).reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
    assert np.array_equal(train.data, want)
    assert (train.targets, test.targets) == ([0, 1, 2, 3, 1], [3, 2, 1, 0])
    assert (train.classes, train.class_to_idx["cat"]) == (NAMES, 3)
    image, label = train[4]
    assert (image.mode, image.size, label) == ("RGB", (32, 32), 1)
    assert np.array_equal(np.asarray(image), want[4])
    assert len(test) == 4


def test_python_batches(tmp_path: Path) -> None:
    write(tmp_path / "cifar-10-batches-py", {**FILES, **META})
    check(Small(tmp_path), Small(tmp_path, train=False, download=True))
    assert "Split: Test" in repr(Small(tmp_path, train=False))
    trusted = pickle.loads(FILES["data_batch_1"], encoding="latin1")  # Python's own reader, of a file made above
    found = read_batch(tmp_path / "cifar-10-batches-py" / "data_batch_1")
    assert found.keys() == trusted.keys()
    assert np.array_equal(found["data"], trusted["data"])
    assert found["filenames"] == trusted["filenames"]


@pytest.mark.parametrize("protocol", range(6))
@pytest.mark.parametrize("order", ["C", "F"])
def test_batches_of_newer_pythons(tmp_path: Path, protocol: int, order: str) -> None:
    values = np.asarray(rows(2), order=order)  # type: ignore[call-overload]
    (tmp_path / "b").write_bytes(pickle.dumps({"data": values, "labels": [1, 2], "name": "x"}, protocol))
    if protocol == 5:  # its arrays go by another road, which these files never take
        with pytest.raises(CheckpointError, match=r"_frombuffer|is no batch"):
            read_batch(tmp_path / "b")
        return
    found = read_batch(tmp_path / "b")
    assert np.array_equal(found["data"], values)
    assert (found["labels"], found["name"]) == ([1, 2], "x")


def test_binary_batches(tmp_path: Path) -> None:
    def binary(parts: list[tuple[np.ndarray, list[int]]], coarse: bool = False) -> bytes:
        return b"".join(b"\x01" * coarse + bytes([y]) + x.tobytes() for xs, ys in parts for x, y in zip(xs, ys, strict=True))

    files = {f"data_batch_{i + 1}.bin": binary([part]) for i, part in enumerate(TRAIN)}
    write(
        tmp_path / "cifar-10-batches-bin",
        {**files, "test_batch.bin": binary(TEST), "batches.meta.txt": "\n".join(NAMES).encode() + b"\n\n"},
    )
    check(Small(tmp_path), Small(tmp_path, train=False, download=True))
    write(
        tmp_path / "cifar-100-binary",
        {"train.bin": binary(TRAIN, True), "test.bin": binary(TEST, True), "fine_label_names.txt": b"a\nb\nc\nd\n"},
    )
    hundred = datasets.CIFAR100(tmp_path)
    assert (hundred.targets, hundred.classes) == ([0, 1, 2, 3, 1], ["a", "b", "c", "d"])
    assert np.array_equal(hundred.data, Small(tmp_path).data)
    (tmp_path / "cifar-10-batches-bin" / "data_batch_2.bin").write_bytes(files["data_batch_2.bin"][:-1])
    with pytest.raises(CheckpointError, match=r"data_batch_2.bin: its 6,145 bytes are no rows of 3073"):
        Small(tmp_path)
    (tmp_path / "cifar-10-batches-bin" / "data_batch_2.bin").unlink()
    with pytest.raises(FileNotFoundError, match=r"data_batch_2.bin is in none of"):
        Small(tmp_path)


def test_download_and_archives(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = archive("cifar-10-batches-py", {**FILES, **META})
    server.files["/cifar-10-python.tar.gz"] = Served(content, drops=[1000])
    monkeypatch.setattr(Small, "mirrors", (server.url + "/",))
    monkeypatch.setattr(Small, "tgz_md5", md5(content))
    with pytest.raises(
        FileNotFoundError, match=r"Small: cifar-10-batches-py or cifar-10-batches-bin or cifar-10-python.tar.gz is in none of"
    ):
        Small(tmp_path)
    check(Small(tmp_path, download=True), Small(tmp_path, train=False, download=True))
    assert server.gets("/cifar-10-python.tar.gz") == ["", "bytes=1000-"]
    damaged = tmp_path / "cifar-10-batches-py" / "test_batch"
    damaged.write_bytes(damaged.read_bytes()[:-1] + b"?")
    with pytest.raises(CheckpointError, match=rf"{damaged} has md5 [0-9a-f]+, and [0-9a-f]+ was published"):
        Small(tmp_path, train=False)
    assert len(Small(tmp_path, train=False, download=True)) == 4  # of the archive that lies there
    assert len(server.asked) == 2
    (tmp_path / "other").mkdir()  # an archive alone, put there by hand
    (tmp_path / "other" / "cifar-10-python.tar.gz").write_bytes(content)
    check(Small(tmp_path / "other"), Small(tmp_path / "other", train=False))
    (tmp_path / "third").mkdir()
    (tmp_path / "third" / "cifar-10-python.tar.gz").write_bytes(content[:-1])
    with pytest.raises(CheckpointError, match=r"cifar-10-python.tar.gz is not the archive that was published"):
        Small(tmp_path / "third")


class Evil:
    """Runs a command when it is unpickled."""

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.system, ("touch /tmp/tritensor-evil-ran",)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (pickle.dumps({"data": Evil()}), r"asks for posix.system, which no batch of CIFAR does; nothing of it was run"),
        (pickle.dumps({"data": builtins.eval}), "asks for builtins.eval"),
        (b"\x80\x02cnumpy\nload\n.", "asks for numpy.load"),
        (b"cos\nsystem\n(S'true'\ntR.", "asks for os.system"),
        (b"(ios\nsystem\n.", "is no batch"),
        (b"\x80\x02}(U\x01aP0\n", "is no batch"),
        (b"\x80\x05\x96" + b"\xff" * 7 + b"\x7f", "is no batch"),
        (b"\x80\x04\x8e" + b"\xff" * 7 + b"\x7f", "is no batch"),
        (pickle.dumps([1, 2]), "holds a list, not a dict"),
        (FILES["data_batch_1"][:-20], "is no batch"),
        (b"", "is no batch"),
        (python2_pickle({"data": rows(1)}).replace(b"u1", b"O1"), "an array of type 'O1'"),
        (b"c_codecs\nencode\n(N}U\x0c__defaults__U\x01x\x85stb.", "sets attributes of a function"),
        (b"\x80\x02}U\x01a" + b"cnumpy.core.multiarray\n_reconstruct\n)R" + b"s.", "is no batch"),
    ],
)  # fmt: skip
def test_hostile_batches(tmp_path: Path, content: bytes, told: str) -> None:
    (tmp_path / "batch").write_bytes(content)
    with pytest.raises(CheckpointError, match=told) as error:
        read_batch(tmp_path / "batch")
    assert str(tmp_path / "batch") in str(error.value)
    assert not os.path.exists("/tmp/tritensor-evil-ran")


def test_mutated_batches_are_read_or_refused(tmp_path: Path) -> None:
    pick, good = random.Random(0), bytearray(python2_pickle({"labels": [1, 2], "data": rows(2)[:, :8], "name": "x"}))
    path = tmp_path / "batch"
    for _ in range(1000):
        content = bytearray(good)
        for _ in range(pick.randint(1, 4)):
            content[pick.randrange(len(content))] = pick.randrange(256)
        path.write_bytes(content[: pick.choice([len(content), pick.randrange(len(content))])])
        try:
            found = read_batch(path)
        except CheckpointError:
            continue
        assert isinstance(found, dict)


def test_batches_that_hold_something_else(tmp_path: Path) -> None:
    for entries in (
        {"labels": [0], "data": rows(2)},
        {"labels": [9, 0], "data": rows(2)},
        {"data": rows(2)},
        {"labels": [0, 1], "data": rows(2)[:, :9]},
    ):
        content = python2_pickle(entries)
        write(tmp_path / "cifar-10-batches-py", {**FILES, **META, "data_batch_1": content})

        class Odd(Small):
            train_list = (("data_batch_1", md5(content)),)

        with pytest.raises(CheckpointError, match=r"data_batch_1: holds \[.*\], which are no images with a label each"):
            Odd(tmp_path)
