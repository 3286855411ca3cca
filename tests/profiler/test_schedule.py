"""Schedules, steps, what happens when a recording is over."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import pytest

import tritensor as tt
from tritensor.profiler import (
    ProfilerAction,
    ProfilerActivity,
    kineto_available,
    profile,
    schedule,
    supported_activities,
    tensorboard_trace_handler,
)

CPU = [ProfilerActivity.CPU]
NONE, WARMUP, RECORD, SAVE = ProfilerAction.NONE, ProfilerAction.WARMUP, ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE


@pytest.mark.parametrize(
    ("numbers", "wanted"),
    [
        ({"wait": 1, "warmup": 1, "active": 2, "repeat": 1}, [NONE, WARMUP, RECORD, SAVE, NONE, NONE]),
        ({"wait": 0, "warmup": 1, "active": 1}, [WARMUP, SAVE, WARMUP, SAVE]),
        ({"wait": 2, "warmup": 1, "active": 1, "skip_first": 1}, [NONE, NONE, NONE, WARMUP, SAVE, NONE]),
        ({"wait": 2, "warmup": 1, "active": 1, "skip_first_wait": 1}, [WARMUP, SAVE, NONE, NONE, WARMUP, SAVE]),
    ],
)
def test_what_is_done_in_each_step(numbers: dict[str, int], wanted: list[ProfilerAction]) -> None:
    plan = schedule(**numbers)
    assert [plan(i) for i in range(len(wanted))] == wanted


@pytest.mark.parametrize("numbers", [{"wait": -1, "warmup": 1, "active": 1}, {"wait": 0, "warmup": 1, "active": 0}])
def test_numbers_that_make_no_sense(numbers: dict[str, int]) -> None:
    with pytest.raises((ValueError, AssertionError), match="active must be 1 or more"):
        schedule(**numbers)


def test_no_warm_up_is_told() -> None:
    with pytest.warns(UserWarning, match="won't be using warmup"):
        plan = schedule(wait=0, warmup=0, active=1)
    with pytest.raises(ValueError, match="step -1"):
        plan(-1)


def steps(prof: profile, n: int) -> None:
    for _ in range(n):
        tt.ones(2).exp()
        prof.step()


def test_cycles() -> None:
    seen: list[tuple[int, dict[str, int]]] = []

    def ready(prof: profile) -> None:
        seen.append((prof.step_num, {e.key: e.count for e in prof.key_averages()}))

    with profile(activities=CPU, schedule=schedule(wait=1, warmup=1, active=2), on_trace_ready=ready) as prof:
        steps(prof, 8)
    assert [step for step, _ in seen] == [4, 8]
    assert seen[0][1] == {"ProfilerStep*": 2, "full": 2, "exp": 2}
    assert seen[1][1] == {"ProfilerStep*": 2, "full": 2, "exp": 2}
    assert [e.name for e in prof.events() if e.key == "ProfilerStep*"] == ["ProfilerStep#6", "ProfilerStep#7"]


def test_acc_events_keeps_all_cycles() -> None:
    for keep, wanted in ((True, 4), (False, 2)):
        with profile(activities=CPU, schedule=schedule(wait=0, warmup=1, active=2), acc_events=keep) as prof:
            steps(prof, 6)
        assert next(e.count for e in prof.key_averages() if e.key == "exp") == wanted


def test_the_end_comes_early() -> None:
    seen: list[Any] = []
    plan = schedule(wait=1, warmup=1, active=2, repeat=1)
    for n, wanted in ((0, 0), (1, 0), (2, 1), (3, 1), (4, 1), (6, 1)):
        seen.clear()
        with profile(activities=CPU, schedule=plan, on_trace_ready=seen.append) as prof:
            steps(prof, n)
        assert len(seen) == wanted, n


def test_without_a_schedule_all_is_recorded() -> None:
    seen: list[Any] = []
    prof = profile(activities=CPU, on_trace_ready=seen.append)
    prof.start()
    steps(prof, 3)
    prof.stop()
    prof.stop()
    assert len(seen) == 1
    assert next(e.count for e in prof.key_averages() if e.key == "exp") == 3
    assert not any(e.key.startswith("ProfilerStep") for e in prof.key_averages())


@pytest.mark.parametrize("zipped", [False, True])
def test_traces_where_tensorboard_looks(tmp_path: Path, zipped: bool) -> None:
    with profile(
        activities=CPU,
        schedule=schedule(wait=0, warmup=1, active=1),
        on_trace_ready=tensorboard_trace_handler(str(tmp_path / "log"), "me", zipped),
    ) as prof:
        steps(prof, 4)
    found = sorted((tmp_path / "log").iterdir())
    assert len(found) == 2
    assert all(p.name.startswith("me.") and p.name.endswith(".pt.trace.json" + ".gz" * zipped) for p in found)
    if not zipped:
        assert json.loads(found[0].read_text())["traceEvents"]
    file = tmp_path / "file"
    file.write_text("")
    with pytest.raises(RuntimeError, match="cannot make the folder"):
        tensorboard_trace_handler(str(file / "log"))(prof)


def test_what_can_be_looked_at() -> None:
    assert ProfilerActivity.CPU in supported_activities()
    assert (ProfilerActivity.CUDA in supported_activities()) == tt.cuda.is_available()
    assert not kineto_available()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert schedule(wait=0, warmup=1, active=1)(0) is WARMUP


def test_libraries_ask_whether_a_profile_is_running() -> None:
    assert tt.autograd._profiler_enabled() is False
    with tt.profiler.profile():
        assert tt.autograd._profiler_enabled() is True
    assert tt.autograd._profiler_enabled() is False
