"""Archives: whole ones are unpacked, damaged and hostile ones are refused by name before anything is written."""

from __future__ import annotations

import gzip
import io
import os
import random
import shutil
import tarfile
import tracemalloc
import zipfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from tritensor.ground.errors import CheckpointError
from tritensor.io.archives import extract, read_decompressed

FILES = {"top/a.txt": b"a" * 5000, "top/deep/b.bin": os.urandom(3000), "top/empty": b""}


def archive(path: Path, files: dict[str, bytes] | None = None, odd: tarfile.TarInfo | zipfile.ZipInfo | None = None) -> Path:
    files = FILES if files is None else files
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as made:
            for name, content in files.items():
                made.writestr(name, content)
            if isinstance(odd, zipfile.ZipInfo):
                made.writestr(odd, b"elsewhere")
        return path
    with tarfile.open(path, "w:" + {".gz": "gz", ".tgz": "gz", ".bz2": "bz2", ".xz": "xz"}.get(path.suffix, "")) as made:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            made.addfile(info, io.BytesIO(content))
        if isinstance(odd, tarfile.TarInfo):
            made.addfile(odd)
    return path


@pytest.mark.parametrize("end", ["zip", "tar", "tar.gz", "tgz", "tar.bz2", "tar.xz"])
def test_whole_ones_are_unpacked(tmp_path: Path, end: str) -> None:
    written = extract(archive(tmp_path / f"x.{end}"), tmp_path / "out")
    assert {str(Path(p).relative_to(tmp_path / "out")): Path(p).read_bytes() for p in written} == FILES
    assert sorted(p.name for p in (tmp_path / "out" / "top").iterdir()) == ["a.txt", "deep", "empty"]
    assert len(extract(tmp_path / f"x.{end}", tmp_path / "one", only=lambda name: name.endswith("b.bin"))) == 1
    assert not (tmp_path / "one" / "top" / "a.txt").exists()


@pytest.mark.parametrize("name", ["../out.txt", "/tmp/out.txt", "top/../../out.txt", "..\\out.txt", "C:/out.txt", "\\out.txt"])
@pytest.mark.parametrize("end", ["zip", "tar.gz"])
def test_names_that_lead_out_are_refused(tmp_path: Path, end: str, name: str) -> None:
    made = archive(tmp_path / f"x.{end}", {**FILES, name: b"out"})
    with pytest.raises(CheckpointError, match="a path that leads out of the folder; no data set has such a one, and nothing was unpacked"):
        extract(made, tmp_path / "in" / "out")
    assert sorted(os.listdir(tmp_path)) == [made.name]


