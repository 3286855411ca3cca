"""Functions and transforms of audio, held to torchaudio's answers as they were recorded."""

from __future__ import annotations

import json
import warnings
from typing import Any

import pytest

import tritensor as tt
from tests.audio.cases import CASES, figures, given
from tests.audio.record import FILE
from tritensor.audio import functional, transforms

RECORDED: dict[str, Any] = json.loads(FILE.read_text())


@pytest.mark.parametrize("case", CASES)
def test_the_answer_is_torchaudios(case: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ours = figures(tt, eval(case, {"torch": tt, "T": transforms, "F": functional, **given(tt)}))
    theirs = RECORDED[case]
    if "value" in theirs:
        assert ours == theirs
        return
    assert (ours["shape"], ours["dtype"]) == (theirs["shape"], theirs["dtype"])
    near = 2e-5 if theirs["dtype"] in ("float32", "complex64") else 1e-9
    if theirs["dtype"] == "float64":
        near = 1e-7  # filters and windows are made in float32 by some
    assert ours["mean"] == pytest.approx(theirs["mean"], rel=near)
    assert ours["numbers"] == pytest.approx(theirs["numbers"], rel=0, abs=near * (theirs["largest"] + 1e-30))
