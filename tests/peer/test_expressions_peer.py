"""The recorded answers are what the installed PyTorch gives."""

from __future__ import annotations

import pytest
import torch

from tests.expressions.answers import answer, differs
from tests.expressions.listed import FAMILIES
from tests.expressions.record import recorded, theirs

pytestmark = pytest.mark.peer


@pytest.mark.parametrize("family", FAMILIES)
def test_the_recorded_answers_are_pytorchs(family: str) -> None:
    answers = recorded(family)
    found = [(e, differs(answers[e], answer(torch, theirs(e)))) for e in FAMILIES[family]]
    assert not [(e, said) for e, said in found if said]
