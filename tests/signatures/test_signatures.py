"""Every function that exists in both libraries takes the same arguments: names, order, defaults, what is given by keyword alone.

DIFFERENCES lists what is otherwise on purpose; an entry that is not true fails as well.
"""

from __future__ import annotations

import pytest

from tests.signatures.compare import differences
from tests.signatures.differences import DIFFERENCES
from tests.signatures.recorded import ours, recorded


def listed() -> dict[str, set[str]]:
    """The table by name."""
    found: dict[str, set[str]] = {}
    for names, what, _ in DIFFERENCES:
        for name in names.split():
            assert what not in found.setdefault(name, set()), f"{name}: {what} is listed twice"
            found[name].add(what)
    return found


LISTED, RECORDED = listed(), recorded()
FAMILIES = sorted({name.rpartition(".")[0] if name[0].isupper() or name.startswith("torch.") else name.split(".")[0] for name in RECORDED})


@pytest.mark.parametrize("family", FAMILIES)
def test_signatures_are_pytorchs_but_for_the_listed_differences(family: str) -> None:
    wrong = []
    for name, (method, theirs) in RECORDED.items():
        if name.startswith(f"{family}."):
            found = set().union(*(differences(ours(name), signature, method) for signature in theirs))
            expected = LISTED.get(name, set())
            wrong += [f"{name}: {what} is not as in PyTorch" for what in sorted(found - expected)]
            wrong += [f"{name}: {what} is listed as different and is not" for what in sorted(expected - found)]
    assert not wrong, "\n" + "\n".join(wrong)


def test_every_listed_name_is_compared() -> None:
    assert set(LISTED) <= set(RECORDED)
    assert len(RECORDED) > 800
