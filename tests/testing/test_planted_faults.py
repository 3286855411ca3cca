"""sabotage: faults planted in ops of every sort are caught; one that no sample reaches is said to escape."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tritensor.ops.table import Sample, registry
from tritensor.testing import sabotage
from tritensor.testing.planted_faults import FAULTS


@pytest.mark.parametrize("name", ["tanh", "softmax", "matmul", "cat", "reshape", "sgd_step"])
def test_faults_are_caught(name: str) -> None:
    verdicts = sabotage(name)
    assert [v for v in verdicts if v.outcome != "caught"] == []
    assert len(verdicts) == {"tanh": 22, "softmax": 22, "matmul": 22, "cat": 22, "reshape": 10, "sgd_step": 8}[name]
    assert {v.fault for v in verdicts} <= {fault[0] for fault in FAULTS}
    assert all(f"{name}/" in v.finding for v in verdicts)


def test_a_fault_that_no_sample_reaches_escapes() -> None:
    good = registry["tanh"]
    rough = replace(good, samples=lambda rng: [Sample(s.inputs[0], smooth=False) for s in good.samples(rng)], keep_cache={})
    outcomes = {v.fault: v.outcome for v in sabotage(rough)}
    assert outcomes["rule: detaches the arriving gradient"] == "escaped"
    assert outcomes["forward kernel: an element off"] == "caught"


def test_a_fault_that_does_not_concern_an_op() -> None:
    outcomes = {v.fault: v.outcome for v in sabotage("argmax")}
    assert outcomes["forward kernel: 1 % off in 16 bits"] == "changes nothing"  # its result is whole numbers
    assert outcomes["forward kernel: an element off"] == "caught"
    assert not any(fault.startswith(("rule", "backward")) for fault in outcomes)


def test_what_is_wrong_in_the_op_itself_counts_for_nothing() -> None:
    good = registry["tanh"]
    wrong = replace(good, rule=good.rule._replace(functions=(lambda g, y: g,)), keep_cache={})  # type: ignore[union-attr]
    outcomes = {v.fault: v.outcome for v in sabotage(wrong)}
    assert outcomes["forward kernel: an element off"] == "caught"
