"""Templates of calls: the elementary steps of an op's corner for arrays of a form, found once; numbers that only reach kernels are left open."""

from __future__ import annotations

from functools import cache
from typing import Any, Literal

import numpy as np

from tritensor.fusion.program.steps import OFFSET, SEED, Elementary, Made, NotElementary, Read, Reader, Result, Template, axes_of, is_taped
from tritensor.fusion.spaces import Steps
from tritensor.ground.device import gpu
from tritensor.kernels.parts.elementwise import unchanged
from tritensor.kernels.parts.float8 import is_float8
from tritensor.kernels.parts.tapes.capture import Captured, steps_of
from tritensor.ops import replay
from tritensor.ops.table import Op

_known: dict[Any, Template | str] = {}
KNOWN = 8192


def template_of(
    op: Op,
    corner: Literal["forward"] | int,
    args: tuple[Any, ...],
    attrs: dict[str, Any],
    numbers: tuple[Any, ...],
    strides: tuple[Steps | None, ...],
) -> Template | str:
    """The template of a call; where the corner cannot be taken apart, why.

    args: an ArraySpec for every array; numbers: those among args that only reach kernels (see `uniform_numbers`), whose values say nothing here.
    strides: of each result as the op's layout rule says. A draw's seed and offset say nothing either.
    """
    table = _known
    args, attrs = _without_seed(op, corner, args, attrs)
    key: Any = (op, corner, _form(args) if numbers else replay.value_part(args), replay.attributes_part(attrs), strides)
    try:
        return table[key]
    except KeyError:
        pass
    except TypeError:  # an argument that cannot be hashed
        key = None
    if type(attrs.get("device")) is gpu(0).__class__:
        attrs = {**attrs, "device": gpu(0)}
    try:
        made: Template | str = _template(op, corner, args, attrs, numbers, strides)
    except NotElementary as error:
        made = str(error) or "it is a kernel of its own"
    if key is not None:
        if len(table) >= KNOWN:
            table.clear()
        table[key] = made
    return made


def _forget() -> None:
    global _known
    _known = {}


replay.when_forgotten.append(_forget)


def _form(args: tuple[Any, ...]) -> Any:
    """Arguments as a key, with the types of numbers in place of their values."""
    return tuple([(type(a),) if type(a) is float or type(a) is int else replay.value_part(a) for a in args])


@cache
def seed_places(op: Op, part: int, cpu: bool = False) -> tuple[int, int] | None:
    """Where seed and offset stand among the arguments of one of an op's gradients, of a GPU's or of the CPU's own; None where it draws nothing."""
    corner = op.cpu_backward if cpu else op.backward
    names = () if corner is None else corner.names[part]
    return (1 + names.index("seed"), 1 + names.index("offset")) if "seed" in names else None


def drawn_attributes(op: Op, corner: str) -> tuple[str, ...]:
    """The attributes of a forward call that are seed and offset of its random numbers."""
    return ("seed", "offset") if corner == "forward" and getattr(op.forward, "draws", None) == () else ()


def _without_seed(
    op: Op, corner: Literal["forward"] | int, args: tuple[Any, ...], attrs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """A call's arguments and attributes with what stands for any seed and offset."""
    if corner != "forward" and (at := seed_places(op, corner)) is not None:
        args = tuple([SEED if k == at[0] else OFFSET if k == at[1] else a for k, a in enumerate(args)])
    if corner == "forward" and drawn_attributes(op, corner):
        attrs = {**attrs, "seed": SEED, "offset": OFFSET}
    return args, attrs


@cache
def uniform(op: Op, corner: Literal["forward"] | int) -> bool:
    """Whether Python numbers among a corner's arguments only reach its kernels."""
    if corner == "forward":
        found: Any = op.forward
    else:
        found = None if op.backward is None else op.backward.functions[corner]
    return bool(getattr(found, "uniform", False))


def numbers_in(args: Any) -> list[Any]:
    """The Python numbers among arguments."""
    return [a for a in args if type(a) is float or type(a) is int]


def _template(
    op: Op, corner: Any, args: tuple[Any, ...], attrs: dict[str, Any], numbers: tuple[Any, ...], strides: tuple[Steps | None, ...]
) -> Template:
    captured = _captured(op, corner, args, attrs, {})
    if not numbers:
        return Reader(captured, ()).template(strides)
    # where the numbers go is seen by two captures with others
    tries = []
    for k in (1, 2):
        others = _others(numbers, k)
        tries.append(Reader(_captured(op, corner, args, attrs, others), tuple(others.values())).template(strides))
    if tries[0] != tries[1]:
        raise NotElementary
    return tries[0]


def _others(numbers: tuple[Any, ...], k: int) -> dict[int, Any]:
    """Numbers that no corner has by itself, of the types of these."""
    return {
        i: 128 - k * (len(numbers) + 1) + i if type(n) is int else type(n)((i + 1.0) * (0.7310586 if k == 1 else 0.8807971))
        for i, n in enumerate(numbers)
    }


def _captured(op: Op, corner: Any, args: tuple[Any, ...], attrs: dict[str, Any], others: dict[int, Any]) -> Captured:
    given, at = [], 0
    for a in args:
        if others and (type(a) is float or type(a) is int):
            a, at = others[at], at + 1
        given.append(a)
    found = steps_of(op, corner, given, attrs)
    if found is None:
        raise NotElementary
    return found


@cache
def copy_template(shape: tuple[int, ...], dtype: np.dtype, strides: Steps, laid: Steps) -> Template | None:
    """A copy of an array of these strides into memory that lies so; None where no steps copy it. Floats of 8 bits are copied as bytes."""
    kept = dtype
    if is_float8(dtype):
        dtype = np.dtype(np.uint8)
    if 0 in shape or not is_taped(dtype):
        return None
    axes = axes_of(shape)
    read = Read(0, 0, dtype, tuple([strides[d] for d in axes]))
    made = ((0, tuple([laid[d] for d in axes])),)
    wide = dtype == np.float64
    step = Elementary(unchanged, tuple([shape[d] for d in axes]), frozenset(), (read,), (), (0,), (), (), (), (dtype,), made, wide)
    return Template((step,), (Made(shape, laid, dtype),), (Result(~0, 0, laid, shape, kept),))
