"""In-place writes between an expression and its backward: each that PyTorch takes (recorded_writes/) is taken here and leaves the gradients as they are."""

from __future__ import annotations

import warnings

import pytest

import tritensor as tt
from tests.autograd.written import RIGHT, WRONG, Call, Write, outcome
from tests.expressions.listed import FAMILIES, MEANT, ON_CPU
from tests.expressions.record import ours
from tests.expressions.writable import call_of, recorded, writes_in

# Expressions on which PyTorch's answer is not ours: why.
LEFT = {
    "m @ b": "PyTorch folds the batch into one matrix, which is a copy (docs/differences.md)",
    "F.batch_norm(e.reshape(0, 3), None, None, v, v, True)": "of no samples PyTorch keeps nothing",
    **dict.fromkeys(("v.unfold(0, 2, 1)", "x.unfold(1, 2, 1)"), "windows that overlap are not written here"),
}
SHARE = 16  # of so many expressions one is asked on the emulated device by the quick suite, the others by the full one


def _together(call: Call, leaves: tuple[int, ...], given: list[Write]) -> list[str]:
    """What goes wrong where all of the writes are made, those that the graph records first; which of them it was, where something does."""
    given = sorted(given, key=lambda w: w.what != "output")
    wrong = []
    if outcome(call, leaves, given) != RIGHT:
        wrong += [f"{w.what} {w.place}: {found}" for w in given if (found := outcome(call, leaves, [w])) != RIGHT] or ["all together"]
    if outcome(call, leaves, given, order=2) == WRONG:
        wrong.append("wrong derivatives of the gradients")
    return wrong


def refused(expressions: list[str], family: str, on: str) -> list[str]:
    answers, wrong = recorded(family), []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for e in expressions:
            for leaves, answer in {} if e in MEANT or e in LEFT or e not in answers else answers[e].items():
                found = _together(call_of(tt, ours(e), on), tuple(map(int, leaves.split())), writes_in(answer))
                wrong += [f"{e}, grad of {leaves}: {said}" for said in found]
    return wrong


@pytest.mark.parametrize("family", FAMILIES)
def test_what_pytorch_lets_be_written(family: str) -> None:
    assert not refused(FAMILIES[family], family, "cpu")


def test_what_is_left_out_is_refused() -> None:
    for e, why in LEFT.items():
        family = next(f for f in FAMILIES if e in FAMILIES[f])
        answers = recorded(family)[e]
        wrong = [w for leaves, a in answers.items() for w in _together(call_of(tt, e), tuple(map(int, leaves.split())), writes_in(a))]
        assert wrong, f"{e} may be written as in PyTorch: it needs no reason ({why})"


@pytest.mark.parametrize(("family", "rest"), [
    pytest.param(f, rest, marks=[pytest.mark.slow, pytest.mark.full] if rest else ()) for f in FAMILIES if f not in ON_CPU for rest in (False, True)
])  # fmt: skip
def test_what_pytorch_lets_be_written_on_the_emulated_device(family: str, rest: bool) -> None:
    assert not refused([e for i, e in enumerate(FAMILIES[family]) if (i % SHARE != 0) == rest], family, "cuda")
