"""The planner on a clock that is not real: every step keeps its budget, what is left over is used, and what does not fit is said."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.gpu.lease.ledger import Entry, Ledger
from tests.gpu.lease.perform import Step
from tests.gpu.lease.plan import carry_out, in_order
from tests.gpu.lease.steps import STEPS
from tests.lease.fake_steps import IDENTITY


def planned(name: str, least: float, most: float, kind: str = "proof") -> Step:
    return Step(name, kind, least, most, lambda work, seconds: [])


class Machine:
    """A machine on which each step needs so many seconds; calls are noted as (step, seconds given, limited)."""

    def __init__(self, folder: Path, needs: dict[str, float], seconds: float) -> None:
        self.ledger, self.needs, self.end, self.now = Ledger(folder, IDENTITY), dict(needs), seconds, 0.0
        self.calls: list[tuple[str, float, bool]] = []

    def left(self) -> float:
        return self.end - self.now

    def perform(self, step: Step, seconds: float, limited: bool) -> None:
        self.calls.append((step.name, seconds, limited))
        used = min(seconds, self.needs[step.name])
        self.needs[step.name] -= used
        self.now += used
        self.ledger.note(step.name, outcome="unfinished" if self.needs[step.name] else "passed", older="")

    def run(self, *steps: Step) -> Machine:
        carry_out(steps, self.ledger, self.left, self.perform, lambda text: None)
        return self


def outcomes(machine: Machine) -> dict[str, str]:
    return {name: entry.outcome for name, entry in machine.ledger.steps.items()}


def test_each_gets_its_budget_then_the_rest_is_shared(tmp_path: Path) -> None:
    machine = Machine(tmp_path, {"a": 100, "b": 10, "c": 50}, 200.0).run(planned("a", 5, 60), planned("b", 5, 60), planned("c", 5, 60))
    assert machine.calls == [("a", 60, False), ("b", 60, False), ("c", 60, False), ("a", 80, True)]
    assert outcomes(machine) == {"a": "passed", "b": "passed", "c": "passed"}


def test_what_does_not_fit_is_left_for_the_next_run_and_said(tmp_path: Path) -> None:
    machine = Machine(tmp_path, {"a": 60, "b": 50, "c": 3}, 100.0).run(planned("a", 5, 60), planned("b", 50, 60), planned("c", 3, 3))
    assert machine.calls == [("a", 60, False), ("c", 3, False)]
    assert machine.ledger.steps["b"].outcome == "left"
    assert machine.ledger.steps["b"].why == "needs 50 s and 40 s were left: for the next run"


def test_a_step_that_gets_less_than_its_own_is_told_so(tmp_path: Path) -> None:
    machine = Machine(tmp_path, {"a": 60, "b": 60}, 100.0).run(planned("a", 5, 60), planned("b", 5, 60))
    assert machine.calls[1] == ("b", 40, True)
    assert outcomes(machine) == {"a": "passed", "b": "unfinished"}


def test_the_next_run_does_exactly_the_rest(tmp_path: Path) -> None:
    steps = (planned("a", 5, 60), planned("b", 5, 60), planned("c", 30, 60))
    machine = Machine(tmp_path, {"a": 20, "b": 60, "c": 40}, 60.0).run(*steps)
    machine.end, machine.now, machine.calls = 100.0, 0.0, []
    machine.run(*steps)
    assert [name for name, *_ in machine.calls] == ["b", "c"]
    assert set(outcomes(machine).values()) == {"passed"}


def test_an_older_trees_figures_come_after_everything_else(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path, IDENTITY)
    ledger.steps["a"] = Entry("passed", 1.0, "4 us", older="beef")
    steps = (planned("a", 5, 60, "figures"), planned("b", 5, 60), planned("c", 5, 60, "figures"))
    assert [s.name for s in in_order(steps, ledger)] == ["b", "c", "a"]


@pytest.mark.parametrize("seed", range(40))
def test_no_plan_passes_its_end(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    steps = [planned(f"s{i}", rng.uniform(0, 60), 0, rng.choice(["proof", "figures"])) for i in range(rng.randint(1, 12))]
    steps = [s._replace(most=s.least + rng.uniform(0, 100)) for s in steps]
    machine = Machine(tmp_path, {s.name: rng.uniform(0, 150) for s in steps}, rng.uniform(0, 600)).run(*steps)
    assert machine.now <= machine.end
    assert all(seconds >= next(s.least for s in steps if s.name == name) for name, seconds, _ in machine.calls)
    assert set(outcomes(machine)) == {s.name for s in steps}, "nothing is passed over in silence"
    for s in steps:
        if outcomes(machine)[s.name] == "unfinished":
            assert machine.left() < s.least, "time was left for it"


def test_the_real_plan_is_in_the_order_of_worth_and_fits_in_two_runs() -> None:
    names = [s.name for s in STEPS]
    assert names[:5] == ["doctor", "smoke", "demos", "host", "bench quick"]
    assert names.index("suite core") < names.index("bench all") < names.index("tune") < names.index("suite sanitizer")
    assert all(s.least <= s.most for s in STEPS)
    assert sum(s.most for s in STEPS[:5]) < 766, "the first five fit into one run"
