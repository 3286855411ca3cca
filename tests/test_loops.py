"""The loop in place of `parametrize`: every case is asked, every one that fails is told by name, and fixtures come beside the cases."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.loops import each

ASKED: list[tuple[int, str]] = []


@each(("n", "kind"), [(1, "a"), pytest.param(2, "b", id="second")])
def test_fixtures_come_beside_the_cases(n: int, kind: str, tmp_path: Path) -> None:
    assert tmp_path.is_dir()
    ASKED.append((n, kind))


def test_every_case_was_asked(tmp_path: Path) -> None:
    ASKED.clear()
    test_fixtures_come_beside_the_cases(tmp_path=tmp_path)  # type: ignore[call-arg]
    assert ASKED == [(1, "a"), (2, "b")]


def test_all_that_fail_are_told_by_name() -> None:
    @each("n", [0, 1, pytest.param(2, id="two"), 3], ids=lambda n: f"case{n}")
    def whole(n: int) -> None:
        if n == 1:
            raise ValueError("it is odd")
        if n == 2:
            with pytest.raises(KeyError):
                pass
        assert n != 3, "the last"

    with pytest.raises(pytest.fail.Exception, match="3 of 4 cases fail") as caught:
        whole()  # type: ignore[call-arg]
    lines = str(caught.value).splitlines()
    assert lines[1] == "case1: ValueError: it is odd"
    assert lines[2].startswith("two: Failed: ")
    assert "KeyError" in lines[2]
    assert lines[3].startswith("case3: AssertionError: the last")


def test_no_cases_are_a_mistake() -> None:
    with pytest.raises(AssertionError, match="nothing to ask"):
        each("n", [])
