"""Files that another user has put at a place that he could guess are neither trusted, nor waited for, nor written through."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

import tritensor as tt
from tritensor.cuda.compiler import cubin_cache
from tritensor.ground.process.ownership import is_foreign, is_foreign_file
from tritensor.io import atomic
from tritensor.llvm import compiler


def link(path: Path) -> None:
    path.rename(path.with_name("beside"))
    path.symlink_to(path.with_name("beside"))


def open_to_all(path: Path) -> None:
    path.chmod(0o666)


def open_folder(path: Path) -> None:
    path.parent.chmod(0o777)


def of_another(path: Path) -> None:
    os.chown(path, 65534, 65534)


def folder_of_another(path: Path) -> None:
    os.chown(path.parent, 65534, 65534)


PLANTED = [link, open_to_all, open_folder, *([of_another, folder_of_another] if os.getuid() == 0 else [])]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "cache").mkdir(mode=0o700)
    made = tmp_path / "cache" / "file"
    made.write_bytes(b"")
    made.chmod(0o600)
    return made


def test_ones_own(file: Path) -> None:
    assert (is_foreign(file), is_foreign_file(file)) == ("", "")
    file.chmod(0o664)
    assert is_foreign_file(file) == "", "a group may write it, as many systems make files, where it is this user's own"
    file.unlink()
    assert is_foreign(file) == "", "what is not there is nobody's"


@pytest.mark.parametrize("plant", PLANTED)
def test_what_may_be_anothers(plant: Callable[[Path], None], file: Path) -> None:
    plant(file)
    assert is_foreign_file(file)


@pytest.mark.parametrize("plant", PLANTED)
def test_a_planted_library_is_not_run(plant: Callable[[Path], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if compiler.refusal():
        pytest.skip(compiler.refusal())
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "cache"))
    assert compiler.build(compiler._PROBE)(1) == 2
    path = next((tmp_path / "cache").rglob("run.so"))
    key = compiler._key("library", compiler._PROBE)
    assert compiler._load_library(key, str(path)) is not None
    plant(path)
    assert compiler._load_library(key, str(path)) is not None, "who names a folder trusts it"
    monkeypatch.delenv("TRITON_CACHE_DIR")
    monkeypatch.delenv("TRITON_HOME", raising=False)
    assert compiler._load_library(key, str(path)) is None


@pytest.mark.parametrize("plant", PLANTED)
def test_a_planted_cubin_is_not_taken(plant: Callable[[Path], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TRITENSOR_CACHE", raising=False)
    monkeypatch.setattr(cubin_cache, "cache_folder", lambda: tmp_path / "home")
    monkeypatch.setattr(cubin_cache, "_warned", set())
    path = cubin_cache.cache_file(b"k" * 32)
    assert path is not None
    path.parent.mkdir(parents=True, mode=0o700)
    path.write_bytes(b"planted")
    with pytest.warns(RuntimeWarning, match="the kernel is compiled again and the file replaced"):
        assert cubin_cache._find_on_disk(b"k" * 32) is None, "it is looked into where it is this user's"
    plant(path)
    with pytest.warns(RuntimeWarning, match=r"(is a link|belongs to user|may be written by others).*; kernels are compiled"):
        assert cubin_cache._find_on_disk(b"k" * 32) is None


def test_a_pipe_beside_a_file_that_is_saved(tmp_path: Path) -> None:
    """It has the name of a temporary file whose writer is gone; to open it as a file is to wait for ever."""
    target = tmp_path / "state.pt"
    pipe = tmp_path / f"{atomic._temporary_prefix(str(target))}{'0' * 12}.tmp"
    os.mkfifo(pipe)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("kept")
    (tmp_path / f"{atomic._temporary_prefix(str(target))}{'1' * 12}.tmp").symlink_to(elsewhere)
    saving = threading.Thread(target=lambda: tt.save({"a": tt.ones(2)}, target), daemon=True)
    saving.start()
    saving.join(30)
    assert not saving.is_alive()
    assert tt.load(target)["a"].tolist() == [1.0, 1.0]
    assert elsewhere.read_text() == "kept"
