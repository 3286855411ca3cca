"""The bench of checkpoints runs, and what it says of memory holds: a load takes the bytes and no more, a save nothing beside the model."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.cpu import checkpoint


def test_a_line_of_the_bench(tmp_path: Path) -> None:
    nbytes = 64 * 4 * 1000
    saved = checkpoint.measure("save torch", tmp_path, nbytes)
    loaded = checkpoint.measure("load torch", tmp_path, nbytes)
    assert saved["seconds"] > 0
    assert checkpoint.line("load torch", [loaded], [{"seconds": 2 * loaded["seconds"], "peak": 1.0}], nbytes).startswith("load torch    ")
    assert "0.50 x plain" in checkpoint.line("load torch", [loaded], [{"seconds": 2 * loaded["seconds"], "peak": 1.0}], nbytes)


def test_torch_is_left_out_where_it_is_not_installed() -> None:
    assert not [n for n in checkpoint.names(False) if n.startswith("torch")]
    assert checkpoint.names(True) == list(checkpoint.CASES)


@pytest.mark.slow
def test_memory(tmp_path: Path) -> None:
    nbytes = 64 * 4 * 1_000_000
    for name in checkpoint.names(False):
        if name.startswith("plain"):
            continue
        peak = checkpoint.measure(name, tmp_path, nbytes)["peak"]
        assert peak < (0.1 if checkpoint.CASES[name][1] else 1.1), f"{name}: {peak:.2f} x the bytes"
