"""Every program prints under `python -m tritensor.run` what it prints under PyTorch."""

from __future__ import annotations

import json
import random
import runpy
from pathlib import Path

import pytest

import tritensor as tt
from tests.familiar.settings import settings_put_back
from tests.familiar.test_scripts import unlike
from tests.programs.record import FILE, PROGRAMS, name
from tritensor.tools.missing_names import find_in_source
from tritensor.tools.run_script import opened

PRINTED = json.loads(FILE.read_text())


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("program", PROGRAMS, ids=name)
def test_a_program_prints_what_it_prints_under_pytorch(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tt.manual_seed(0)
    random.seed(0)
    with settings_put_back(), opened() as missing:
        runpy.run_path(str(program), run_name="__main__")
    ours, theirs = capsys.readouterr().out.splitlines(), PRINTED[name(program)]
    assert not [(a, b) for a, b in zip(theirs, ours, strict=False) if unlike(a, b)]
    assert len(ours) == len(theirs), ours
    assert not missing
    assert find_in_source(str(program)) == []


def test_there_are_as_many_as_are_recorded() -> None:
    assert sorted(PRINTED) == [name(p) for p in PROGRAMS]
    assert len(PROGRAMS) >= 40
