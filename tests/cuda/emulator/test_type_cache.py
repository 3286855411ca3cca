"""Operations that the emulated device asks for again give what they give in full, for every pair of element types and kinds of shape."""

from __future__ import annotations

import operator
from collections.abc import Callable
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


BINARY: list[Callable[..., Any]] = [
    operator.add, operator.mul, operator.truediv, operator.floordiv, operator.mod, operator.lt, operator.and_, operator.lshift,
    lambda x, y: tl.maximum(x, y), lambda x, y: tl.where(x < y, x, y), lambda x, y: tl.where(x > 0, 1, y),
]  # fmt: skip
UNARY: list[Callable[..., Any]] = [
    operator.neg, operator.invert, lambda x: tl.exp(x), lambda x: x[None, :], lambda x: x[:, None], lambda x: tl.trans(x), lambda x: x + x,
    lambda x: tl.reshape(x, (2, 2)), lambda x: tl.broadcast_to(x, (2, 4)), lambda x: tl.zeros_like(x), lambda x: tl.fma(x, 2.0, x), lambda x: tl.split(x),
    *[lambda x, kind=kind: x.to(kind) for kind in KINDS], lambda x: x.to(tl.int32, bitcast=True),
]  # fmt: skip


def block(kind: Any, shape: tuple[int, ...], value: int = 1) -> tl.tensor:
    return tl.tensor(
        upstream.TensorHandle(np.full(shape or (1,), value).astype(numpy_type(kind)), kind),
        tl.block_type(kind, [*map(tl.constexpr, shape)]) if shape else kind,
    )


def said(operation: Callable[..., Any], *given: Any) -> Any:
    """The types and values that come out, or the error."""
    try:
        with np.errstate(all="ignore"):
            found = operation(*given)
    except Exception as error:
        return type(error), str(error)
    return [
        (t.type, t.shape, t.numel, t.dtype, h.dtype, h.data.dtype, h.data.shape, h.data.tobytes(), h.attr.get("bound"))
        for t in (found if isinstance(found, tuple) else (found,))
        for h in (t.handle,)
    ]


def forget() -> None:
    for known in type_cache._known.values():
        known.clear()


def the_second_is_as_the_first(operation: Callable[..., Any], others: tuple[Any, ...], given: tuple[Any, ...]) -> None:
    """`others` are of the types of `given`, and come before them."""
    forget()
    said(operation, *others)
    again = said(operation, *given)
    forget()
    assert again == said(operation, *given)


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_two_operands(kind: Any) -> None:
    install()
    for operation, other, (a, b) in product(BINARY, KINDS, [((), (4,)), ((4,), (4,)), ((1, 4), (2, 1)), ((2, 4), ())]):
        the_second_is_as_the_first(operation, (block(kind, a), block(other, b)), (block(kind, a, 2), block(other, b, 3)))


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_an_operand_and_a_number(kind: Any) -> None:
    install()
    for operation, number, shape in product(BINARY, (0, 1, -1, 200, 1 << 20, 1 << 40, 1 << 80, True, 0.5), SHAPES):
        one, two = block(kind, shape), block(kind, shape, 3)
        the_second_is_as_the_first(operation, (one, number), (two, number))
        the_second_is_as_the_first(operation, (number, one), (number, two))
        the_second_is_as_the_first(operation, (one, number), (two, tl.constexpr(number)))


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_one_operand(kind: Any) -> None:
    install()
    for operation, shape in product(UNARY, SHAPES):
        the_second_is_as_the_first(operation, (block(kind, shape),), (block(kind, shape, 3),))


def test_numbers_that_are_equal_are_not_taken_for_each_other() -> None:
    install()
    x = block(tl.float32, (4,))
    for one, other in ((0.0, -0.0), (1, 1.0), (1, True), (0.0, 0)):
        forget()
        said(operator.mul, x, one)
        again = said(operator.mul, x, other)
        forget()
        assert again == said(operator.mul, x, other)


def test_an_operand_that_came_twice_is_two_the_next_time() -> None:
    install()
    x, y = block(tl.float32, (4,)), block(tl.float32, (4,), 3)
    forget()
    assert (x * x).handle.data.tolist() == [1] * 4
    assert (x * y).handle.data.tolist() == [3] * 4
    assert (y * y).handle.data.tolist() == [9] * 4


def test_what_is_done_to_a_constant_is_done_to_that_one_alone() -> None:
    install()
    forget()
    for _ in range(3):
        row = tl.arange(0, 4)
        assert "hint" not in row.handle.attr
        row.handle.set_attr("hint", [4])


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_a_remembered_type_is_as_a_made_one(kind: Any) -> None:
    type_cache._blocks.clear()
    for shape in SHAPES[1:]:
        made, first, second = (object.__new__(tl.block_type) for _ in range(3))
        type_cache._block_init(made, kind, list(shape))
        type_cache._block(first, kind, list(shape))
        type_cache._block(second, kind, [tl.constexpr(n) for n in shape])
        for found in (first, second):
            assert found == made
            assert {k: v for k, v in vars(found).items() if k != "one"} == vars(made)
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
