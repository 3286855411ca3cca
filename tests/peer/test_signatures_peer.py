"""PyTorch's signatures are what tests/signatures/torch_signatures.json says, of every function that both libraries have."""

from __future__ import annotations

import json

import pytest

from tests.signatures.recorded import FILE

# a name of torch.distributed warns whoever looks at it
pytestmark = [pytest.mark.peer, pytest.mark.filterwarnings("ignore:`torch.distributed.reduce_op` is deprecated:FutureWarning")]


def test_the_recorded_signatures_are_pytorchs() -> None:
    from tests.signatures.record import lines

    assert json.loads(json.dumps(lines())) == json.loads(FILE.read_text()), "write them anew: python -m tests.signatures.record"
