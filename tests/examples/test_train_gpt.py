"""The GPT example: it learns, is the same for a seed, goes on from its checkpoint as if it had never stopped, and writes."""

from __future__ import annotations

from pathlib import Path

import pytest

import tritensor as tt
from examples import train_gpt

SMALL = [
    "--device",
    "cpu",
    "--quiet",
    "--layers",
    "1",
    "--width",
    "16",
    "--heads",
    "2",
    "--context",
    "16",
    "--batch-size",
    "4",
    "--megabytes",
    "0.05",
    "--check-every",
    "4",
    "--sample",
    "8",
]


def run(out: Path, steps: int, *more: str) -> float:
    return train_gpt.main([*SMALL, "--out", str(out), "--steps", str(steps), *more])


def test_a_run_that_stopped_goes_on_as_if_it_had_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(train_gpt, "CHECKS", 2)
    monkeypatch.setattr(train_gpt, "rate", lambda step, peak, total: peak)  # the schedule knows how many steps there will be
    whole = run(tmp_path / "whole", 8)
    run(tmp_path / "parts", 4)
    assert run(tmp_path / "parts", 8) == whole
    said = capsys.readouterr().out
    assert "going on from step 4" in said
    assert "def " in said
    assert (tmp_path / "whole" / "train_gpt.png").stat().st_size > 1000
    kept = tt.load(tmp_path / "whole" / "gpt.safetensors")
    assert kept["step"] == 8
    assert kept["progress"][3][-1] == whole
    assert kept["progress"][3][-1] < kept["progress"][3][0]
    with pytest.raises(SystemExit, match="give those, or --fresh"):
        run(tmp_path / "whole", 9, "--context", "8")


def test_the_text_is_the_alphabets(monkeypatch: pytest.MonkeyPatch) -> None:
    codes = train_gpt.source(0.02)
    assert len(codes) > 10_000
    assert codes.min() >= 0
    assert codes.max() < len(train_gpt.ALPHABET)
    x, y = train_gpt.split(codes, tt.device("cpu")).batch("train", 3, 10)
    assert x.shape == y.shape == (3, 10)
    assert tt.equal(x[:, 1:], y[:, :-1])


def test_the_rate_goes_up_and_down() -> None:
    rates = [train_gpt.rate(step, 1.0, 200) for step in range(200)]
    assert rates.index(max(rates)) in (19, 20)
    assert abs(rates[-1] - 0.1) < 1e-3
