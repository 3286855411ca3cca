"""Progress bars: on a terminal, in a notebook, as lines, not at all, where tqdm is missing, one inside of another."""

from __future__ import annotations

import io
import sys
import types
from typing import Any

import pytest

from tritensor.utils import progress
from tritensor.utils.progress import Bar, show_progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def on_screen(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """In the test itself: pytest puts its own stderr in place between a fixture and the test."""
    found = Terminal()
    monkeypatch.setattr(sys, "stderr", found)
    monkeypatch.delenv("TRITENSOR_PROGRESS", raising=False)
    return found


def work() -> None:
    with Bar("counting", "words", 3) as bar:
        bar.step()
        bar.step("half", by=2)
        bar.say("a line that stays")


def test_a_bar_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = on_screen(monkeypatch)
    work()
    said = screen.getvalue()
    assert "3/3" in said
    assert "half" in said
    assert "a line that stays\n" in said


def test_lines_where_there_is_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    work()
    assert capsys.readouterr().err == "counting: 1 of 3 words\ncounting: 3 of 3 words, half\na line that stays\n"


def test_the_environment_switches(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = on_screen(monkeypatch)
    monkeypatch.setenv("TRITENSOR_PROGRESS", "0")
    work()
    assert list(show_progress(range(3), "a", "b", delay=0.0)) == [0, 1, 2]
    assert screen.getvalue() == ""
    monkeypatch.setenv("TRITENSOR_PROGRESS", "lines")
    work()
    assert screen.getvalue().startswith("counting: 1 of 3 words\n")
    monkeypatch.setenv("TRITENSOR_PROGRESS", "never")
    with pytest.raises(ValueError, match="TRITENSOR_PROGRESS is 'never'; set it to 0"):
        work()


def test_without_tqdm_there_are_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = on_screen(monkeypatch)
    monkeypatch.setitem(sys.modules, "tqdm", None)
    work()
    assert screen.getvalue().splitlines() == ["counting: 1 of 3 words", "counting: 3 of 3 words, half", "a line that stays"]


def test_what_is_over_soon_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = on_screen(monkeypatch)
    assert list(show_progress(iter("abc"), "reading", "letters")) == ["a", "b", "c"]
    assert screen.getvalue() == ""


def test_one_inside_of_another_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = on_screen(monkeypatch)
    with Bar("outer", "steps", 2) as outer:
        for _ in range(2):
            for _ in show_progress(range(3), "inner", "batches", delay=0.0):
                pass
            outer.step()
    said = screen.getvalue()
    assert "inner" in said
    assert "2/2" in said.rstrip().rsplit("outer", 1)[1]


def test_delayed_lines_begin_late(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    for i in show_progress(range(10), "evaluating", "batches", delay=2.0):
        now[0] += 0.6 if i else 0.0
    assert capsys.readouterr().err.splitlines() == ["evaluating: 5 of 10 batches", "evaluating: 10 of 10 batches"]


def test_a_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    """A shell with a kernel gets the bar that tqdm has for it."""
    made: list[dict[str, Any]] = []

    class Drawn:
        def __init__(self, **given: Any) -> None:
            made.append(given)

        def set_postfix_str(self, *_: Any, **__: Any) -> None: ...
        def update(self, by: int) -> None: ...
        def write(self, line: str, file: Any) -> None: ...
        def close(self) -> None: ...

    shell = types.SimpleNamespace(config={"IPKernelApp": {}})
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda: shell))
    monkeypatch.setitem(sys.modules, "tqdm.auto", types.SimpleNamespace(tqdm=Drawn))
    work()
    assert [(m["desc"], m["total"]) for m in made] == [("counting", 3)]
    shell.config = {}
    work()
    assert len(made) == 1
