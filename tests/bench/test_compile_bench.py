"""`python -m bench compile`: its cases give lazily what they give eagerly, a wrong result is no time, what is asked stands beside what was measured."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from bench.compile import cases, command, sides
from bench.compile.sides import COMPILED, EAGER, JIT, LAZY, TORCH, Taken
from tritensor.tools.run_script import opened

SMALL = [
    "gelu-tanh, 256",
    "layer norm, 64 x 256",
    "RNN cell, 4 x 32",
    "LSTM, T 8 B 32 H 128, training step",
    "GRU, T 8 B 32 H 128, training step",
]


@pytest.fixture
def answered() -> Iterator[None]:
    """Within a test `import torch` gives tritensor."""
    with opened():
        yield


@pytest.mark.usefixtures("answered")
@pytest.mark.parametrize("name", [*SMALL, *cases.CHAINS])
def test_a_case_gives_lazily_what_it_gives_eagerly(name: str, tmp_path: Path) -> None:
    files = [str(tmp_path / f"{side}.npz") for side in (EAGER, LAZY)]
    steps = [cases.build(side, name, file) for side, file in zip((EAGER, LAZY), files, strict=True)]
    assert sides.difference(*files) == ""
    eager, lazy = ([step() for _ in range(4)][-1] for step in steps)
    if eager is not None:
        for x, y in zip(*((found if isinstance(found, tuple) else (found,)) for found in (eager, lazy)), strict=True):
            np.testing.assert_allclose(y.detach().numpy(), x.detach().numpy(), rtol=1e-4, atol=1e-5)


def test_the_cases_are_those_of_the_design() -> None:
    assert (len(cases.FORMULAS), len(cases.LOOPS), len(cases.CHAINS)) == (11, 7, 2)
    assert {a.case for a in command.ASKED} - {""} <= cases.CASES.keys()


def test_results_that_differ_are_told(tmp_path: Path) -> None:
    def kept(name: str, *arrays: np.ndarray) -> str:
        np.savez(tmp_path / name, *arrays)
        return str(tmp_path / f"{name}.npz")

    ones = np.ones(3, np.float32)
    right = kept("right", ones)
    assert sides.difference(right, kept("close", ones + np.float32(1e-6))) == ""
    assert sides.difference(right, kept("far", ones + np.float32(0.5))) == "differs from tritensor by 0.5"
    assert "differs" in sides.difference(right, kept("nan", ones * np.float32(np.nan)))
    assert sides.difference(right, kept("two", ones, ones)) == "gives 2 results, tritensor 1"
    assert sides.difference(right, kept("wide", np.ones(3))) == "gives float64 (3,), tritensor float32 (3,)"
    assert "no result" in sides.difference(str(tmp_path / "none.npz"), right)
    failed = sides.taken({EAGER: [2.0, 1.0, 9.0], LAZY: [1.0]}, {LAZY: "differs"})
    assert failed == Taken({EAGER: 2.0}, {EAGER: 1.0}, {LAZY: "differs"})
    assert failed.ratio(EAGER) is None


def test_what_is_asked_stands_beside_what_was_measured() -> None:
    seconds = {EAGER: 2e-6, LAZY: 1e-6, TORCH: 2e-6, COMPILED: 4e-6, JIT: 1e-6}
    found = {case: Taken(seconds, seconds, {}) for case in cases.FORMULAS}
    lines = [" ".join(line.split()) for line in command.lines_of_asked(found)]
    assert "geometric mean of the formulas / torch.compile <= 0.7 0.25 reached" in lines
    assert "gelu-tanh, 1M / torch <= 0.25 0.50 not yet" in lines
    assert not any(line.startswith("LSTM") for line in lines)
    table = [" ".join(line.split()) for line in command.lines_of_known(found, (TORCH, JIT))]
    assert table[1:3] == ["gelu-tanh, 1M 1.0 0.50 (0.50) 1.00 (1.00)", "gelu-tanh, 16k 1.0 0.50 (0.50) 1.00 (1.00)"]
    assert table[-1] == "geometric mean of the 11 formulas 0.50 1.00"


def test_a_peer_that_is_missing_is_said(tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\nexit 1\n")
    python.chmod(0o755)
    found, missing = sides.libraries([f"jax={python}"])
    assert [library.name for library in found] == [EAGER, LAZY]
    assert missing == [f"jax is not installed for {python}: left out. Name a Python that has it: --peer jax=PATH/bin/python"]
    with pytest.raises(SystemExit, match="the peers are torch, jax"):
        sides.libraries(["mlx"])


def test_known_and_first_calls_are_timed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "figures.json"
    asked = ["--known", "--first", "--only", "gelu-tanh, 256;nothing held", "--rounds", "1", "--seconds", "0.001", "--json", str(file)]
    assert command.main(asked) == 0
    made = json.loads(file.read_text())
    assert made["known"].keys() == made["first"].keys() == {"gelu-tanh, 256", f"{cases.OPS} sums on 4 x 3, nothing held"}
    assert all(t["ratios"][EAGER] > 0 and not t["failed"] for t in made["known"].values())
    assert all(len(own[LAZY]) == 2 and min(own[LAZY]) > 0 for own in made["first"].values())
    assert "nothing held / tritensor" in capsys.readouterr().out
