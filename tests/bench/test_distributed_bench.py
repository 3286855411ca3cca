"""The bench of several processes: ranks that answer, what is said where they do not, tables and bars. Times are not asserted."""

from __future__ import annotations

import time

import pytest

from bench.distributed import command, groups, quiet
from bench.distributed.groups import Group
from bench.distributed.timeline import bars, hidden

BUCKETS = ((0, 1 << 20, 1.0e-3, 2.5e-3), (1, 3 << 19, 2.0e-3, 4.0e-3))


@pytest.fixture(autouse=True)
def _one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")  # as `python -m bench` sets it
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "1")


def test_two_ranks_answer_until_they_are_told_to_end() -> None:
    with Group("tritensor", 2) as two:
        row = command.all_reduce({("tritensor", 2): two}, 2, 4096, 2, 1e-3, 0.0)
        assert set(row["seconds"]) == {"sync", "async", "mpi4py"}
        assert set(row["ratios"]) == {"sync / mpi4py", "async / mpi4py"}
        assert min(row["seconds"].values()) > 0
        (step,) = command.steps({("tritensor", 2): two}, 2, 1, 0.0)
        assert step["tritensor"]["step"] > 0
        cut = command.sharded({("tritensor", 2): two}, 2, 1, 0.0)
        assert [(row["ranks"], row["kind"]) for row in cut] == [(2, "ZeRO-1"), (2, "fully_shard")]
        assert min(row["seconds"]["tritensor"] for row in cut) > 0
        seen = two.ask("timeline", calls=3)
        assert len(seen) == 2
        assert sum(nbytes for _, nbytes, _, _ in seen[0]["buckets"]) >= 4 * (784 * 512 + 512 + 512 * 512 + 512 + 512 * 10 + 10)
        assert 0 < seen[0]["first"] < seen[0]["backward"] < seen[0]["step"]
        assert all(0 < ready < averaged for _, _, ready, averaged in seen[0]["buckets"])


def test_a_rank_that_fails_ends_the_bench() -> None:
    with pytest.raises(RuntimeError, match="2 ranks of tritensor ended at no_such_question"), Group("tritensor", 2) as two:
        two.ask("no_such_question")


def test_ranks_that_cannot_begin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(groups, "MODULE", "bench.no_such_module")
    with pytest.raises(RuntimeError, match="2 ranks of torch did not come"):
        Group("torch", 2)


def test_a_peer_without_torch_is_refused(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SystemExit) as end:
        command.peer_of("/no/such/python")
    assert end.value.code == 2
    assert "--peer /no/such/python cannot import torch" in capsys.readouterr().err
    monkeypatch.setattr(command.importlib.util, "find_spec", lambda name: None)
    assert command.peer_of(None) is None


def test_rounds_take_turns() -> None:
    orders = [command.turned(["a", "b", "c"], i) for i in range(3)]
    assert all(sorted(order) == ["a", "b", "c"] for order in orders)
    assert len({tuple(order) for order in orders}) == 3
    assert command.ratio([1.0, 9.0, 4.0], [1.0, 3.0, 2.0]) == 2.0


def test_the_quietest_rounds_count(monkeypatch: pytest.MonkeyPatch) -> None:
    now, worked, own = 0.0, 0.0, 0.0
    loads = [0.5, 0.0, 0.9, 0.1, 0.0, 0.0]

    def one(i: int) -> dict[str, float]:
        nonlocal now, worked, own
        now, own, worked = now + 1, own + 2, worked + 2 + loads[i]
        return {"a": float(i)}

    monkeypatch.setattr(quiet.time, "monotonic", lambda: now)
    monkeypatch.setattr(quiet.time, "sleep", lambda seconds: None)
    monkeypatch.setattr(quiet, "busy", lambda: worked)
    found, others = quiet.quietest(one, 3, lambda: own, patience=100)
    assert sorted(found["a"]) == [1, 3, 4], "three quiet rounds are had after five"
    assert others == pytest.approx(0.1)
    assert sorted(quiet.quietest(one, 2, lambda: own, patience=2.5).seconds["a"]) == [0, 1], "the best of what there was time for"


def test_what_all_do_on_the_machine() -> None:
    before, began = quiet.busy(), time.process_time()
    while time.process_time() < began + 0.2:
        pass
    assert quiet.busy() >= before + 0.15


def test_tables() -> None:
    seconds, ratios = {"sync": 1e-3, "async": 2e-3, "mpi4py": 0.5e-3}, {"sync / mpi4py": 2.0, "async / mpi4py": 4.0}
    rows = [{"ranks": 2, "nbytes": 1 << 24, "seconds": seconds, "ratios": ratios, "others": 0.12}]
    assert command.all_reduce_lines(rows)[-1].split() == ["2", "16", "MiB", "1000.0", "2000.0", "500.0", "-", "2.00", "4.00", "-", "0.12"]
    assert [command.size(n) for n in (4, 65536, 1 << 18, 3 << 19)] == ["4 B", "64 KiB", "256 KiB", "1.5 MiB"]
    ours, theirs = {"step": 5e-3, "without_averages": 3e-3}, {"step": 9e-3, "without_averages": 4e-3}
    steps = [
        {"ranks": 1, "tritensor": ours, "others": 0.5},
        {"ranks": 2, "tritensor": ours, "torch": theirs, "torch / tritensor": 1.8, "others": 0.5},
    ]
    assert command.step_lines(steps)[-2].split() == ["1", "5.00", "(", "3.00)", "-", "-", "0.50"]
    assert command.step_lines(steps)[-1].split() == ["2", "5.00", "(", "3.00)", "9.00", "(", "4.00)", "1.80", "0.50"]


def test_table_of_cut_models() -> None:
    row = {"ranks": 2, "kind": "ZeRO-1", "seconds": {"tritensor": 6e-3, "torch": 13e-3}, "torch / tritensor": 2.17, "others": 0.1}
    alone = row | {"seconds": {"tritensor": 6e-3}}
    del alone["torch / tritensor"]
    _, both, ours = (line.split() for line in command.sharded_lines([row, alone])[0:3])
    assert both == ["2", "ZeRO-1", "6.00", "13.00", "2.17", "0.10"]
    assert ours == ["2", "ZeRO-1", "6.00", "-", "-", "0.10"]


def test_bars_show_what_backward_hides() -> None:
    first, second = bars(BUCKETS, width=40)
    assert first.startswith("bucket 0   1.00 MiB  " + 10 * "." + 10 * "=" + 5 * "#" + 15 * " ")
    assert second.startswith("bucket 1   1.50 MiB  " + 20 * "." + 20 * "#")
    assert first.endswith("ready   1.00, averaged   2.50 ms")
    assert hidden(BUCKETS) == (pytest.approx(1e-3), pytest.approx(3.5e-3))
    shown = command.timeline_lines(2, {"buckets": BUCKETS, "step": 5e-3})
    assert shown[-1] == "  a step of 5.00 ms; of 3.50 ms of averaging backward hides 1.00"
