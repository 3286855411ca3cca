"""tt.debug.variants(): the slower variants that ran, counted, and as a table."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import tritensor as tt
from tritensor.ops.tuning import variants


@pytest.fixture(autouse=True)
def _alone() -> Iterator[None]:
    variants.forget()
    yield
    variants.forget()


def test_counts_by_op_variant_and_reason() -> None:
    for _ in range(3):
        variants.note("attention", "composed", "float64 has no flash kernel; cast to bfloat16")
    variants.note("matmul", "pointers", "the strides are odd")
    found = tt.debug.variants()
    assert [tuple(v) for v in found] == [
        ("attention", "composed", 3, "float64 has no flash kernel", "cast to bfloat16"),
        ("matmul", "pointers", 1, "the strides are odd", ""),
    ]
    assert found[0].times == 3


def test_prints_a_table_and_can_be_cleared() -> None:
    assert repr(tt.debug.variants()) == "no slower variant ran"
    variants.note("attention", "composed", "float64 has no flash kernel; cast to bfloat16")
    found = tt.debug.variants()
    assert str(found) == (
        "1 call took a slower variant\n     1 x  attention  composed  float64 has no flash kernel; to mend it: cast to bfloat16"
    )
    found.clear()
    assert len(tt.debug.variants()) == 0
    assert len(found) == 1, "a value that was given stays as it is"
