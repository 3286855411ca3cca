"""Record tests/familiar/printed.json: it is what the scripts print under the installed PyTorch."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.familiar.record import FILE, SCRIPTS, printed
from tests.familiar.test_scripts import unlike
from tests.programs import record as programs

pytestmark = pytest.mark.peer


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda s: s.stem)
def test_the_recorded_output_is_pytorchs(script: Path) -> None:
    assert printed(script).splitlines() == json.loads(FILE.read_text())[script.stem]


@pytest.mark.parametrize("program", programs.PROGRAMS, ids=programs.name)
def test_the_recorded_output_of_a_program_is_pytorchs(program: Path) -> None:
    recorded = json.loads(programs.FILE.read_text())[programs.name(program)]
    assert not [(a, b) for a, b in zip(recorded, printed(program).splitlines(), strict=True) if unlike(a, b)]
