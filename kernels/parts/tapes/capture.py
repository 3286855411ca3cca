"""Capture: the steps that a corner of an op is made of, found by calling it on arrays without memory."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple, NoReturn

import numpy as np

from tritensor.cuda.launch import register_conversion
from tritensor.ground.device import gpu
from tritensor.ground.errors import DeviceError, DTypeError
from tritensor.ground.strides import contiguous_strides
from tritensor.ground.thread_state import here
from tritensor.ops import replay
from tritensor.ops.array import CudaArray
from tritensor.ops.replay.recorder import NOWHERE, Imagined, NotThere
from tritensor.ops.replay.steps import Drawn, Folded, NotSteps, Pointwise, Spreading, StepRecorder
from tritensor.ops.table import Op

KNOWN = 8192  # captures that are kept; when there are more, all are dropped


class ArraySpec(NamedTuple):
    """All that a corner's steps depend on of an array: shape, numpy dtype, strides in elements."""

    shape: tuple[int, ...]
    dtype: np.dtype
    strides: tuple[int, ...]


class Captured(NamedTuple):
    """What a corner does with arrays like these, in order.

    args: its arguments, with an array without memory for every array. Arrays among the steps and results lie in the memory (`storage`) of one of
        these, or in memory that the corner allocates; as views they may have shape, strides, `offset` and type of their own.
    steps: a step reads what those before it wrote. It may write a part of some memory, and memory may be written again.
    results: what the corner returned: an array, None, or a tuple of these. A result may be an argument itself.
    """

    args: tuple[Any, ...]
    steps: tuple[Pointwise | Folded | Spreading | Drawn, ...]
    results: Any


class DryArray(CudaArray):
    """An array of a GPU without memory, told by its storage, which it shares with its views alone. Its values and its address are not to be had:
    who reads or writes it, asks for `data_ptr` or launches a kernel with it raises NotThere."""

    __slots__ = ()

    def data_ptr(self) -> NoReturn:
        raise NotThere("an array without memory is asked for its address")


def _refuse_launch(x: DryArray, kernel: str, parameter: str) -> NoReturn:
    raise NotSteps(f"{kernel} is launched with an array without memory for {parameter}")


register_conversion(DryArray, _refuse_launch)


def dry(shape: tuple[int, ...], dtype: np.dtype, strides: tuple[int, ...] | None = None) -> DryArray:
    """An array without memory: C-ordered, or of these strides (in elements)."""
    strides = contiguous_strides(shape) if strides is None else strides
    backwards = sum([step * (n - 1) for n, step in zip(shape, strides, strict=True) if step < 0 and n > 0])
    nbytes = (1 + sum([abs(step) * (n - 1) for n, step in zip(shape, strides, strict=True)])) * dtype.itemsize if math.prod(shape) else 0
    return DryArray(Imagined(NOWHERE, nbytes, gpu(0)), shape, dtype, strides, -backwards)


def capture(function: Callable[..., Any], args: Sequence[Any], attrs: dict[str, Any]) -> Captured | None:
    """The steps of `function(*args, **attrs)`, a forward or backward corner; None where it does what no step says (see NotSteps).

    args: arrays made by `dry`, numbers, None, and whatever else a corner takes; tuples of these. The call is one that the op's shape rule has passed.
    Needs no GPU and no emulator. Threads may capture at once.
    """
    function = replay.unwrap_corner(function)
    before, here.recorder = here.recorder, StepRecorder()
    try:
        results = function(*args, **attrs)
        return Captured(tuple(args), tuple(here.recorder.steps), results)
    except NotThere:
        return None
    except (DeviceError, DTypeError):  # no kernel takes the type: complex numbers have none on a GPU, some corners leave others out
        return None
    finally:
        here.recorder = before


_known: dict[Any, Captured | None] = {}


def forward_of(op: Op) -> Callable[..., Any] | None:
    """What a GPU runs of an op but for those that go by the host: its kernels' corner, of a view the function that all devices share."""
    return op.cpu if op.view else op.forward


def steps_of(op: Op, corner: Literal["forward"] | int, args: Sequence[Any], attrs: dict[str, Any]) -> Captured | None:
    """`capture` of a corner of an op, remembered: "forward", or the place of one of `op.backward.functions` (0 for a joint one).

    args: as the corner takes them, an ArraySpec for every array. None, too, where the op has no such corner.
    """
    known = _known  # as it is now: what is captured before the table changes must not be kept after
    key: Any = (op, corner, tuple([replay.value_part(a) for a in args]), replay.attributes_part(attrs))
    try:
        return known[key]
    except KeyError:
        pass
    except TypeError:  # an argument that cannot be hashed, as a list of numbers
        key = None
    found = forward_of(op) if isinstance(corner, str) else None if op.backward is None else op.backward.functions[corner]
    captured = None if found is None else capture(found, tuple([_dry_argument(a) for a in args]), attrs)
    if key is not None:
        if len(known) >= KNOWN:
            known.clear()
        known[key] = captured
    return captured


def _dry_argument(x: Any) -> Any:
    """An argument with arrays in place of ArraySpecs."""
    if type(x) is ArraySpec:
        return dry(*x)
    return tuple([_dry_argument(v) for v in x]) if type(x) is tuple else x


def _forget() -> None:
    """Drop all captures: an op was replaced, or a setting that corners depend on has changed."""
    global _known
    _known = {}


replay.when_forgotten.append(_forget)
