"""PyTorch's signatures are what tests/signatures/torch_signatures.json says, of every function that both libraries have."""

from __future__ import annotations

import json

import pytest

from tests.signatures.recorded import FILE

pytestmark = pytest.mark.peer


def test_the_recorded_signatures_are_pytorchs() -> None:
    from tests.signatures.record import lines

    assert json.loads(json.dumps(lines())) == json.loads(FILE.read_text()), "write them anew: python -m tests.signatures.record"
