"""PyTorch's sample database under vmap, of every thirtieth entry, or slowly of all."""

from __future__ import annotations

import pytest

from tests.peer.func.samples import entries, findings
from tests.peer.opinfo.resolve import key

pytestmark = [pytest.mark.peer, pytest.mark.filterwarnings("ignore")]
ENTRIES = entries()


@pytest.mark.parametrize("op", [pytest.param(op, id=key(op)) for op in ENTRIES[::30]])
def test_samples(op: object) -> None:
    assert not (found := list(findings(op, 4))), "\n".join(found)


@pytest.mark.slow
@pytest.mark.parametrize("op", [pytest.param(op, id=key(op)) for op in ENTRIES])
def test_all_samples(op: object) -> None:
    assert not (found := list(findings(op, 12))), "\n".join(found)
