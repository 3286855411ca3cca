"""A report as a page and as a picture, from rows that are made up; and what is said where a picture cannot be drawn."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from bench.gpu import command
from bench.gpu.configs import in_words
from bench.reports import pictures
from bench.reports.page import page, rows_in_order
from bench.reports.report import Report, facts
from tritensor.cuda.runtime.interface import Properties

PROPERTIES = Properties("NVIDIA Test 9000", (9, 0), 1 << 34, 132, 227 << 10, 2048, 32, 1 << 10, 1_980_000, 3_200_000, 6144, 13000)
CONFIG = {"kernel": "_softmax", "num_warps": 8, "num_stages": 3, "constants": {"BN": 4096, "LAST": True, "NAME": "x"}, "launches": 2}


def row(op: str, corner: str, nbytes: int, ms: float, **more: Any) -> dict[str, Any]:
    return {"op": op, "corner": corner, "dtype": "float32", "shape": f"[{nbytes}]", "largest": True, "bytes": nbytes, "flops": 0, "ms": ms, "spread": 0.1,
            "eager_ms": 2 * ms, "eager_spread": 0.2, "gbs": 1000.0, "tflops": 0.0, "roof": 0.8, "host_us": 3.0, "cold": True, "model": "", **more}  # fmt: skip


def content(*rows: dict[str, Any]) -> dict[str, Any]:
    made = Report(Path("unused"), facts(PROPERTIES, quick=False)).content
    made["clocks"] = {"before": {}}
    made["roofline"] = {"copy_gbs": {"tritensor": 4100.0}, "tflops": {"bfloat16": {"tritensor": 700.0}}}
    made["rows"] = {str(i): r for i, r in enumerate(rows)}
    return made


ROWS = (
    row("softmax", "backward", 10, 1.0),
    row("softmax", "forward", 900, 2.0, torch_ms=4.0, compile_ms=1.0, model="GPT-2: attention weights", config=[CONFIG]),
    row("softmax", "forward", 100, 1.0, cold=False),
)


def test_a_page_has_every_row() -> None:
    made = content(*ROWS)
    made["failed"] = {"relu/forward": "LaunchError: no\nmore"}
    made["not_timed"] = {"reshape": "a view"}
    text = page(made)
    rows = [line for line in text.splitlines() if line.startswith("| softmax")]
    assert len(rows) == 3
    assert rows[1] == (
        "| softmax forward | float32 | [900] | GPT-2: attention weights | 2.0000 +- 0.1000 | 4.0000 +- 0.4000 | 3.0 | 1000 |  | 0.80 | 0.50 | 2.00 "
        "| _softmax x 2 8 warps, BN 4096 |"
    )
    assert "[100] *" in rows[0], "what fits the cache is marked"
    assert text.startswith("# NVIDIA Test 9000, ")
    assert "four times the second-level cache" in text
    assert "- `relu/forward`: LaunchError: no\n" in text
    assert "- `reshape`: a view" in text
    assert all(line.count("|") == rows[0].count("|") for line in text.splitlines() if line.startswith("|"))


def test_rows_stand_in_order() -> None:
    assert [(r["corner"], r["bytes"]) for r in rows_in_order(content(*ROWS))] == [("forward", 100), ("forward", 900), ("backward", 10)]


def test_configs_in_words() -> None:
    assert in_words([CONFIG, {**CONFIG, "launches": 1, "constants": {}}]) == "_softmax x 2 8 warps, BN 4096; _softmax 8 warps"


def test_a_picture_and_a_page_are_written(tmp_path: Path) -> None:
    said = pictures.written(content(*ROWS), tmp_path / "gpu.json")
    assert said == [f"page: {tmp_path / 'gpu.md'}", f"picture: {tmp_path / 'gpu.png'}"]
    assert (tmp_path / "gpu.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    assert "softmax forward" in (tmp_path / "gpu.md").read_text()


def test_the_picture_shows_the_shares_of_the_peers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plt = pictures.drawing("test")
    monkeypatch.setattr(plt, "close", lambda figure: None)
    assert pictures.draw(content(*ROWS), tmp_path / "a.png") == 0
    share, time = plt.gcf().axes
    peers = {line.get_label(): list(line.get_xdata()) for line in share.lines}
    assert peers["torch"] == [0.4]
    assert peers["torch.compile"] == [1.6]
    assert [bar.get_width() for bar in share.patches] == [0.8] * 3
    assert time.get_xscale() == "log"
    monkeypatch.undo()
    plt.close("all")


def test_too_many_rows_are_counted(tmp_path: Path) -> None:
    many = [row("add", "forward", i, 1.0) for i in range(pictures.MOST_ROWS + 5)]
    said = pictures.written(content(*many), tmp_path / "gpu.json")
    assert "without 5 rows" in said[1]
    assert (tmp_path / "gpu.md").read_text().count("| add forward") == len(many)


def test_a_report_without_rows_has_a_page(tmp_path: Path) -> None:
    assert pictures.written(content(), tmp_path / "gpu.json")[1] == "no picture: no row was timed"


def test_a_kept_report_is_drawn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "gpu.json").write_text(json.dumps(content(*ROWS)))
    assert command.main(["--table", str(tmp_path / "gpu.json"), "--plot"]) == 0
    assert (tmp_path / "gpu.png").exists()
    shown = capsys.readouterr().out
    assert "GPT-2: attention weights" in shown
    assert "in cache" in shown


def test_without_matplotlib_nothing_is_timed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setattr(command, "why_not", lambda: pytest.fail("it went on"))
    with pytest.raises(SystemExit, match="2"):
        command.main(["--plot"])
    assert capsys.readouterr().err == "bench gpu --plot: matplotlib is not installed; pip install matplotlib, or leave the picture out\n"
