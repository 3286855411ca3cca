"""The exports of nn, nn.functional and optim are those that tools/exports.py writes, and what it takes for public is."""

from __future__ import annotations

from pathlib import Path

import pytest

from tritensor.tools import exports


@pytest.mark.parametrize("room", sorted(exports.ROOMS))
def test_the_exports_are_fresh(room: str) -> None:
    written = (exports.PACKAGE / room / "__init__.py").read_text()
    assert written == exports.text_of(room), "run python tritensor/tools/exports.py, or make pages"


def test_what_is_public(tmp_path: Path) -> None:
    file = tmp_path / "made.py"
    file.write_text(
        "@checked\ndef f(): ...\n@exported\ndef g(): ...\n@checked(name='h')\ndef h(): ...\ndef helper(): ...\n@checked\nclass A: ...\nclass _B: ...\nclass LazyMixin: ...\n"
    )
    assert exports.public_names(file, functions=True) == ["f", "g", "h"]
    assert exports.public_names(file, functions=False) == ["A"]
