"""Results of a run, taken home by one command: the report, the tuned configs, the README's table."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bench.reports.readme_table import BEGIN, END
from tests.gpu.lease.collect import collect
from tests.gpu.lease.ledger import Ledger, LedgerError
from tests.lease.fake_steps import IDENTITY
from tritensor.ops.tuning import tuned

ROW = {
    "op": "softmax",
    "corner": "forward",
    "dtype": "bfloat16",
    "shape": "(4, 4)",
    "ms": 1.0,
    "torch_ms": 2.0,
    "roof": 0.9,
    "flops": 0,
    "bytes": 8,
}
REPORT: dict[str, Any] = {
    "schema": 2, "gpu": "NVIDIA Test 9000", "ops": "all", "date": "2026-01-01", "commit": {"hash": "c" * 40, "changed": False},
    "versions": {"triton": "3.6.0", "torch": "2.11"}, "roofline": {"copy_gbs": {"tritensor": 4300.0}, "tflops": {}}, "rows": {"r": ROW},
    "training": {}, "host": {}, "failed": {}, "not_timed": {},
}  # fmt: skip


@pytest.fixture
def home(tmp_path: Path) -> dict[str, Path]:
    readme = tmp_path / "README.md"
    readme.write_text(f"before\n{BEGIN}\n{END}\nafter\n")
    for name in ("results", "configs"):
        (tmp_path / name).mkdir()
    return {"results": tmp_path / "results", "configs": tmp_path / "configs", "readme": readme}


def left(folder: Path, report: dict[str, Any], **identity: str) -> Path:
    Ledger(folder, IDENTITY | identity).write()
    (folder / "nvidia-test-9000.json").write_text(json.dumps(report))
    (folder / "tuned-nvidia-test-9000.json").write_text(tuned.written(tuned.header_now("NVIDIA Test 9000"), {}))
    return folder


def test_results_come_home(home: dict[str, Path], tmp_path: Path) -> None:
    said = collect(left(tmp_path / "run", REPORT), **home)
    assert len(said) == 3
    assert json.loads((home["results"] / "nvidia-test-9000.json").read_text()) == REPORT
    assert tuned.read(home["configs"] / "nvidia-test-9000.json")[0].gpu == "NVIDIA Test 9000"
    page = home["readme"].read_text()
    assert "| softmax forward | bfloat16 | (4, 4) | 1.000 | 0.90 | 0.50 | – |" in page
    assert page.startswith("before\n")
    assert page.endswith("after\n")


@pytest.mark.parametrize(("gpu", "why"), [("", "is of no GPU"), ("emulated Triton", "is of emulated Triton")])
def test_what_measured_nothing_stays_away(gpu: str, why: str, home: dict[str, Path], tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match=why):
        collect(left(tmp_path / "run", REPORT, gpu=gpu), **home)


def test_a_report_of_some_ops_stays_away(home: dict[str, Path], tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match="is of some ops alone"):
        collect(left(tmp_path / "run", REPORT | {"ops": ["softmax"]}), **home)


def test_a_folder_of_no_run_is_named(home: dict[str, Path], tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match=str(tmp_path / "ledger.json")):
        collect(tmp_path, **home)
    Ledger(tmp_path, IDENTITY).write()
    assert "nothing to take home" in collect(tmp_path, **home)[0]
