"""The recorded answers are what the installed PyTorch gives."""

from __future__ import annotations

import pytest
import torch

from tests.expressions.answers import answer, differs
from tests.expressions.record import recorded, theirs
from tests.expressions.table import EXPRESSIONS

pytestmark = pytest.mark.peer


def test_the_recorded_answers_are_pytorchs() -> None:
    answers = recorded()
    found = [(e, differs(answers[e], answer(torch, theirs(e)))) for e in EXPRESSIONS]
    assert not [(e, said) for e, said in found if said]
