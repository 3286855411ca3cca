"""One step: what kills it costs an item, its time is its own, and what it leaves is kept whole and small."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from tests.gpu.lease import perform as performing
from tests.gpu.lease.ledger import Entry, read
from tests.gpu.lease.perform import Step, Told, Work, perform
from tests.lease.fake_steps import NoGuard, step, work_in

pytestmark = pytest.mark.standard  # they wait for seconds that no processor is asked for


def outcome(work: Work, made: Step, seconds: float = 20.0, limited: bool = False) -> Entry:
    perform(made, seconds, limited, work, NoGuard())
    return work.ledger.entry(made.name)


def test_items_are_in_the_ledger(tmp_path: Path) -> None:
    work = work_in(tmp_path)
    entry = outcome(work, step("s", "--items", 3, "--fail-at", 1, "--code", 1))
    assert entry.outcome == "failed"
    assert entry.errors == ["s 1: s 1 is wrong"]
    assert [o for o, *_ in entry.items.values()] == ["passed", "failed", "passed"]
    assert read(work.out / "ledger.json")["steps"]["s"]["items"].keys() == entry.items.keys()


def test_an_item_that_kills_its_process_costs_itself(tmp_path: Path) -> None:
    entry = outcome(work_in(tmp_path), step("s", "--items", 6, "--kill-at", 2))
    assert entry.outcome == "failed"
    assert [o for o, *_ in entry.items.values()] == ["passed", "passed", "died", "passed", "passed", "passed"]
    assert entry.errors == ["s 2: the process died with -11:"]


def test_an_item_that_hangs_costs_itself(tmp_path: Path) -> None:
    entry = outcome(work_in(tmp_path), step("s", "--items", 4, "--hang-at", 1, patience=0.5))
    assert [o for o, *_ in entry.items.values()] == ["passed", "hung", "passed", "passed"]
    assert entry.errors == ["s 1: no word in 0 s"]


@pytest.mark.parametrize("kind", ["proof", "figures"])
def test_one_that_cannot_start_is_not_started_again_and_again(kind: str, tmp_path: Path) -> None:
    starts: list[float] = []

    def command(work: Work, seconds: float) -> list[str]:
        starts.append(seconds)
        return ["/bin/sh", "-c", "echo cannot import; exit 7"]

    entry = outcome(work_in(tmp_path), Step("s", kind, 0, 60, command))
    assert (entry.outcome, entry.errors) == ("died", ["the process ended with 7: cannot import"])
    assert len(starts) == 1


def test_figures_go_on_behind_what_killed_them_as_their_own_account_says(tmp_path: Path) -> None:
    starts: list[float] = []

    def command(work: Work, seconds: float) -> list[str]:
        starts.append(seconds)
        return ["/bin/sh", "-c", f"echo {len(starts)} >> {tmp_path}/scratch/report.json; exit {0 if len(starts) == 3 else 3}"]

    assert outcome(work_in(tmp_path), Step("s", "figures", 0, 60, command)).outcome == "passed"
    assert len(starts) == 3


def test_its_time_is_its_own(tmp_path: Path) -> None:
    work = work_in(tmp_path)
    start = time.monotonic()
    entry = outcome(work, step("s", "--hang", "--deaf"), seconds=0.5)
    assert time.monotonic() - start < 6
    assert entry.outcome == "hung"
    assert entry.errors[0].startswith("no end in ")


@pytest.mark.parametrize(
    ("flags", "limited"), [(("--hang",), True), (("--items", 2, "--hang"), False), (("--items", 1, "--hang-at", 0), False)]
)
def test_what_its_time_cut_short_is_unfinished(flags: tuple[object, ...], limited: bool, tmp_path: Path) -> None:
    entry = outcome(work_in(tmp_path), step("s", *flags), seconds=1.0, limited=limited)
    assert (entry.outcome, entry.why) == ("unfinished", "its time was up")


def test_items_that_are_left_are_asked_the_next_time(tmp_path: Path) -> None:
    work = work_in(tmp_path)
    executed = tmp_path / "executed"
    made = step("s", "--items", 30, "--delay", 0.05, "--executed", executed)
    assert outcome(work, made, seconds=0.7).outcome == "unfinished"
    known = set(work.ledger.entry("s").items)
    assert 0 < len(known) < 30
    before = executed.read_text().splitlines()
    assert outcome(work, made).outcome == "passed"
    again = executed.read_text().splitlines()[len(before) :]
    assert not known & set(again)
    assert len(work.ledger.entry("s").items) == 30


def test_a_step_with_nothing_to_do_says_why(tmp_path: Path) -> None:
    entry = outcome(work_in(tmp_path), Step("s", "figures", 0, 60, lambda work, seconds: "nothing is slower"))
    assert (entry.outcome, entry.why) == ("left", "nothing is slower")


def test_a_report_torn_by_a_kill_loses_one_line(tmp_path: Path) -> None:
    rows = performing._Rows(tmp_path / "r.jsonl")
    (tmp_path / "r.jsonl").write_text('{"item": "a", "outcome": "passed"}\n{"item": "b", "outc')
    assert [r["item"] for r in rows.new()] == ["a"]
    with (tmp_path / "r.jsonl").open("a") as file:
        file.write('\n{"item": "c", "outcome": "passed"}\n')
    assert [r["item"] for r in rows.new()] == ["c"]


def test_what_is_kept_is_whole_and_not_too_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(performing, "MOST_BYTES", 1000)
    work = work_in(tmp_path)
    work.kept = {
        "report.json": "gpu.json",
        "never.json": "never-out.json",
        "large.json": "large-out.json",
        "tuned.journal": "tuned.journal",
    }
    (work.scratch / "report.json").write_text('{"rows": {}}')
    (work.scratch / "large.json").write_text("x" * 1001)
    (work.scratch / "tuned.journal").write_text("one\ntw")
    work.log["s"] = "x" * 5000 + "\nthe end"
    work.keep()
    work.write_log()
    assert sorted(p.name for p in work.out.iterdir()) == ["gpu.json", "log.txt", "tuned.journal"]
    assert (work.out / "tuned.journal").read_text() == "one\n"
    assert json.loads((work.out / "gpu.json").read_text()) == {"rows": {}}
    assert (work.out / "log.txt").stat().st_size == 1000
    assert (work.out / "log.txt").read_text().endswith("the end\n")


def test_many_words_are_a_log_of_some_kilobytes(tmp_path: Path) -> None:
    work = work_in(tmp_path)
    assert outcome(work, step("s", "--print", 10)).outcome == "passed"
    assert (work.out / "log.txt").stat().st_size < 1 << 18


def test_what_failed_in_a_run_of_figures_is_told(tmp_path: Path) -> None:
    def told(work: Work, words: str, rows: list[dict[str, Any]]) -> Told:
        return Told("3 rows", ("softmax/forward: out of memory",), 0)

    entry = outcome(work_in(tmp_path), step("s", "--code", 1, kind="figures")._replace(told=told))
    assert (entry.outcome, entry.figures, entry.errors) == ("failed", "3 rows", ["softmax/forward: out of memory"])
