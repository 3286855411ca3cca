"""`python -m bench small`: its actions and workloads run on ours, its figures are of the rounds, and what fails is told and left."""

from __future__ import annotations

import json
import math
import runpy
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.small import child, command, programs, sides, table
from bench.small.actions import ACTIONS, statement
from bench.small.sequence import AROUND, SEQUENCE
from bench.small.sides import FLOOR, OURS, TORCH, Library, in_turn, libraries, summary
from tests.programs import record
from tritensor.tools.run_script import opened

OWN = Library(OURS, "torch", sides.ROOT)


@pytest.fixture
def answered() -> Iterator[None]:
    """Within a test `import torch` gives tritensor."""
    with opened():
        yield


@pytest.mark.usefixtures("answered")
@pytest.mark.parametrize("name", command.WORKLOADS)
def test_a_workload_runs_and_repeats_itself(name: str) -> None:
    build = runpy.run_path(str(command.WORKLOADS[name]))["build"]
    if name == "reinforce":
        build = lambda b=build: b(lambda policy: (policy.probs[:, 1] > 0.5).long())  # noqa: E731
    first, second = (list(iter(step() for _ in range(2))) for step in (build(), build()))
    assert first == second
    assert all(math.isfinite(loss) for loss in first)


@pytest.mark.usefixtures("answered")
@pytest.mark.parametrize("kind", ["torch", "numpy"])
def test_every_action_runs(kind: str) -> None:
    asked = [{"build": a.name, **a.questions()[kind]} for a in ACTIONS] + [{"run": a.name, "calls": 1} for a in ACTIONS]
    answers = list(child.answers(kind, map(json.dumps, asked)))
    assert [(q, a) for q, a in zip(asked, answers, strict=True) if "error" in a] == []
    assert len({a.name for a in ACTIONS}) == len(ACTIONS) == 84


@pytest.mark.usefixtures("answered")
def test_a_statement_of_the_sequence_runs_alone() -> None:
    for body in [*SEQUENCE, "\n".join(SEQUENCE)]:
        asked = statement(body, AROUND, *SEQUENCE)
        child.statement("torch", asked["setup"], asked["body"])(1)


def test_what_fails_is_told_and_the_rest_is_timed(capsys: pytest.CaptureFixture[str]) -> None:
    asked = {
        "fails": {"torch": statement("1 / 0"), "numpy": statement("1 + 1")},
        "ends": {"numpy": statement("import os; os._exit(3)")},
        "works": {"torch": statement("torch.ones(2)")},
    }
    of = [OWN, Library(FLOOR, "numpy")]
    with sides.opened(of) as running:
        found = in_turn(running, asked, rounds=2, seconds=1e-4)
    assert found["works"].seconds[OURS] > 0
    assert found["ends"].failed == {FLOOR: "ended with 3: it said nothing"}
    assert found["fails"].failed.keys() == {OURS, FLOOR}  # numpy's process ended before its rounds
    table.Table("statements", of).add(found)
    assert f"    {OURS} FAILED ZeroDivisionError: division by zero" in capsys.readouterr().out


def test_a_ratio_is_of_the_least() -> None:
    found = summary({TORCH: [2.0, 4.0], OURS: [3.0, 5.0], "tree": [9.0]}, {"tree": "MemoryError: "})
    assert found.seconds == {TORCH: 2.0, OURS: 3.0}
    assert found.ratios == {OURS: 1.5}
    assert summary({OURS: [3.0]}, {}).ratios == {}


def test_a_part_ends_with_means_and_counts(capsys: pytest.CaptureFixture[str]) -> None:
    made = table.Table("actions", [Library(TORCH, "torch"), OWN, OWN._replace(name="tree")])
    made.add({name: summary({TORCH: [1e-6], OURS: [ratio * 1e-6], "tree": [2e-6]}, {}) for name, ratio in {"a": 0.5, "b": 8.0}.items()})
    made.end(worse=(1.2, 2.0), named=4.0)
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert "b 8.00 us 1.00 us 8.00 x torch 2.00 us 2.00 x torch" in lines
    assert lines[-6:] == [
        "geometric mean of the actions 2.00 x torch", "of 2: 1 above 1.2, 1 above 2", "8.00 b",
        "geometric mean of the actions, tree 2.00 x torch", "of 2: 2 above 1.2, 0 above 2",
        "geometric mean of the actions, tree 1.000 x tritensor",
    ]  # fmt: skip


def test_a_program_is_run_first_and_again(tmp_path: Path) -> None:
    file = tmp_path / "program.py"
    file.write_text("import torch, sys\nprint(torch.ones(2, requires_grad=True).sum().backward())\n__name__ == '__main__' or sys.exit(1)\n")
    assert programs.steady([OWN], file, 1, 1e-3).seconds[OURS] > 0
    whole, run = programs.first([OWN], file, 1)
    assert 0 < run.seconds[OURS] < whole.seconds[OURS]
    file.write_text("raise SystemExit('enough')")
    assert programs.first([OWN], file, 1)[0].failed == {OURS: "SystemExit: enough"}


def test_a_start_stands_beside_that_of_numpy_and_triton() -> None:
    found, base = programs.start([OWN], 1)
    assert found.seconds[OURS] > 0.5 * base > 0


def test_the_programs_are_those_of_the_tests() -> None:
    assert [*programs.PROGRAMS.values()] == record.PROGRAMS


def test_a_tree_is_another_child(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "figures.json"
    asked = [
        "--actions",
        "--only",
        "x.shape,x.size",
        "--rounds",
        "1",
        "--seconds",
        "0.0001",
        "--tree",
        f"again={sides.ROOT}",
        "--json",
        str(file),
    ]
    assert command.main(asked) == 0
    figures = json.loads(file.read_text())["actions"]
    assert list(figures) == ["x.shape", "x.size(-1)"]
    assert all(set(found["seconds"]) == {OURS, "again", FLOOR} for found in figures.values())
    assert "x.size(-1)" in capsys.readouterr().out
    with pytest.raises(SystemExit, match="a folder that holds tritensor/"):
        libraries(False, [f"mine={tmp_path}"])
