"""Tensors print byte for byte as PyTorch's were recorded to print, but for the library's name."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

import tritensor as tt
from tests.printing.listed import OPTIONS, cases, named_alike, printed
from tests.printing.record import FILE

RECORDED = json.loads(FILE.read_text())


@pytest.fixture(autouse=True)
def default_options() -> Iterator[None]:
    yield
    tt.set_printoptions(profile="default")


def test_all_that_is_listed_is_recorded() -> None:
    assert [(options, e) for options, e, _ in RECORDED] == cases()


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_prints_as_pytorch_did(options: dict[str, object]) -> None:
    for given, e, text in RECORDED:
        if given == options:
            assert named_alike(printed(tt, options, e)) == named_alike(text), e


def test_a_notebook_shows_the_same_text() -> None:
    x = tt.ones(2)
    assert not hasattr(x, "_repr_html_")
    assert not hasattr(x, "_repr_mimebundle_")
