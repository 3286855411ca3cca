"""Functionals of transforms.v2 give what torchvision's were recorded to give, of every kind of input."""

from __future__ import annotations

import itertools
import json
from typing import Any

import numpy as np
import PIL.Image
import pytest

import tritensor as tt
from tests.vision.second_version.listed import cases, make_inputs, run
from tests.vision.second_version.record import FILE
from tritensor.vision import tv_tensors as tv
from tritensor.vision.transforms.v2 import functional as F

RECORDED = json.loads(FILE.read_text())
CALLS = {call: list(rows) for call, rows in itertools.groupby(RECORDED, lambda row: row[0])}


@pytest.fixture(scope="module")
def inputs() -> dict[str, Any]:
    return make_inputs(tt.from_numpy, tv, F, PIL.Image.fromarray)


def test_all_that_is_listed_is_recorded(inputs: dict[str, Any]) -> None:
    assert [(call, name) for call, name, _ in RECORDED] == cases(list(inputs))


def near(found: Any, want: Any) -> bool:
    """Equal but for roundings: of sums over bytes some pixels a level off, of floats the last places."""
    if isinstance(want, list):
        return isinstance(found, list) and len(found) == len(want) and all(itertools.starmap(near, zip(found, want, strict=True)))
    if isinstance(want, float):
        return bool(np.isclose(found, want, rtol=2e-4, atol=2e-3, equal_nan=True))
    return bool(found == want)


@pytest.mark.parametrize("call", CALLS)
def test_functionals_give_what_torchvisions_do(inputs: dict[str, Any], call: str) -> None:
    wrong = []
    for _, name, want in CALLS[call]:
        found = run(call, inputs[name], F, tt)
        raises = isinstance(want, list) and want[:1] == ["raises"]
        if not (found[:1] == ["raises"] and want[1] in found if raises else near(found, want)):
            wrong.append(f"{name}: {found}, torchvision {want}")
    assert not wrong, "\n".join(wrong)
