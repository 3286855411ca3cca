"""The whole promotion table against torch: two tensors with and without dimensions, and a Python number, in every combination."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
import torch

import tritensor as tt
from tritensor.ground import dtypes

pytestmark = pytest.mark.peer

NAMES = [
    "bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64", "complex64", "complex128",
]  # fmt: skip


@pytest.mark.parametrize("shapes", list(product([(2,), ()], repeat=2)))
def test_two_tensors(shapes: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    for a, b in product(NAMES, repeat=2):
        x, y = (torch.ones(s, dtype=getattr(torch, n)) for s, n in zip(shapes, (a, b), strict=True))
        p, q = (tt.ones(s, dtype=getattr(tt, n)) for s, n in zip(shapes, (a, b), strict=True))
        want = str(torch.result_type(x, y)).removeprefix("torch.").replace("complex32", "complex64")
        assert dtypes.of(dtypes.result_type((p._array, q._array))).name == want, (shapes, a, b)
        assert (p + q).dtype.name == want, (shapes, a, b)


@pytest.mark.parametrize("number", [True, 3, 2.5, 1j])
@pytest.mark.parametrize("shape", [(2,), ()])
def test_a_tensor_and_a_number(shape: tuple[int, ...], number: Any) -> None:
    for a in NAMES:
        want = (
            str(torch.result_type(torch.ones(shape, dtype=getattr(torch, a)), number))
            .removeprefix("torch.")
            .replace("complex32", "complex64")
        )
        p = tt.ones(shape, dtype=getattr(tt, a))
        assert dtypes.of(dtypes.result_type((p._array, number))).name == want, (shape, a, number)
        assert (p + number).dtype.name == (number + p).dtype.name == want, (shape, a, number)


def test_where_with_two_tensors_and_a_number() -> None:
    for a, b, shapes in product(NAMES[:10], NAMES[:10], product([(2,), ()], repeat=2)):
        x, y = (torch.ones(s, dtype=getattr(torch, n)) for s, n in zip(shapes, (a, b), strict=True))
        p, q = (tt.ones(s, dtype=getattr(tt, n)) for s, n in zip(shapes, (a, b), strict=True))
        assert tt.where(p == 1, p, q).dtype.name == str(torch.where(x == 1, x, y).dtype).removeprefix("torch."), (shapes, a, b)
    for a, number, shape in product(NAMES[:10], [True, 3, 2.5], [(2,), ()]):
        x, p = torch.ones(shape, dtype=getattr(torch, a)), tt.ones(shape, dtype=getattr(tt, a))
        assert tt.where(p == 1, p, number).dtype.name == str(torch.where(x == 1, x, number).dtype).removeprefix("torch."), (
            shape,
            a,
            number,
        )


FUNCTIONS = ["add", "mul", "div", "sub", "maximum", "minimum", "pow", "remainder", "fmod", "atan2", "eq", "lt", "logical_and", "hypot"]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_two(name: str) -> None:
    for a, b, shapes in product(NAMES[:10], NAMES[:10], product([(2,), ()], repeat=2)):
        x, y = (torch.ones(s, dtype=getattr(torch, n)) for s, n in zip(shapes, (a, b), strict=True))
        p, q = (tt.ones(s, dtype=getattr(tt, n)) for s, n in zip(shapes, (a, b), strict=True))
        try:
            want = str(getattr(torch, name)(x, y).dtype).removeprefix("torch.")
        except (RuntimeError, TypeError):  # torch refuses: what is answered here is wider
            continue
        assert getattr(tt, name)(p, q).dtype.name == want, (name, shapes, a, b)


@pytest.mark.parametrize("default", ["float16", "float64"])
def test_under_another_default_type(default: str) -> None:
    torch.set_default_dtype(getattr(torch, default))
    tt.set_default_dtype(getattr(tt, default))
    try:
        for a, number in product(NAMES, [3, 2.5, 1j]):
            want = (
                str(torch.result_type(torch.ones(2, dtype=getattr(torch, a)), number))
                .removeprefix("torch.")
                .replace("complex32", "complex64")
            )
            assert (tt.ones(2, dtype=getattr(tt, a)) + number).dtype.name == want, (a, number)
    finally:
        torch.set_default_dtype(torch.float32)
        tt.set_default_dtype(tt.float32)
