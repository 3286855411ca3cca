"""Programs of every kind from fixed seeds find nothing; and planted faults are found, and shrunk to a few statements."""

from __future__ import annotations

import os
import signal
from random import Random
from typing import Any

import pytest

import tritensor as tt
from tests.fuzz.driving import Fuzzer
from tests.fuzz.findings import Group
from tests.fuzz.guarding import guarded
from tests.fuzz.judges import devices
from tests.fuzz.judges_of_graphs import differences, shadowed
from tests.fuzz.kinds import KINDS, tensors
from tests.fuzz.kinds.kind import Kind
from tests.fuzz.program import Program, facts
from tests.fuzz.shrinking import shrink

# As many as take some seconds; the same programs on every machine.
PROGRAMS = {
    "tensors": 120, "transforms": 50, "modules": 50, "optimizers": 100, "configurations": 80, "probability": 100, "loaders": 150, "files": 150, "devices": 25,
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_programs_of_fixed_seeds(kind: str) -> None:
    report = Fuzzer().programs([kind], seed=20, count=PROGRAMS[kind])
    assert not report.groups, "\n".join(str(g) for g in report.groups.values())
    assert report.programs == {kind: PROGRAMS[kind]}


PLAIN = Kind("plain", tensors.plain, lambda torch: [shadowed, differences])
ON_DEVICES = Kind("on devices", tensors.plain, lambda torch: [devices])


def first(kind: Kind, judge: str, most: int = 300) -> Group:
    """The first failure that a judge finds, shrunk."""
    fuzzer = Fuzzer()
    for number in range(most):
        fuzzer.one(kind, f"7.{number}")
        found = [g for g in fuzzer.report.groups.values() if g.finding.judge == judge]
        if found:
            return found[0]
    raise AssertionError(f"{most} programs do not show the planted fault to the judge {judge}")


def test_a_view_with_wrong_strides_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    good = tt.Tensor.transpose

    def turned(x: Any, d: int, e: int) -> Any:
        made = good(x, d, e)
        return made.as_strided(made.shape, made.stride()[::-1]) if made.ndim == 2 else made

    monkeypatch.setattr(tt.Tensor, "transpose", turned)
    group = first(PLAIN, "model")
    assert group.finding.op == "transpose"
    assert len(group.program.statements) <= 3


def test_a_wrong_gradient_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    good = tt.Tensor.sin

    class Wrong(tt.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return good(x)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * ctx.saved_tensors[0].cos() * 1.1

    monkeypatch.setattr(tt.Tensor, "sin", lambda x: Wrong.apply(x))
    group = first(PLAIN, "differences")
    assert len(group.program.statements) <= 4
    assert "sin()" in group.program.script()


def test_a_write_that_leaves_no_trace_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    from tritensor.autograd.node import Version

    monkeypatch.setattr(Version, "bump", lambda self, who: None)
    group = first(PLAIN, "differences")
    assert len(group.program.statements) <= 6


def test_a_difference_between_devices_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    good = tt.Tensor.abs
    monkeypatch.setattr(tt.Tensor, "abs", lambda x: good(x) + 1 if x.is_cuda else good(x))
    group = first(ON_DEVICES, "devices")
    assert group.finding.op == "abs"
    assert len(group.program.statements) <= 3


def test_a_transform_that_loses_a_factor_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    good = tt.func.jacfwd
    monkeypatch.setattr(tt.func, "jacfwd", lambda f: lambda x: good(f)(x) * 2)
    group = first(KINDS["transforms"], "pairs")
    assert "jacfwd" in group.program.script()
    assert len(group.program.statements) <= 5


def test_a_file_that_forgets_a_type_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    good = tt.load
    monkeypatch.setattr(tt, "load", lambda *args, **options: _halved(good(*args, **options)))
    assert first(KINDS["files"], "pairs").finding.nature == "values"


def _halved(value: Any) -> Any:
    """A state whose tensors are off."""
    if isinstance(value, list | tuple):
        return type(value)(_halved(v) for v in value)
    if isinstance(value, dict):
        return {k: _halved(v) for k, v in value.items()}
    return value + 1 if isinstance(value, tt.Tensor) and value.dtype in (tt.float32, tt.int64, tt.float64) else value


def test_the_same_seed_draws_the_same_program() -> None:
    import random

    for kind in KINDS.values():
        one, other = (kind.draw(random.Random("a seed")) for _ in range(2))
        assert one == other, kind.name


def test_a_script_runs_by_itself() -> None:
    program = Program(("v0 = tt.tensor([1.0], device=dev)", "v1 = copy.deepcopy(v0) * inf", "v2 = np.float32(1)"))
    exec(program.script(), {})


def test_facts_of_statements() -> None:
    said = facts("v2 = v0.sin() + sum(g for g in v1)")
    assert (said.sets, said.reads, said.op) == ({"v2"}, {"v0", "v1"}, "add")
    assert facts("v0[1:, 0] = v1").op == "setitem"
    assert facts("with tt.no_grad(): v3 = v1.narrow(0, 0, 1)").op == "narrow"
    assert facts("def f(x):\n    y = x * 2\n    return y").sets == {"f"}


def test_shrinking_keeps_what_fails() -> None:
    program = Program(
        (
            "v0 = tt.tensor([[1.5, 2.0], [3.0, 4.0]])",
            "v1 = v0.exp()",
            "v2 = v1.mT.reshape(-1)",
            "v3 = v2 * 2",
            "v4 = v1.sum(0, keepdim=True)",
        )
    )
    small = shrink(program, lambda p: any("exp()" in s for s in p.statements))
    assert len(small.statements) <= 2
    assert len(small.script().splitlines()) <= 10


def test_a_program_that_ends_the_process_is_told_and_the_next_one_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    here, last = os.getpid(), Random("deadly 7.2").random()

    def deadly(random: Random) -> Program:
        if random.random() == last and os.getpid() != here:
            os.kill(os.getpid(), signal.SIGKILL)
        return tensors.plain(random)

    monkeypatch.setitem(KINDS, "deadly", Kind("deadly", deadly, lambda torch: []))
    fuzzer = Fuzzer()
    guarded(fuzzer, [("deadly", f"7.{k}") for k in range(5)])
    assert fuzzer.report.programs == {"deadly": 5}
    (group,) = fuzzer.report.groups.values()
    assert (group.seed, group.count, group.finding.nature) == ("7.2", 1, "ends by SIGKILL")
