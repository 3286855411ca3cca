"""Templates of calls: which steps they have, which numbers are left open, what stays whole."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tritensor as tt  # noqa: F401  (fills the table)
from tritensor.fusion.program.steps import Template
from tritensor.fusion.program.templates import numbers_in, template_of, uniform
from tritensor.ground.strides import contiguous_strides
from tritensor.kernels.parts.tapes.capture import ArraySpec
from tritensor.ops.table import registry

F32 = np.dtype(np.float32)


def spec(*shape: int, dtype: Any = F32) -> ArraySpec:
    return ArraySpec(shape, np.dtype(dtype), contiguous_strides(shape))


def template(name: str, *args: Any, shape: tuple[int, ...], corner: Any = "forward", **attrs: Any) -> Any:
    op = registry[name]
    numbers = tuple(numbers_in(args)) if uniform(op, corner) else ()
    return template_of(op, corner, args, attrs, numbers, (contiguous_strides(shape),))


def test_a_number_that_reaches_the_kernel_is_left_open() -> None:
    made = template("mul", spec(4, 1, 3), 2.5, shape=(4, 1, 3))
    assert made == template("mul", spec(4, 1, 3), -7.0, shape=(4, 1, 3))
    (step,) = made.steps
    assert step.sizes == (4, 3)
    assert [(n.slot, n.kind, n.dtype) for n in step.numbers] == [(0, float, F32)]
    (step,) = template("mul", spec(4, dtype=np.int64), 3, shape=(4,)).steps
    assert step.numbers[0].kind is np.int64


def test_a_number_that_says_which_formula_is_not() -> None:
    square, cube = template("pow", spec(4), 2, shape=(4,)), template("pow", spec(4), 3, shape=(4,))
    assert isinstance(square, Template)
    assert square.steps[0].function is not cube.steps[0].function


def test_a_fold_of_rows() -> None:
    made = template("mean", spec(2, 3, 5), shape=(2, 3, 1), dim=(2,), keepdim=True)
    (step,) = made.steps
    assert step.folds
    assert (step.sizes, step.rows) == ((2, 3, 5), {2})
    assert step.made == ((0, (3, 1, 0)),)
    assert step.numbers[0].value == 5


def test_a_gradient_that_is_a_view_has_no_steps() -> None:
    made = template("sum", spec(4, 1), (4, 6), (1,), shape=(4, 6), corner=0)
    assert made.steps == ()
    assert made.results[0].strides == (1, 0)


@pytest.mark.parametrize(
    ("name", "args", "attrs", "shape", "why"),
    [
        ("softmax", (spec(4, 5),), {"dim": -1}, (4, 5), "a kernel of its own"),
        ("matmul", (spec(4, 5), spec(5, 4)), {}, (4, 4), "a kernel of its own"),
        ("sum", (spec(4, 5),), {"dim": (0,), "keepdim": False}, (5,), "it folds leading axes"),
        ("sum", (spec(400, 500),), {"dim": (0, 1), "keepdim": False}, (), "it needs the whole sum first"),
        ("argmax", (spec(4, 5),), {"dim": (1,), "keepdim": False}, (4,), "places in a row"),
        ("sum", (spec(4, 1),), {"dim": (1,), "keepdim": False}, (4,), "one element"),
    ],
)
def test_what_stays_whole(name: str, args: tuple[Any, ...], attrs: dict[str, Any], shape: tuple[int, ...], why: str) -> None:
    found = template(name, *args, shape=shape, **attrs)
    assert isinstance(found, str)
    assert why in found


def test_empty_arrays_stay_whole() -> None:
    assert isinstance(template("exp", spec(0, 3), shape=(0, 3)), str)
