"""The lease's pack: what the steps launch, no larger than what travels, refused where another Triton runs; the tree's digest knows a copy."""

from __future__ import annotations

import lzma
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.gpu.lease import pack
from tests.gpu.lease.identity import FOLDERS, tree
from tests.gpu.workers import ROOT
from tritensor.cuda.compiler.pack import Pack, write_pack


def written(path: Path, triton: str, count: int = 3) -> list[tuple[bytes, bytes, bytes]]:
    rows = [(bytes([i]) * 32, bytes(16), os.urandom(1000)) for i in range(count)]
    plain = path.with_suffix(".plain")
    write_pack(plain, {"triton": triton, "archs": [90], "kernels": count, "tree": "t"}, rows)
    path.write_bytes(lzma.compress(plain.read_bytes()))
    return rows


def test_a_pack_is_read_where_its_triton_runs(tmp_path: Path) -> None:
    rows = written(tmp_path / "p.xz", pack.installed("triton"))
    found, about = pack.unpacked(tmp_path / "p.xz", tmp_path / "plain.ttpack")
    assert found is not None
    assert Pack(found).get(rows[1][0]) == rows[1][2]
    assert (about["said"], about["tree"]) == ("pack of 3 kernels", "t")


def test_another_tritons_pack_is_not_used_and_said(tmp_path: Path) -> None:
    written(tmp_path / "p.xz", "2.0.0")
    assert pack.unpacked(tmp_path / "p.xz", tmp_path / "plain") == (None, {"said": "p.xz is of Triton 2.0.0 and is not used"})
    (tmp_path / "torn.xz").write_bytes((tmp_path / "p.xz").read_bytes()[:99])
    found, about = pack.unpacked(tmp_path / "torn.xz", tmp_path / "plain")
    assert found is None
    assert about["said"].startswith("torn.xz is not used: ")


def test_no_more_is_packed_than_travels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pack, "MOST_BYTES", 20_000)
    rows = [(bytes([i]) * 32, bytes(16), os.urandom(1000)) for i in range(60)]
    kept, data = pack._fitting(tmp_path / "p.xz", rows, {"triton": "3"})
    assert 10 <= kept < 20
    assert len(data) <= 20_000
    (tmp_path / "plain").write_bytes(lzma.decompress(data))
    assert [r[0] for r in Pack(tmp_path / "plain").rows()] == [r[0] for r in rows[:kept]], "those of most worth"
    assert [p.name for p in tmp_path.iterdir()] == ["plain"]


def test_the_jobs_are_in_the_order_of_worth() -> None:
    names = [name for name, _ in pack.jobs(["relu"])]
    assert names[:2] == ["smoke relu/float32", "smoke relu/bfloat16"]
    assert names.index("relu/bfloat16") < names.index("relu") < names.index("relu/float64"), "races, then types that few use"
    assert sum(name.startswith("relu/forward/float32/") for name in names[2:4]) == 1, "quick rows come before the suite"


@pytest.mark.slow
@pytest.mark.full
def test_all_that_the_steps_launch_is_among_the_jobs() -> None:
    kinds = [name.partition(" ")[0] if name.startswith(("smoke ", "demo ", "host ")) else "row or test" for name, _ in pack.jobs()]
    assert list(dict.fromkeys(kinds)) == ["smoke", "demo", "host", "row or test"]


def test_a_trees_digest_knows_a_copy_and_a_change(tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    for folder in FOLDERS:
        shutil.copytree(ROOT / folder, copy / folder, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
    assert tree(copy) == tree(ROOT)
    (copy / "bench" / "results" / "new.json").write_text("{}")
    assert tree(copy) == tree(ROOT), "results change nothing that is measured"
    with (copy / "kernels" / "op_index.py").open("a") as file:
        file.write("\n")
    assert tree(copy) != tree(ROOT)


@pytest.mark.slow
@pytest.mark.full
def test_the_pack_holds_what_the_steps_launch(tmp_path: Path) -> None:
    """Made without a GPU; the smoke tier on the stub driver then compiles nothing."""
    from tests.stub.build import environment

    packed = tmp_path / "lease.ttpack.xz"
    clean = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"} | {
        "PYTHONPATH": str(ROOT),
        "TRITENSOR_CACHE": str(tmp_path / "cache"),
    }
    command = [sys.executable, "-m", "tests.gpu.lease", "--pack", str(packed), "--op", "logical_not", "--processes", "1"]
    done = subprocess.run(command, cwd=ROOT, env=clean, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 failed" in done.stdout
    plain, _ = pack.unpacked(packed, tmp_path / "plain.ttpack")
    report = tmp_path / "report.jsonl"
    stub = environment(TRITENSOR_PACK=plain, TRITENSOR_CACHE="", STUB_CHECK=0)
    command = [sys.executable, "-m", "tests.gpu.smoke", "--op", "logical_not", "--processes", "1", "--report", str(report)]
    subprocess.run(command, cwd=ROOT, env=stub, capture_output=True, text=True, check=False)
    kernels = report.read_text()
    assert '"pack": ' in kernels
    assert '"compiled"' not in kernels
