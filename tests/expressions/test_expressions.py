"""What PyTorch answered to each expression is answered here, on both devices; and every public function is in some expression."""

from __future__ import annotations

import re

import pytest

import tritensor as tt
from tests.expressions.answers import answer, differs
from tests.expressions.listed import FAMILIES, MEANT, ON_CPU
from tests.expressions.record import ours, recorded
from tritensor.tensor.public_api.publish import public
from tritensor.torch_compat import recorded_names

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


def unasked() -> list[str]:
    """Public functions of PyTorch's names that are in no expression; what PyTorch has not, it cannot be asked."""
    asked = {name for family in FAMILIES.values() for e in family for name in re.findall(r"[.\s(]([A-Za-z_0-9]+)\(", ours(e))}
    without = {"from_dlpack", "get_rng_state", "set_rng_state", "seed"}  # what they give is no number to compare
    aliases = {id(f): name for name, f in public.items() if name in asked}  # of one function under two names one is enough
    theirs = set(recorded_names.names_of(""))
    return [name for name, f in public.items() if name in theirs and name not in asked | without and id(f) not in aliases]


def test_every_public_function_is_asked() -> None:
    assert not unasked()
