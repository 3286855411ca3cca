"""A disk that fills, a quota, a limit, a device that fails, while a checkpoint is saved: the old one stays whole, and the error says what is missing."""

from __future__ import annotations

import contextlib
import errno
import os
import resource
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import tritensor as tt
from tritensor.io import load_sharded, save_sharded

FORMATS = ("torch", "torch-legacy", "safetensors")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 300 kB; where none may be mounted, a limit on the size of files stands for it."""
    there = tmp_path / "disk"
    there.mkdir()
    mounted = (
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=300k", "tmpfs", str(there)], capture_output=True, check=False).returncode == 0
    )
    try:
        with contextlib.nullcontext() if mounted else _limited(250_000):
            yield there
    finally:
        if mounted:
            subprocess.run(["umount", "-l", str(there)], check=True)


@contextlib.contextmanager
def _limited(nbytes: int) -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (nbytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("format", FORMATS)
def test_a_disk_that_fills(format: str, small_disk: Path) -> None:
    path = small_disk / "model"
    tt.save({"x": tt.ones(10_000)}, path, format=format)
    with pytest.raises(
        OSError,
        match=r"save: the (disk is full|file is larger).*: \d+ bytes are needed, \d+ are free on it; the file that was there is as it was",
    ):
        tt.save({"x": tt.zeros(200_000)}, path, format=format)
    assert os.listdir(small_disk) == ["model"]
    assert tt.load(path)["x"].sum().item() == 10_000
    with pytest.raises(OSError, match="nothing was left behind") as caught:
        tt.save({"x": tt.zeros(200_000)}, small_disk / "other", format=format)
    assert caught.value.errno in (errno.ENOSPC, errno.EFBIG)
    assert caught.value.filename == str(small_disk / "other")
    assert os.listdir(small_disk) == ["model"]
    tt.save({"x": tt.zeros(20_000)}, path, format=format)  # there is room again
    assert tt.load(path)["x"].numel() == 20_000


def test_a_limit_on_files(tmp_path: Path) -> None:
    tt.save({"x": tt.ones(10)}, tmp_path / "x.pt")
    with (
        _limited(4096),
        pytest.raises(OSError, match=r"the file is larger than is allowed \(File too large\): 4\d+ bytes are needed") as caught,
    ):
        tt.save({"x": tt.ones(10_000)}, tmp_path / "x.pt")
    assert caught.value.errno == errno.EFBIG
    assert tt.load(tmp_path / "x.pt")["x"].numel() == 10
    assert os.listdir(tmp_path) == ["x.pt"]


@pytest.mark.parametrize(
    ("code", "said"), [(errno.ENOSPC, "the disk is full"), (errno.EDQUOT, "the quota is used up"), (errno.EIO, "the disk fails")]
)
@pytest.mark.parametrize("step", ["write", "fsync"])
@pytest.mark.parametrize("format", FORMATS)
def test_faults_at_every_step(code: int, said: str, step: str, format: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x"
    tt.save({"x": tt.ones(1000)}, path, format=format)
    before = path.read_bytes()
    for after in range(4):
        left = [after]

        def fail(real: Any, *args: Any, left: list[int] = left) -> Any:
            if left[0] == 0:
                raise OSError(code, os.strerror(code))
            left[0] -= 1
            return real(*args)

        with monkeypatch.context() as m:
            if step == "fsync":
                real = os.fsync
                m.setattr(os, "fsync", lambda fd, real=real, fail=fail: fail(real, fd))
            else:
                real_fdopen = os.fdopen

                def opened(fd: int, mode: str, fail: Any = fail, real_fdopen: Any = real_fdopen) -> Any:
                    return Failing(real_fdopen(fd, mode), fail)

                m.setattr(os, "fdopen", opened)
            if step == "fsync" and after == 1:  # the folder's: the new file stands already
                break
            with pytest.raises(OSError, match=said) as caught:
                tt.save({"x": tt.zeros(1000), "y": tt.zeros(5)}, path, format=format)
        assert caught.value.errno == code
        assert path.read_bytes() == before
        assert os.listdir(tmp_path) == ["x"]


class Failing:
    """A file whose writes fail after a while."""

    def __init__(self, file: Any, fail: Any) -> None:
        self.file, self.fail = file, fail

    def write(self, data: Any) -> Any:
        return self.fail(self.file.write, data)

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *error: Any) -> None:
        self.file.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.file, name)


def test_shards_on_a_disk_that_fills(small_disk: Path) -> None:
    state = {f"w{i}": tt.full((5_000,), i) for i in range(4)}
    save_sharded(state, small_disk, "50KB")
    with pytest.raises(OSError, match=r"is full|larger"):
        save_sharded({f"w{i}": tt.full((30_000,), 9) for i in range(4)}, small_disk, "130KB")
    found = load_sharded(small_disk)
    assert [t[0].item() for t in found.values()] == [0, 1, 2, 3]
