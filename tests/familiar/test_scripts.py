"""Whole scripts as people publish them, `import torch` and all, print here what they print under PyTorch."""

from __future__ import annotations

import json
import re
import runpy
from pathlib import Path

import pytest

import tritensor as tt
from tests.familiar.record import FILE, SCRIPTS
from tests.familiar.settings import settings_put_back
from tritensor.tools.missing_names import find_in_source
from tritensor.tools.run_script import opened

NUMBER = re.compile(r"-?\d+\.\d+(?:e[+-]?\d+)?|-?\d+")
PRINTED = json.loads(FILE.read_text())


def unlike(theirs: str, ours: str) -> bool:
    """Whether two lines differ by more than the rounding of float32 that some dozen training steps gather: 2 in 1000."""
    if NUMBER.sub("#", theirs) != NUMBER.sub("#", ours.replace("tritensor", "torch")):
        return True
    pairs = zip(NUMBER.findall(theirs), NUMBER.findall(ours), strict=True)
    return any(abs(float(a) - float(b)) > 2e-3 * max(abs(float(a)), 0.5) for a, b in pairs)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda s: s.stem)
def test_a_script_prints_what_it_prints_under_pytorch(script: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tt.manual_seed(0)
    with settings_put_back(), opened() as missing:
        runpy.run_path(str(script), run_name="__main__")
    ours, theirs = capsys.readouterr().out.splitlines(), PRINTED[script.stem]
    assert len(ours) == len(theirs), ours
    assert not [(a, b) for a, b in zip(theirs, ours, strict=True) if unlike(a, b)]
    assert not missing
    assert find_in_source(str(script)) == []


def test_a_difference_is_seen() -> None:
    assert not unlike("loss 1.0000 torch.Size([2])", "loss 1.0010 tritensor.Size([2])")
    assert unlike("loss 1.0000", "loss 1.0100")
    assert unlike("loss 1.0000", "Loss 1.0000")
    assert unlike("[1, 2]", "[1, 2, 3]")
