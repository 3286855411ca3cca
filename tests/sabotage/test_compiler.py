"""Faults planted in what notes, plans and runs calls: the quick tests of it find nearly all of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.mutate.__main__ import ROOT, Copy
from tests.mutate.faults import Fault, parses
from tests.mutate.selection import Stage
from tests.sabotage.planted.compiler import FAULTS

LEAST = 0.95
# in the order in which they are asked
TESTS = (
    ["tests/lazy_evaluation/test_known_paths.py", "tests/lazy_evaluation/test_following.py", "tests/fusion/test_settling.py"],
    ["tests/lazy_evaluation/test_bad_input.py"],
    [
        f"tests/fusion/test_{x}.py"
        for x in ("groups", "joining", "machine_calls", "patterns", "loss_patterns", "draws", "spaces", "structure", "random_graphs")
    ],
    ["tests/lazy_evaluation/test_random_programs.py"],
    ["tests/kernels/tapes", "tests/fusion/test_on_a_gpu.py"],
    ["tests/lazy_evaluation/test_walk.py"],
)


def fault_of(name: str) -> Fault:
    """A planted fault as the bug planter has it."""
    path, old, new = FAULTS[name]
    source = (ROOT / path).read_bytes()
    assert source.count(old.encode()) == 1, f"{name}: {path} has {old!r} {source.count(old.encode())} times"
    start = source.index(old.encode())
    return Fault(path, "", name, start, start + len(old.encode()), new)


@pytest.mark.parametrize("name", FAULTS)
def test_faults_stand_in_the_files_of_now(name: str) -> None:
    fault = fault_of(name)
    assert parses(fault, (ROOT / fault.path).read_bytes())


@pytest.mark.slow
@pytest.mark.full
def test_quick_tests_find_them(tmp_path: Path) -> None:
    copy, sound = Copy(tmp_path / "tree", "quick"), dict[str, bool]()
    try:
        verdicts = [copy.judged(fault_of(name), sound, [Stage("pytest", what) for what in TESTS]) for name in FAULTS]
    finally:
        copy.close()
    left = [v.diff for v in verdicts if not v.killer]
    assert len(left) <= (1 - LEAST) * len(FAULTS), "\n\n".join(left)
