"""utils.benchmark: Timer, Measurement, Compare."""

from __future__ import annotations

import time
from typing import Any

import pytest

import tritensor as tt
from tritensor.ground.errors import ArgumentError
from tritensor.utils.benchmark import (
    Compare,
    Language,
    Measurement,
    TaskSpec,
    Timer,
    ordered_unique,
    select_unit,
    trim_sigfig,
    unit_to_english,
)
from tritensor.utils.benchmark.timer import timer


def made(times: list[float], sub_label: str = "row", description: str = "column", threads: int = 1) -> Measurement:
    return Measurement(1, times, TaskSpec("x @ x", "pass", "", "table", sub_label, description, None, threads))


def test_a_statement_is_timed() -> None:
    count: list[int] = []
    m = Timer("seen.append(1)", setup="seen.clear()", globals={"seen": count}).timeit(500)
    assert len(count) == 500
    assert (m.number_per_run, len(m.times)) == (500, 1)
    assert m.median == m.mean == m.times[0]
    slow = Timer("sleep(0.002)", globals={"sleep": time.sleep}).blocked_autorange(min_run_time=0.01)
    assert 0.002 <= slow.median < 0.02
    assert sum(slow.raw_times) >= 0.01
    seen: list[Any] = []
    Timer("1 + 1").adaptive_autorange(max_run_time=0.05, callback=lambda n, t: seen.append((n, t)))
    assert seen


def test_the_library_and_threads_are_there() -> None:
    seen: list[Any] = []
    Timer("seen.append((torch.get_num_threads(), torch, tritensor))", globals={"seen": seen}, num_threads=2).timeit(1)
    assert seen[0][1] is seen[0][2] is tt
    before = tt.get_num_threads()
    assert seen[0][0] == (2 if tt.llvm.threads.blas() is not None else before)
    assert tt.get_num_threads() == before


def test_the_clock_waits_for_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    tt.zeros(2, device="cuda")
    waits: list[int] = []
    monkeypatch.setattr(tt.cuda, "synchronize", lambda: waits.append(1))
    assert timer() > 0
    assert waits == [1]


def test_what_times_are_worth() -> None:
    m = made([1.0e-3, 1.01e-3, 0.99e-3, 1.0e-3])
    assert m.median == pytest.approx(1e-3)
    assert m.iqr == pytest.approx(0.5e-5)
    assert m.meets_confidence()
    assert not m.has_warnings
    assert m.significant_figures == 4
    wild = made([1.0e-3, 3.0e-3, 0.5e-3, 2.0e-3])
    assert wild.has_warnings
    assert wild.significant_figures == 1
    assert "suggests significant environmental influence" in repr(wild)
    assert "Median: 1.00 ms" in repr(m)
    assert (m.label, m.sub_label, m.num_threads, m.title, m.as_row_name, m.env) == (
        "table",
        "row",
        1,
        "table: row",
        "row",
        None,
    )
    with pytest.raises(AttributeError, match="speed"):
        m.speed  # noqa: B018
    with pytest.raises(ValueError, match="no times"):
        made([]).median  # noqa: B018


def test_measurements_of_one_task_are_merged() -> None:
    merged = Measurement.merge([made([1.0]), made([3.0]), made([5.0], "other")])
    assert [m.times for m in merged] == [[1.0, 3.0], [5.0]]


def test_the_table() -> None:
    compared = Compare(
        [made([1e-3], "small", "ours"), made([2e-3], "small", "theirs"), made([5e-2], "large", "ours"), made([4e-3], "small", "ours", 2)]
    )
    lines = str(compared).splitlines()
    assert lines[0].startswith("[-")
    assert " table " in lines[0]
    assert [c.strip() for c in lines[1].split("|")] == ["", "ours", "theirs"]
    assert lines[2].startswith("1 threads: ---")
    assert [c.strip() for c in lines[3].split("|")] == ["small", "1.0", "2.0"]
    assert [c.strip() for c in lines[4].split("|")] == ["large", "50.0", ""]
    assert lines[5].startswith("2 threads: ---")
    assert "Times are in milliseconds (ms)." in lines
    compared.trim_significant_figures()
    compared.colorize(rowwise=True)
    assert "\033[92m" in str(compared)
    compared.colorize()
    compared.highlight_warnings()
    compared.extend_results([made([1e-3, 9e-3], "small", "ours")])
    assert "(! " in str(compared)


def test_units() -> None:
    assert [select_unit(t) for t in (5e-9, 1e-5, 0.02, 3.0)] == [("ns", 1e-9), ("us", 1e-6), ("ms", 1e-3), ("s", 1.0)]
    assert unit_to_english("us") == "microsecond"
    assert [trim_sigfig(x, 3) for x in (123456.0, 0.0012345, 0.0)] == [123000.0, pytest.approx(0.00123), 0.0]
    assert ordered_unique([3, 1, 3]) == [3, 1]


def test_mistakes() -> None:
    with pytest.raises(TypeError, match="give the statements as text"):
        Timer(lambda: 1)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match=r"C\+\+"):
        Timer("x", language=Language.CPP)
    with pytest.raises(ArgumentError, match="number is 0"):
        Timer("1").timeit(0)
    with pytest.raises(ArgumentError, match="0 threads"):
        Timer("1", num_threads=0).timeit(1)
    for call in (Timer("1").repeat, Timer("1").autorange, Timer("1").collect_callgrind):
        with pytest.raises(NotImplementedError):
            call()
    with pytest.raises(TypeError, match="give what a Timer returned"):
        Compare([3])  # type: ignore[list-item]
    with pytest.raises(ZeroDivisionError):
        Timer("1 / 0").timeit(1)


def test_a_measurement_is_shown_under_the_path_that_scripts_know() -> None:
    shown = repr(Timer("1 + 1").timeit(2)).splitlines()[0]
    assert shown.startswith("<tritensor.utils.benchmark.utils.common.Measurement object at 0x")
