"""Replacing a file: what may stand at the path (pipe, device, link, protected file), and what stays of it (mode, owner, no litter)."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import socket
import stat
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import tritensor as tt
from tritensor.io.atomic import atomic_write

NOBODY = 65534


@contextlib.contextmanager
def without_root() -> Iterator[None]:
    """Without root's right to write everywhere."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that belongs to the user of `without_root` (pytest's own are closed to others)."""
    with tempfile.TemporaryDirectory() as name:
        if os.geteuid() == 0:
            os.chown(name, NOBODY, NOBODY)
        yield Path(name)
        os.chmod(name, 0o700)


def test_a_pipe_is_written_to_and_read_from(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    state = {"w": tt.arange(50_000), "epoch": 3}  # more than a pipe holds at once
    writer = threading.Thread(target=tt.save, args=(state, path))
    writer.start()
    found = tt.load(path)
    writer.join(30)
    assert stat.S_ISFIFO(path.stat().st_mode)
    assert (found["w"].tolist(), found["epoch"]) == (list(range(50_000)), 3)
    found["w"] += 1  # memory of its own
    assert os.listdir(tmp_path) == ["pipe"]


def test_a_pipe_that_delivers_nothing_of_ours_is_not_read_to_its_end() -> None:
    for path in ("/dev/zero", "/dev/null"):
        with pytest.raises(tt.CheckpointError, match=f"{path}: "):
            tt.load(path)


def test_a_device_stays() -> None:
    tt.save({"x": tt.ones(3)}, "/dev/null")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


def test_an_open_file_under_its_number(tmp_path: Path) -> None:
    with open(tmp_path / "x", "w+b") as file:
        os.unlink(tmp_path / "x")
        tt.save({"x": tt.ones(3)}, f"/proc/self/fd/{file.fileno()}")
        file.seek(0)
        assert tt.load(file)["x"].tolist() == [1, 1, 1]
    assert os.listdir(tmp_path) == []


def test_a_socket_and_a_folder_are_refused_and_stay(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as s:
        s.bind(str(tmp_path / "socket"))
        with pytest.raises(OSError, match="No such device or address"):
            tt.save({"x": tt.ones(3)}, tmp_path / "socket")
        assert stat.S_ISSOCK((tmp_path / "socket").stat().st_mode)
    with pytest.raises(IsADirectoryError):
        tt.save({"x": tt.ones(3)}, tmp_path)
    with pytest.raises(FileNotFoundError):
        tt.save({"x": tt.ones(3)}, tmp_path / "none" / "x")


def test_links(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "first").symlink_to("second")
    (tmp_path / "second").symlink_to("deep/real")
    for value in (1.0, 2.0):  # at first the link leads nowhere
        tt.save({"x": tt.tensor(value)}, tmp_path / "first")
        assert tt.load(tmp_path / "deep" / "real")["x"].item() == value
    assert (tmp_path / "first").is_symlink()
    assert (tmp_path / "second").is_symlink()
    assert os.listdir(tmp_path / "deep") == ["real"]
    (tmp_path / "round").symlink_to("round")
    with pytest.raises(OSError, match="symbolic links"):
        tt.save({"x": tt.ones(1)}, tmp_path / "round")


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o644, 0o666, 0o755])
def test_the_mode_stays(mode: int, tmp_path: Path) -> None:
    path = tmp_path / "x"
    tt.save({"x": tt.ones(1)}, path)
    path.chmod(mode)
    tt.save({"x": tt.zeros(1)}, path)
    assert stat.S_IMODE(path.stat().st_mode) == mode


def test_a_private_file_is_never_open_to_others_meanwhile(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"")
    path.chmod(0o600)
    with atomic_write(path) as file:
        assert stat.S_IMODE(os.fstat(file.fileno()).st_mode) == 0o600


def test_the_owner_stays(folder: Path) -> None:
    path = folder / "x"
    with without_root():
        tt.save({"x": tt.ones(1)}, path)
    before = path.stat()
    tt.save({"x": tt.zeros(1)}, path)
    assert (path.stat().st_uid, path.stat().st_gid) == (before.st_uid, before.st_gid)
    assert path.stat().st_ino != before.st_ino


def test_a_long_name(tmp_path: Path) -> None:
    path = tmp_path / ("x" * 255)
    for value in (1.0, 2.0):
        tt.save({"x": tt.tensor(value)}, path)
    assert tt.load(path)["x"].item() == 2.0
    assert os.listdir(tmp_path) == [path.name]


def _killed(path: Path) -> None:
    with atomic_write(path) as file:
        file.write(b"half")
        file.flush()
        os._exit(1)


def test_what_killed_processes_left_is_removed(tmp_path: Path) -> None:
    path = tmp_path / "x"
    for _ in range(3):
        process = multiprocessing.get_context("fork").Process(target=_killed, args=(path,))
        process.start()
        process.join()
    assert len(os.listdir(tmp_path)) == 3
    tt.save({"x": tt.ones(1)}, tmp_path / "other")
    assert len(os.listdir(tmp_path)) == 4, "another file's litter is not ours to judge"
    tt.save({"x": tt.ones(1)}, path)
    assert sorted(os.listdir(tmp_path)) == ["other", "x"]


def test_what_another_is_writing_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "x"
    with atomic_write(path) as slow:
        slow.write(b"slow")
        tt.save({"x": tt.ones(1)}, path)
        assert tt.load(path)["x"].item() == 1.0
    assert path.read_bytes() == b"slow"
    assert os.listdir(tmp_path) == ["x"]


def test_a_file_in_a_folder_without_write_right(folder: Path) -> None:
    path = folder / "x"
    with without_root():
        tt.save({"x": tt.ones(1000)}, path)
        folder.chmod(0o555)
        tt.save({"x": tt.zeros(2)}, path)  # shorter: nothing of the old may stay behind it
        assert tt.load(path)["x"].tolist() == [0, 0]
        with pytest.raises(TypeError, match="y is a function"):
            tt.save({"y": lambda: 0}, path)
        assert tt.load(path)["x"].tolist() == [0, 0]
        with pytest.raises(PermissionError):
            tt.save({"x": tt.zeros(2)}, folder / "new")
    assert os.listdir(folder) == ["x"]


def test_a_file_that_must_not_be_written_is_not_replaced(folder: Path) -> None:
    path = folder / "x"
    with without_root():
        tt.save({"x": tt.ones(1)}, path)
        path.chmod(0o444)
        with pytest.raises(PermissionError):
            tt.save({"x": tt.zeros(1)}, path)
        assert tt.load(path)["x"].item() == 1.0
    assert os.listdir(folder) == ["x"]


def test_a_file_that_holds_its_place_is_overwritten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x"
    tt.save({"x": tt.ones(100)}, path)
    before = path.stat().st_ino

    def busy(*paths: Any) -> None:
        raise OSError(16, "Device or resource busy")  # as a file that is mounted there answers

    monkeypatch.setattr(os, "replace", busy)
    tt.save({"x": tt.zeros(2)}, path)
    assert path.stat().st_ino == before
    assert tt.load(path)["x"].tolist() == [0, 0]
    assert os.listdir(tmp_path) == ["x"]


@pytest.mark.parametrize(("name", "kind"), [("", FileNotFoundError), ("new/", IsADirectoryError), ("no/x.pt", FileNotFoundError)])
def test_names_that_take_no_file_are_told_as_they_were_given(
    name: str, kind: type[OSError], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    with pytest.raises(kind) as error:
        tt.save({"x": tt.ones(3)}, name)
    assert str(error.value.filename).endswith(name)
    assert [p.name for p in tmp_path.rglob("*")] == ["here"], "and nothing is left, above the folder neither"


@pytest.mark.parametrize("format", ["torch", "safetensors"])
def test_a_device_that_is_full_is_named(format: str) -> None:
    with pytest.raises(OSError, match=r"save: No space left on device: '/dev/full'"):
        tt.save({"x": tt.ones(5000)}, "/dev/full", format=format)
