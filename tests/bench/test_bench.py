"""The benchmarks run: a row of `bench ops`, a step of `bench train`, and the paired timing itself. Times are not asserted."""

from __future__ import annotations

import numpy as np
import pytest

import tritensor as tt
from bench.cpu import apart, loader, ops, optim, timing, train
from bench.cpu.ops import OnCpu
from bench.cpu.timing import line, paired, quartiles
from bench.gpu.rows import corners
from tritensor.ops.table import Sample, registry


def test_a_row_names_op_inputs_and_rates() -> None:
    forward, backward = corners(registry["softmax"], "float32", Sample(np.ones((4, 8)), dim=1))
    row = ops.row(OnCpu(), forward, 0.001)
    assert row["bytes"] == 2 * 4 * 8 * 4
    assert row["gbs"] == pytest.approx(row["bytes"] / row["ms"] / 1e6, rel=0.01, abs=1e-3)
    assert ops.line(row).startswith("softmax             for float32  [4, 8], dim=1")
    assert "GB/s" in ops.line(row)
    assert "softmax             bac " in ops.line(ops.row(OnCpu(), backward, 0.001))


def test_quartiles_are_of_one_call(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = iter([9.0, *(1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0)])
    monkeypatch.setattr(timing, "once", lambda f, calls: next(taken))
    middle, spread = quartiles(lambda: None, 0.1, rounds=7)
    assert middle == 4.0
    assert spread == 1.0


@pytest.mark.parametrize(("make", "shape"), [(train.lenet, (2, 1, 28, 28)), (train.mlp, (2, 784))])
def test_a_training_step_runs(make: object, shape: tuple[int, ...]) -> None:
    for optimizer in ("SGD", "Adam"):
        train.step(tt, make, shape, optimizer)()


def _counting(numbers: list[int]) -> object:
    return lambda: numbers.append(len(numbers))


def _breaking() -> object:
    raise SystemExit(3)


def test_two_sides_are_timed_in_processes_of_their_own() -> None:
    both = apart.paired(_counting, ([],), ([1],), 0.001)
    assert both.ratio is not None
    assert apart.paired(_counting, ([],), None, 0.001).ratio is None
    with pytest.raises(RuntimeError, match="has ended"), apart.Timed(_breaking) as side:
        side.once(1)


def test_the_steps_of_the_list_can_be_had_by_name() -> None:
    assert callable(train.timed("tritensor", 1, "LeNet 28x28, 64 images, Adam"))


def test_a_step_of_every_optimizer_is_timed() -> None:
    for label in optim.SETTINGS:
        text, ratio = optim.line(None, label, [4, 9], 0.001)
        assert text.endswith(" us")
        assert ratio is None


def test_paired_gives_a_ratio_only_with_a_peer() -> None:
    alone = paired(lambda: None, None, seconds=0.01, rounds=3)
    assert alone.peer is alone.ratio is None
    both = paired(lambda: None, lambda: None, seconds=0.01, rounds=3)
    assert both.ratio is not None
    assert "x torch" in line("nothing", both)


@pytest.mark.slow
def test_loaders_take_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loader, "MIB", 1 << 12)
    assert set(loader.sleeping(30, 1)) == {"one process", "two workers"}
    rate = loader.large(3, 1, peer=False)["tritensor"]
    assert rate > 0
