"""PyTorch's answer to each expression is answered here, on both devices; and every public function is in some expression."""

from __future__ import annotations

import pytest

import tritensor as tt
from tests.expressions.answers import answer, differs
from tests.expressions.listed import FAMILIES, MEANT, ON_CPU
from tests.expressions.record import ours, recorded
from tests.expressions.unasked import unasked

SHARE = 4  # of so many expressions one is asked on the emulated device by the quick suite, the others by the full one


def wrong(expressions: list[str], family: str, on: str) -> list[str]:
    answers = recorded(family)
    found = [(e, differs(answers[e], answer(tt, ours(e), on))) for e in expressions if e not in MEANT]
    return [f"{e}: {said}" for e, said in found if said]


@pytest.mark.quick
@pytest.mark.parametrize("family", FAMILIES)
def test_what_pytorch_answered(family: str) -> None:
    assert not wrong(FAMILIES[family], family, "cpu")


@pytest.mark.parametrize(("family", "rest"), [
    pytest.param(f, rest, marks=[pytest.mark.slow, pytest.mark.full] if rest else ()) for f in FAMILIES if f not in ON_CPU for rest in (False, True)
])  # fmt: skip
def test_what_pytorch_answered_on_the_emulated_device(family: str, rest: bool) -> None:
    assert not wrong([e for i, e in enumerate(FAMILIES[family]) if (i % SHARE != 0) == rest], family, "cuda")


@pytest.mark.parametrize("family", FAMILIES)
def test_every_expression_has_an_answer_and_what_is_meant_to_differ_does(family: str) -> None:
    answers = recorded(family)
    assert list(answers) == FAMILIES[family]
    for e in MEANT.keys() & answers:
        assert differs(answers[e], answer(tt, ours(e))), f"{e} is as PyTorch has it: it needs no reason"


def test_every_public_function_is_asked() -> None:
    assert not unasked()
