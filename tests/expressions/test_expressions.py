"""What PyTorch answered to each expression is answered here, on both devices; and every public function is in some expression."""

from __future__ import annotations

import re

import pytest

import tritensor as tt
from tests.expressions.answers import answer, differs
from tests.expressions.record import ours, recorded
from tests.expressions.table import EXPRESSIONS, FAMILIES, MEANT
from tritensor.tensor.publishing.publish import public

ANSWERS = recorded()


def wrong(expressions: list[str], on: str) -> list[str]:
    found = [(e, differs(ANSWERS[e], answer(tt, ours(e), on))) for e in expressions if e not in MEANT]
    return [f"{e}: {said}" for e, said in found if said]


@pytest.mark.parametrize("on", ["cpu", "cuda"])
@pytest.mark.parametrize("family", FAMILIES)
def test_what_pytorch_answered(family: str, on: str) -> None:
    assert not wrong(FAMILIES[family], on)


def test_every_expression_has_an_answer_and_what_is_meant_to_differ_does() -> None:
    assert list(ANSWERS) == EXPRESSIONS
    for e in MEANT:
        assert differs(ANSWERS[e], answer(tt, ours(e))), f"{e} is as PyTorch has it: it needs no reason"


def test_every_public_function_is_asked() -> None:
    asked = {name for e in EXPRESSIONS for name in re.findall(r"[.\s(]([a-z_0-9]+)\(", ours(e))}
    without = {"from_dlpack", "get_rng_state", "set_rng_state", "seed"}  # what they give is no number to compare
    aliases = {id(f): name for name, f in public.items() if name in asked}  # of one function under two names one is enough
    assert not [name for name, f in public.items() if name not in asked | without and id(f) not in aliases]
