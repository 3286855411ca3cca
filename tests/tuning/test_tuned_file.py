"""Tuned files: found by bucket, only for their GPU; what is wrong with one is told once, and the heuristics serve."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tritensor as tt
from tests.stub.child import on_stub
from tritensor.ground.errors import LaunchError
from tritensor.kernels.parts.launch_rules import Tiles
from tritensor.kernels.parts.rows.row_tiles import RowTile
from tritensor.ops.tuning import tuned
from tritensor.ops.tuning.buckets import bucket_of, dtype_of
from tritensor.ops.tuning.tuned import Entry, Header, Place, TunedFileError

PLACE = Place("softmax", "forward", "softmax", "float32", "8 128 1 4")
TILE = RowTile(2, 128, True, 2)
HEADER = Header("NVIDIA Something", "3.9.0", "2026-11-24")


@pytest.fixture
def planted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    path = tmp_path / "planted.json"
    path.write_text(tuned.written(HEADER, {PLACE: Entry(TILE._asdict(), 3.25, 1.5)}))
    monkeypatch.setenv(tuned.VARIABLE, str(path))
    tuned.forget()
    yield path
    monkeypatch.undo()
    tuned.forget()


def asked(rows: int, columns: int) -> Any:
    return tt.tuning.config("softmax", ((rows, columns), "float32"), dim=-1)[0]


def test_a_bucket_serves_its_shapes_and_no_other(planted: Path) -> None:
    for rows, columns in ((8, 128), (5, 65), (7, 100)):
        assert (asked(rows, columns).config, asked(rows, columns).source) == (TILE, "tuned file")
    for rows, columns in ((8, 64), (9, 128), (4, 100)):
        assert asked(rows, columns).source == "heuristic"
    assert tt.tuning.config("softmax", ((8, 128), "bfloat16"), dim=-1)[0].source == "heuristic"
    x = np.random.default_rng(0).standard_normal((7, 100)).astype(np.float32)
    y = tt.softmax(tt.tensor(x, device="cuda"), dim=-1).cpu().numpy()
    np.testing.assert_allclose(y.sum(1), 1, rtol=1e-5)


def test_force_comes_before_the_file(planted: Path) -> None:
    with tt.tuning.force("softmax", RowTile(1, 128, True, 4)):
        assert asked(8, 128).source == "forced"


def test_the_emulated_device_has_no_file_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(tuned.VARIABLE, raising=False)
    monkeypatch.setattr(tuned, "_load", lambda gpu: None if gpu == "" else pytest.fail(gpu))
    tuned.forget()
    assert asked(8, 128).source == "heuristic"
    tuned.forget()


def spoilt(path: Path, change: Any) -> None:
    rows = json.loads(path.read_text())
    change(rows)
    path.write_text(json.dumps(rows))
    tuned.forget()


def renamed(rows: dict[str, Any], name: str) -> None:
    rows["entries"] = {name: next(iter(rows["entries"].values()))}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda rows: rows.update(schema=7), "of schema 7, and this is a tritensor of schema 1; install a newer tritensor, or write it anew"),
        (lambda rows: rows.update(schema="1"), "of schema '1', and this is a tritensor of schema 1; write it anew"),
        (lambda rows: rows.update(entries=[]), "its entries are a list, no table by name"),
        (lambda rows: rows["entries"][str(PLACE)].update(us="fast"), "has us 'fast', where a number of 0 or more belongs"),
        (lambda rows: rows["entries"][str(PLACE)].update(gain=float("nan")), "has gain nan, where a number of 0 or more belongs"),
        (lambda rows: renamed(rows, str(PLACE._replace(corner="forwards"))), "'forwards' is no corner; there are forward, backward"),
        (lambda rows: renamed(rows, str(PLACE._replace(dtype="fp32"))), "'fp32' is no element type"),
        (lambda rows: rows["entries"][str(PLACE)]["config"].update(BM=1 << 16), "a tile of 65536 x 128 has 8388608 elements; at most 1048576"),
        (lambda rows: rows["entries"][str(PLACE)]["config"].update(BM=1 << 40), "BM is 1099511627776; a tile has at most 1048576 elements"),
        (lambda rows: rows.pop("schema"), "no file of `tritensor tune`"),
        (lambda rows: rows.pop("gpu"), "it lacks 'gpu'"),
        (lambda rows: renamed(rows, "softmax"), "entry 'softmax' is not `op . corner . kernel . type . bucket`"),
        (lambda rows: rows["entries"].update({str(PLACE): {"config": 3}}), "does not hold config, us and gain alone"),
        (lambda rows: renamed(rows, str(PLACE._replace(op="softmx"))), "no op is called softmx; their entries are not used"),
        (lambda rows: rows["entries"][str(PLACE)]["config"].update(BK=3), "its fields are BK, BM, BN, warps, whole, and those of softmax are BM, BN, whole, warps"),
        (lambda rows: rows["entries"][str(PLACE)]["config"].update(BM=3), "BM is 3; a power of two is needed"),
        (lambda rows: rows["entries"][str(PLACE)]["config"].update(BM="2"), "BM is '2', and softmax takes a whole number there"),
        (lambda rows: rows["entries"][str(PLACE)]["config"].update(BN=64), "whole, but BN 64 holds no row of 100"),
        (lambda rows: rows["entries"][str(PLACE)].update(config=64), "softmax takes fields BM, BN, whole, warps, not 64"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_once_and_not_used(planted: Path, change: Any, said: str) -> None:
    spoilt(planted, change)
    with pytest.warns(UserWarning, match=said) as told:
        assert asked(7, 100).source == "heuristic"
    assert [str(planted) in str(w.message) for w in told] == [True]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert asked(7, 100).source == "heuristic"
        assert asked(7, 101).source == "heuristic"


def test_a_torn_file_and_a_missing_one(planted: Path) -> None:
    text = planted.read_text()
    planted.write_text(text[:-30])
    with pytest.raises(TunedFileError, match=r"damaged, no JSON .*; write it anew with `tritensor tune --out"):
        tuned.read(planted)
    planted.write_text("[" * 100_000)
    with pytest.raises(TunedFileError, match=r"damaged, no JSON .*; write it anew"):
        tuned.read(planted)
    planted.unlink()
    tuned.forget()
    with pytest.warns(UserWarning, match="cannot be read: No such file"):
        assert asked(7, 100).source == "heuristic"


@on_stub()
def test_a_gpu_takes_its_own_file_and_no_other_gpus(tmp_path: Path) -> None:
    import os

    path = tmp_path / "stub.json"
    path.write_text(tuned.written(HEADER._replace(gpu="Stub H100"), {PLACE: Entry(TILE._asdict(), 3.25, 1.5)}))
    tuned.FOLDER = tmp_path
    assert asked(7, 100).source == "heuristic"
    path.rename(tmp_path / "stub-h100.json")
    tuned.forget()
    assert asked(7, 100).source == "tuned file"
    other = tmp_path / "other.json"
    other.write_text(tuned.written(HEADER, {PLACE: Entry(TILE._asdict(), 3.25, 1.5)}))
    os.environ[tuned.VARIABLE] = str(other)
    tuned.forget()
    with pytest.warns(UserWarning, match="made on NVIDIA Something, and this GPU is Stub H100; tune this one"):
        assert asked(7, 100).source == "heuristic"


@on_stub()
def test_a_config_that_the_gpu_cannot_run_names_its_line(tmp_path: Path) -> None:
    place = Place("matmul", "forward", "matmul", "float32", bucket_of((512, 512, 512, 1, np.dtype(np.float32), True)))
    path = tmp_path / "stub-h100.json"
    config = Tiles(128, 128, 128, 1, 8, 8)._asdict()
    path.write_text(tuned.written(HEADER._replace(gpu="Stub H100"), {place: Entry(config, 3.25, 1.5)}))
    tuned.FOLDER = tmp_path
    tuned.forget()
    a = tt.ones(512, 512, device="cuda")
    with pytest.raises(LaunchError, match="bytes of shared memory") as caught:
        a @ a
    assert f"{path}: {str(place)!r}; remove the line or tune anew" in "".join(caught.value.__notes__)
    with tt.tuning.force("matmul", Tiles(64, 64, 32, 1, 8, 3)):
        a @ a


def test_a_file_is_sorted_and_reads_back(tmp_path: Path) -> None:
    entries = {PLACE._replace(bucket=b): Entry(TILE._asdict(), 1.23456, 1.02) for b in ("8 64 1 4", "16 64 1 4", "8 128 1 4")}
    entries[Place("radix_sort", "", "radix_sort", "int32", "1 8")] = Entry(64, 2.0, 1.1)
    text = tuned.written(HEADER, entries)
    path = tmp_path / "x.json"
    path.write_text(text)
    header, found = tuned.read(path)
    assert header == HEADER
    assert found == {p: e._replace(us=round(e.us, 3)) for p, e in entries.items()}
    rows = [line for line in text.splitlines() if " | " in line]
    assert rows == sorted(rows)
    assert len(rows) == 4
    assert tuned.written(header, found) == text
    assert tuned.slug("NVIDIA H100 80GB HBM3") == "nvidia-h100-80gb-hbm3"


def test_buckets() -> None:
    assert bucket_of((0, 1, 2, 3, 1000, 1024, 1025)) == "0 1 2 4 1024 1024 2048"
    assert bucket_of(((5, 7), True, False, "mean", np.dtype(np.float32))) == "(8 8) yes no mean"
    assert dtype_of((5, np.dtype(np.float16))) == "float16"
    assert dtype_of((5,)) == "any"
