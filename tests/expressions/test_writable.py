"""What PyTorch lets a user write between a call and its backward may be written here, with the same gradients as without the write."""

from __future__ import annotations

import warnings

import pytest

import tritensor as tt
from tests.autograd.written import RIGHT, WRONG, Call, Write, outcome
from tests.expressions.listed import FAMILIES, MEANT, ON_CPU
from tests.expressions.record import ours
from tests.expressions.writable import call_of, recorded, writes_in

SHARE = 8  # of so many expressions one is asked on the emulated device by the quick suite, the others by the slow one


def _together(call: Call, leaves: tuple[int, ...], given: list[Write]) -> list[str]:
    """What goes wrong where all of the writes are made; which of them it was, where something does."""
    recorded_ones = [w for w in given if w.what == "output"]
    wrong = []
    for part in (recorded_ones, [w for w in given if w.what != "output"]):
        if part and outcome(call, leaves, part) != RIGHT:
            wrong += [f"{w.what} {w.place}: {found}" for w in part if (found := outcome(call, leaves, [w])) != RIGHT] or ["all together"]
        if part and outcome(call, leaves, part, order=2) == WRONG:
            wrong.append(f"{part}: wrong derivatives of the gradients")
    return wrong


def refused(expressions: list[str], family: str, on: str) -> list[str]:
    answers, wrong = recorded(family), []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for e in expressions:
            for leaves, answer in {} if e in MEANT or e not in answers else answers[e].items():
                found = _together(call_of(tt, ours(e), on), tuple(map(int, leaves.split())), writes_in(answer))
                wrong += [f"{e}, grad of {leaves}: {said}" for said in found]
    return wrong


@pytest.mark.parametrize("family", FAMILIES)
def test_what_pytorch_lets_be_written(family: str) -> None:
    assert not refused(FAMILIES[family], family, "cpu")


@pytest.mark.parametrize(("family", "rest"), [
    pytest.param(f, rest, marks=pytest.mark.slow if rest else ()) for f in FAMILIES if f not in ON_CPU for rest in (False, True)
])  # fmt: skip
def test_what_pytorch_lets_be_written_on_the_emulated_device(family: str, rest: bool) -> None:
    assert not refused([e for i, e in enumerate(FAMILIES[family]) if (i % SHARE != 0) == rest], family, "cuda")
