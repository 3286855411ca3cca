"""The figures of the large kernels: none is worse than the committed table of this Triton version, and the table's rules are what they say."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import triton

from bench.static import figures_table
from bench.static.figures import Figure
from bench.static.figures_table import lines, load, path_for, regressions, save

ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.mark.static
def test_no_figure_is_worse_than_the_table() -> None:
    environment = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"} | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-m", "bench", "static", "--figures"], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "launches: GPT-2 small step" in done.stdout


def test_the_table_of_this_triton_is_there_and_whole() -> None:
    table = {f.name for f in load(path_for(triton.__version__))}
    for other in figures_table.RESULTS.glob("figures-triton-*.json"):
        assert table == {f.name for f in load(other)}, f"{other.name} has other figures: python -m bench static --figures --update"


def test_a_count_may_not_grow_and_a_share_may_wander_by_a_twentieth() -> None:
    before = [Figure("launches", 4), Figure("ms", 100.5), Figure("share", 0.9, 0.85, least=True), Figure("gone", 1)]
    found = [Figure("launches", 5), Figure("ms", 104.0), Figure("share", 0.8, 0.85, least=True), Figure("new", 7)]
    assert regressions(found, before) == ["launches: 5, was 4", "share: 0.8, was 0.9", "gone: not measured any more"]
    better = [Figure("launches", 3), Figure("ms", 50.0), Figure("share", 1.0, 0.85, least=True), Figure("gone", 0)]
    assert not regressions(better, before)


def test_the_file_comes_back(tmp_path: Path) -> None:
    figures = [Figure("a", 1, None), Figure("b", 0.25, 0.5, least=True)]
    save(tmp_path / "figures.json", figures, "3.9.0")
    assert load(tmp_path / "figures.json") == figures
    assert json.loads((tmp_path / "figures.json").read_text())["triton"] == "3.9.0"
    assert load(tmp_path / "none.json") == []


def test_the_lines_say_what_is_reached() -> None:
    shown = lines([Figure("a", 3, 2), Figure("b", 3, 2, least=True), Figure("c", 3)], [Figure("a", 4)])
    assert shown[1].split() == ["a", "3", "4", "<=", "2", "not", "yet"]
    assert shown[2].split() == ["b", "3", "-", ">=", "2", "reached"]
    assert shown[3].split() == ["c", "3", "-", "-"]
