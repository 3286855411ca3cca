"""Layouts of results in memory: the op's rule asked of what users get, the same on every device."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from tritensor import dispatch
from tritensor.autograd.modes import no_grad
from tritensor.cuda.emulator.dry_launches import without_values
from tritensor.ground.strides import BACKWARDS, CONTIGUOUS, IMAGES, OWN, contiguous_strides, elementwise_strides, image_strides
from tritensor.ops.array import CudaArray, element_strides
from tritensor.ops.lazy_array import settle
from tritensor.ops.table import ops, registry
from tritensor.testing.questions.cases import Case
from tritensor.testing.questions.layouts import Placed
from tritensor.testing.questions.question import question, tensor


@question
def layout_rule(case: Case) -> list[str]:
    """Called as users call it, twice (the second call takes a plan or a recording), a result lies as the op's layout says."""
    op = case.op
    if op.layout == OWN or (case.dtype != "float32" and "float32" in op.dtypes):  # a type changes nothing
        return []
    return without_values(functools.partial(_strides, case))


def _strides(case: Case) -> list[str]:
    """Findings on how each result lies."""
    op = case.op
    given = [x.array if isinstance(x, Placed) else x for x in case.placed()]
    call = getattr(ops, op.name) if registry.get(op.name) is op else functools.partial(dispatch.apply, op)
    found = []
    for time in ("first", "second"):  # a recorded call allocates without the rule
        with no_grad():
            out = call(*[tensor(x) for x in given], **case.attrs())
        for name, y in zip(op.outputs, out if isinstance(out, tuple) else (out,), strict=False):
            want = wanted(op.layout, tuple(y._array.shape), given)
            for array in (y._array, settle(y._array)):  # a lazy one says how it will lie
                have = element_strides(array)
                if describe_layout(array.shape, have) != describe_layout(array.shape, want):
                    found.append(f"{name} {tuple(array.shape)} of the {time} call has strides {have}; {op.layout} says {want}")
            if type(array) not in (np.ndarray, CudaArray):
                found.append(f"{name} holds a {type(array).__name__}, not an array")
    return found


def wanted(layout: str, shape: tuple[int, ...], inputs: list[Any]) -> tuple[int, ...]:
    """The strides that a result of `shape` has to have."""
    given = [(tuple(x.shape), element_strides(x)) for x in inputs if isinstance(x, np.ndarray | CudaArray)]
    if layout == CONTIGUOUS or not given:
        return contiguous_strides(shape)
    return (image_strides if layout == IMAGES else elementwise_strides)(shape, tuple(reversed(given) if layout == BACKWARDS else given))


def describe_layout(shape: tuple[int, ...], strides: tuple[int, ...]) -> tuple[int, ...]:
    """Strides without those that say nothing: of dimensions of size 1, and of arrays without elements."""
    return () if 0 in shape else tuple(s for n, s in zip(shape, strides, strict=True) if n != 1)
