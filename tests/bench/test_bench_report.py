"""Reports of a GPU benchmark: ratios, clocks, and the README's table, made from a report that is made up."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from bench.gpu import command
from bench.reports import readme_table as table
from bench.reports import report as gpu_report
from bench.reports.report import Report, facts, lines, with_ratios
from tritensor.cuda.runtime.interface import Properties
from tritensor.ops.tuning.tuned import slug

PROPERTIES = Properties("NVIDIA Test 9000", (9, 0), 1 << 34, 132, 227 << 10, 2048, 32, 1 << 10, 1_980_000, 3_200_000, 6144, 13000)
HEAD = facts(PROPERTIES, quick=True)


# the report
def test_ratios() -> None:
    row = with_ratios({"ms": 2.0, "torch_ms": 4.0, "compile_ms": 1.0})
    assert (row["ratio_torch"], row["ratio_compile"], row["lost_ms"]) == (0.5, 2.0, 1.0)
    assert with_ratios({"ms": 2.0}) == {"ms": 2.0}


def test_what_nvidia_smi_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool = tmp_path / "nvidia-smi"
    tool.write_text("#!/bin/sh\necho '1980, 3201, 1980, 3201, 41, 120.5, 700, 0x0000000000000024, 580.1, P0'\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    found = gpu_report.clocks()
    assert found["clocks.sm"] == "1980"
    assert found["throttled"] == ["power cap", "software thermal"]
    tool.write_text('#!/bin/sh\nfor last; do :; done\necho "$last"\n')
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3,1")
    assert gpu_report.clocks()["clocks.sm"] == "3", "the GPU that this process calls 0"
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    assert gpu_report.clocks()["clocks.sm"] == "0"
    tool.write_text("#!/bin/sh\nexit 3\n")
    assert "nvidia-smi" in gpu_report.clocks()["missing"]
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    assert gpu_report.clocks() == {"missing": "nvidia-smi is not on this machine"}
    assert gpu_report.commit() == {"hash": "", "changed": None}


def test_names_of_files() -> None:
    assert slug("NVIDIA H100 80GB HBM3") == "nvidia-h100-80gb-hbm3"


# the README's table
def synthetic() -> dict[str, Any]:
    def row(op: str, corner: str, dtype: str, nbytes: int, ms: float, **more: Any) -> dict[str, Any]:
        return {"op": op, "corner": corner, "dtype": dtype, "shape": f"[{nbytes}]", "largest": True, "bytes": nbytes, "flops": 0, "ms": ms,
                "gbs": 1.0, "tflops": 0.0, "roof": 0.9, "host_us": 3.0, **more}  # fmt: skip

    rows = [
        row("softmax", "forward", "bfloat16", 100, 1.0, torch_ms=2.0, compile_ms=0.5),
        row("softmax", "forward", "bfloat16", 900, 9.0, torch_ms=6.0),
        row("add", "forward", "float32", 50, 0.5),
    ]
    content = Report(Path("unused"), {**HEAD, "commit": {"hash": "0123456789abcdef", "changed": True}}).content
    content["clocks"] = {"before": {}, "after": {"throttled": ["power cap"]}}
    content["roofline"] = {"copy_gbs": {"tritensor": 4100.0, "torch": 4200.0}, "tflops": {"bfloat16": {"tritensor": 700.0, "torch": 780.0}}}
    content["rows"] = {str(i): r for i, r in enumerate(rows)}
    content["training"] = {"LeNet, float32": {"eager_ms": 1.0, "graph_ms": 0.2, "torch_eager_ms": 1.1}}
    content["host"] = {"x + y": {"host_us": 3.5, "torch_host_us": 5.5}}
    content["not_timed"] = {"reshape": "a view"}
    return content


def test_the_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results = tmp_path / "results"
    results.mkdir()
    (results / "gpu.json").write_text(json.dumps(synthetic()))
    (results / "static-triton-3.9.json").write_text('{"kernels": {}}')  # lies there too, and is no report of a GPU
    readme = tmp_path / "README.md"
    readme.write_text(f"before\n{table.BEGIN}\nold\n{table.END}\nafter\n")
    for _ in range(2):  # twice: what is written is found again
        assert table.main(["--results", str(results), "--readme", str(readme), "--write"]) == 0
    page = readme.read_text()
    assert page.startswith("before\n")
    assert page.endswith(f"{table.END}\nafter\n")
    assert "old" not in page
    assert "| softmax forward | bfloat16 | [900] | 9.000 | 0.90 | 1.50 | – |" in page, "the largest row stands for the op"
    assert "copy 4200 GB/s, bfloat16 780 TFLOP/s" in page
    assert "NVIDIA Test 9000" in page
    assert "commit 0123456789ab with local changes" in page
    assert "| LeNet, float32 | 1.000 | 0.200 | 1.100 | – | – |" in page
    assert "| `x + y` | 3.50 | 5.50 |" in page
    assert "1 of 2 rows are at or below torch eager. Most time is lost in softmax forward bfloat16" in page
    assert table.main(["--results", str(results)]) == 0
    assert "softmax forward" in capsys.readouterr().out
    assert "throttled: power cap" in lines(synthetic())[0]


def test_a_table_without_a_report_or_a_place(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="no report in"):
        table.main(["--results", str(tmp_path)])
    (tmp_path / "gpu.json").write_text(json.dumps(synthetic()))
    (tmp_path / "README.md").write_text("nothing")
    with pytest.raises(SystemExit, match="has no line"):
        table.main(["--results", str(tmp_path), "--readme", str(tmp_path / "README.md"), "--write"])


def test_a_damaged_report_is_told_and_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "report.json"
    path.write_text('{"rows": {')
    with pytest.raises(SystemExit) as ended:
        Report.resumed(path, HEAD)
    assert ended.value.code == 2
    assert f"bench gpu --resume: {path}: no JSON" in capsys.readouterr().err
    assert path.read_text() == '{"rows": {'


@pytest.mark.parametrize("seconds", ["0", "-5", "inf"])
def test_a_time_limit_is_a_time(seconds: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        command.parser().parse_args(["--seconds", seconds])
    assert f"{seconds}: seconds, more than 0" in capsys.readouterr().err
