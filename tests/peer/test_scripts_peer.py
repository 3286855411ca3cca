"""What tests/familiar/printed.json says is what the scripts print under the installed PyTorch."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.familiar.record import FILE, SCRIPTS, printed

pytestmark = pytest.mark.peer


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda s: s.stem)
def test_the_recorded_output_is_pytorchs(script: Path) -> None:
    assert printed(script).splitlines() == json.loads(FILE.read_text())[script.stem]