def test_links_and_devices_are_refused(tmp_path: Path) -> None:
    for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE):
        odd = tarfile.TarInfo("top/odd")
        odd.type, odd.linkname = kind, "/etc/passwd"
        with pytest.raises(CheckpointError, match="'top/odd' is a link or a device"):
            extract(archive(tmp_path / "x.tar", odd=odd), tmp_path / "out")
    link = zipfile.ZipInfo("top/odd")
    link.external_attr = 0o120777 << 16
    with pytest.raises(CheckpointError, match="'top/odd' is a link or a device"):
        extract(archive(tmp_path / "x.zip", odd=link), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_link_that_is_there_leads_nowhere(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "out" / "top").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(CheckpointError, match="by a link that is there"):
        extract(archive(tmp_path / "x.tar"), tmp_path / "out")
    assert os.listdir(tmp_path / "elsewhere") == []


@pytest.mark.parametrize("end", ["zip", "tar", "tar.gz", "tar.xz"])
def test_damage_is_told(tmp_path: Path, end: str) -> None:
    content = bytearray(archive(tmp_path / f"x.{end}", {"f": os.urandom(20000)}).read_bytes())
    torn, spoilt = tmp_path / f"torn.{end}", tmp_path / f"spoilt.{end}"
    torn.write_bytes(content[:9000])
    content[5000:5100] = bytes(100)
    spoilt.write_bytes(content)
    for path in (torn, spoilt) if end != "tar" else (torn,):  # a plain tar has no checksum of contents
        with pytest.raises(CheckpointError, match=f"{path}: .*(is|the archive is) damaged"):
            extract(path, tmp_path / "out")
    assert not [p for p in (tmp_path / "out").rglob("*") if p.is_file()] if (tmp_path / "out").exists() else True


@pytest.mark.parametrize("end", ["zip", "tar", "tar.gz"])
def test_mutated_archives_are_unpacked_or_refused(tmp_path: Path, end: str) -> None:
    pick, good = random.Random(end), archive(tmp_path / f"x.{end}", {"a/b": b"b" * 50, "c": b"c" * 9}).read_bytes()[:3000]
    made, told = tmp_path / f"y.{end}", []
    for i in range(200):
        content = bytearray(good)
        for _ in range(pick.randint(1, 5)):
            content[pick.randrange(len(content))] = pick.choice([0, 255, pick.randrange(256)])
        made.write_bytes(content)
        try:
            extract(made, tmp_path / "in" / str(i))
        except CheckpointError as error:
            told.append(str(error))
    assert told
    assert all(str(made) in words for words in told)
    assert set(os.listdir(tmp_path)) <= {f"x.{end}", f"y.{end}", "in"}
    assert not list((tmp_path / "in").rglob("*.part"))


def test_other_names_and_full_disks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="ends like no archive"):
        extract(tmp_path / "x.rar", tmp_path)
    with pytest.raises(FileNotFoundError):
        extract(tmp_path / "x.zip", tmp_path)
    made = archive(tmp_path / "x.tar")
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=100))
    with pytest.raises(OSError, match="8,000 bytes are to be written and 100 are free"):
        extract(made, tmp_path / "out")


def test_gzipped_or_not(tmp_path: Path) -> None:
    (tmp_path / "plain").write_bytes(b"words")
    (tmp_path / "packed").write_bytes(gzip.compress(b"words"))
    assert read_decompressed(tmp_path / "plain", 5) == read_decompressed(tmp_path / "packed", 5) == b"words"
    (tmp_path / "bomb").write_bytes(gzip.compress(bytes(1_000_000)))
    with pytest.raises(CheckpointError, match="bomb: holds more than 1,000 bytes"):
        read_decompressed(tmp_path / "bomb", 1000)
    (tmp_path / "torn").write_bytes(gzip.compress(os.urandom(1000))[:-20])
    with pytest.raises(CheckpointError, match="torn: the file is damaged"):
        read_decompressed(tmp_path / "torn", 10**6)


@pytest.mark.parametrize(
    "files",
    [{".": b"x"}, {"": b"x"}, {"a": b"x", "a/b": b"y"}, {"a/b": b"x", "a": b"y"}, {"top/.": b"x", "top/y": b"y"}],
    ids=["dot", "empty", "file above", "file below", "folder's dot"],
)
def test_a_file_that_takes_a_folder_s_place_is_refused(tmp_path: Path, files: dict[str, bytes]) -> None:
    with pytest.raises(CheckpointError, match=r"is a file where a folder should be; .* nothing was unpacked"):
        extract(archive(tmp_path / "x.tar", files), tmp_path / "out")
    assert sorted(os.listdir(tmp_path)) == ["x.tar"]


@pytest.mark.parametrize("kind", [tarfile.XHDTYPE, tarfile.GNUTYPE_LONGNAME])
def test_names_that_are_bombs_are_refused_before_they_are_read(tmp_path: Path, kind: bytes) -> None:
    header = tarfile.TarInfo("x")
    header.type, header.size = kind, 1 << 26
    (tmp_path / "x.tar.gz").write_bytes(gzip.compress(header.tobuf(tarfile.GNU_FORMAT) + bytes(1 << 26), 1))
    tracemalloc.start()
    with pytest.raises(CheckpointError, match=r"x.tar.gz: the archive is damaged"):
        extract(tmp_path / "x.tar.gz", tmp_path / "out")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1 << 24
    long = archive(tmp_path / "long.tar", {"a" * 90 + "/" + "b" * 90 + "/c": b"x"})
    assert len(extract(long, tmp_path / "out")) == 1, "names that are long and true"
