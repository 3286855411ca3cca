"""The floor plans in CONTRIBUTING.md and README.md are current, and a caption that is no sentence is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pages import floor_plan
from tests.source_facts import PACKAGE


@pytest.mark.parametrize("page", floor_plan.PAGES, ids=lambda p: p.name)
def test_the_plan_is_fresh(page: Path) -> None:
    text = page.read_text()
    assert text.count(floor_plan.BEGIN) == text.count(floor_plan.END) == 1
    assert floor_plan.written(text, floor_plan.PAGES[page]()) == text, "write it anew: python -m tests.pages.floor_plan"


def test_every_room_of_the_package_is_on_it() -> None:
    told = floor_plan.full()
    lost = [p.name for p in floor_plan.rooms(PACKAGE) if f"`{p.name}/`" not in told]
    assert not lost


def test_a_caption_that_is_no_sentence_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(floor_plan, "ROOT", tmp_path)
    (tmp_path / "__init__.py").write_text('"""Rooms: this one\nand that."""\n')
    with pytest.raises(ValueError, match=r"the caption 'Rooms: this one' is no whole sentence"):
        floor_plan.caption(tmp_path)
