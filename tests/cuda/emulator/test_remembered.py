"""Types and shapes that the emulated device remembers are those that Triton makes, for every pair of element types and kinds of shape."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
import triton.language as tl
from triton.runtime import interpreter as upstream

from tritensor.cuda.emulator import type_cache
from tritensor.cuda.emulator.interpreter import install, numpy_type

KINDS = [
    tl.int1, tl.int8, tl.int16, tl.int32, tl.int64, tl.uint8, tl.uint16, tl.uint32, tl.uint64, tl.float16, tl.bfloat16, tl.float32,
    tl.float64, tl.float8e5, tl.pointer_type(tl.float32), tl.pointer_type(tl.int64),
]  # fmt: skip
SHAPES = [(), (4,), (1, 4), (2, 1), (2, 4)]


def block(kind: Any, shape: tuple[int, ...]) -> tl.tensor:
    return tl.tensor(
        upstream.TensorHandle(np.ones(shape or (1,), numpy_type(kind)), kind),
        tl.block_type(kind, [*map(tl.constexpr, shape)]) if shape else kind,
    )


def said(semantic: Any, method: str, *given: Any) -> Any:
    """The types and shapes that come out, or the error."""
    try:
        found = getattr(semantic, method)(*given)
    except Exception as error:
        return type(error), str(error)
    return [
        (str(t.type), t.type, t.shape, t.numel, t.dtype, np.shape(t.handle.data)) for t in (found if isinstance(found, tuple) else (found,))
    ]


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_operands_come_out_as_tritons_rules_say(kind: Any) -> None:
    own, theirs = type_cache.Semantic(install()), upstream.TritonSemantic(install())
    for other, (a, b), division in product(KINDS, product(SHAPES, SHAPES), (False, True)):
        given = block(kind, a), block(other, b)
        for method, more in (
            ("binary_op_type_checking_impl", (division, division, True, division)),
            ("binary_op_type_checking_impl", ()),
            ("broadcast_impl_value", ()),
        ):
            assert said(own, method, *given, *more) == said(theirs, method, *given, *more), (method, other, a, b)
    for other in KINDS:
        assert said(own, "cast", block(kind, (2, 4)), other) == said(theirs, "cast", block(kind, (2, 4)), other)


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_numbers_come_out_as_tritons_rules_say(kind: Any) -> None:
    """Twice each: the second time they are remembered."""
    own, theirs = type_cache.Semantic(install()), upstream.TritonSemantic(install())
    numbers = (0, 1, -1, 200, 1 << 20, 1 << 40, 1 << 80, True, 0.5, -0.0)
    for number, shape, division, _ in product(numbers, SHAPES, (False, True), range(2)):
        given, more = block(kind, shape), (division, division, True, division)
        for pair in ((given, number), (number, given)):
            found = [said(rules, "binary_op_type_checking_impl", *pair, *more) for rules in (own, theirs)]
            assert found[0] == found[1], (number, shape)
        if isinstance(found[0], list):
            left, right = (rules.binary_op_type_checking_impl(given, number, *more)[1].handle.data for rules in (own, theirs))
            np.testing.assert_array_equal(left, right)
            assert left.dtype == right.dtype


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_a_remembered_type_is_as_a_made_one(kind: Any) -> None:
    for shape in SHAPES[1:]:
        made, first, second = (object.__new__(tl.block_type) for _ in range(3))
        type_cache._block_init(made, kind, list(shape))
        type_cache._block(first, kind, shape)
        type_cache._block(second, kind, [tl.constexpr(n) for n in shape])
        for found in (first, second):
            assert found == made
            assert {k: v for k, v in vars(found).items() if k not in ("of_tensors", "stretched")} == vars(made)
            handle = object()
            whole, kept = object.__new__(tl.tensor), tl.tensor(handle, found)
            type_cache._tensor_init(whole, handle, made)
            assert vars(whole) == vars(kept)


def test_wrong_shapes_are_refused_each_time() -> None:
    install()
    for _ in range(2):
        with pytest.raises(TypeError, match="0d block_type"):
            tl.block_type(tl.float32, [])
        with pytest.raises(ValueError, match="power of 2"):
            tl.block_type(tl.float32, [3])
