"""Inputs that do not fit: each op's shape rule refuses them by name, or the CPU gives what the rule says."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import tritensor.kernels  # noqa: F401  (fills the table)
from tests.ops.test_walk import of_each_kind
from tritensor.ground import errors
from tritensor.ops.table import Op, registry
from tritensor.testing.questions.cases import cast, outputs, promote_inputs, samples, types

NAMED = tuple(kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, Exception))
# Positions that only the op's own forward, or the public function, gives: nobody looks at them again where they are used.
TRUSTED = {"ctc_loss": "input_lengths beyond log_probs", "max_pool2d_gather": "indices beyond x", "max_pool3d_gather": "indices beyond x"}


def changes(x: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    """An input with another number of dimensions, other sizes, another kind of numbers."""
    yield "a dimension more", x[None]
    if x.ndim and x.shape[0]:
        yield "a dimension less", np.asarray(x[0])
    for d, n in enumerate(x.shape):
        yield f"dim {d} empty", x.take([], d)
        if n:
            yield f"dim {d} longer", np.concatenate([x, x.take([0], d)], d)
        if n > 1:
            yield f"dim {d} shorter", x.take(range(1, n), d)
    real = x.real
    yield "bool", x.astype(bool)
    yield "int64", np.where(np.isfinite(real), real, 0).astype(np.int64)
    yield "float32", real.astype(np.float32)
    yield "complex64", x.astype(np.complex64)


def is_named(error: Exception) -> bool:
    """Whether an error is one of ours; numpy's own begin with a name only where matmul's operands disagree."""
    return isinstance(error, NAMED) or (re.match(r"[a-z]\w+: ", str(error)) is not None and "gufunc" not in str(error))


def finding(op: Op, inputs: tuple[Any, ...], attrs: dict[str, Any]) -> str:
    """What is wrong with the answer to some inputs, or nothing."""
    try:
        said = op.shape(*inputs, **attrs)
    except Exception as error:
        return "" if is_named(error) else f"the shape rule fails: {type(error).__name__}: {error}"
    try:
        made = outputs(op, op.cpu, inputs, attrs)
    except Exception as error:
        if is_named(error) or op.name in TRUSTED:
            return ""
        return f"the shape rule says {said}, and the CPU fails: {type(error).__name__}: {error}"
    if op.mutates:  # the arrays that it was given
        return ""
    specs = (said,) if hasattr(said, "dtype") else said
    wrong = [(s, y.shape, y.dtype) for s, y in zip(specs, made, strict=True) if (tuple(s.shape), s.dtype) != (y.shape, y.dtype)]
    return f"the shape rule says {wrong[0][0]}, the CPU gives {wrong[0][1:]}" if wrong else ""


def findings(op: Op) -> list[str]:
    found = []
    dtype = "float32" if "float32" in types(op) else types(op)[0]
    for k in sorted(of_each_kind(op)):
        sample = samples(op)[k]
        for i, x in enumerate(sample.inputs):
            for what, changed in changes(x) if isinstance(x, np.ndarray) else ():
                given = [cast(v, dtype) for v in sample.inputs]
                given[i] = cast(changed, dtype) if what.startswith(("a dim", "dim")) else changed
                inputs = tuple(v.copy() if isinstance(v, np.ndarray) else v for v in promote_inputs(op, tuple(given)))
                if said := finding(op, inputs, sample.attrs):
                    found.append(f"{op.name}, sample {k}, {op.inputs[min(i, len(op.inputs) - 1)]} {what}: {said}")
    return found


@pytest.mark.quick
@pytest.mark.filterwarnings("ignore:invalid value", "ignore:overflow", "ignore:divide by zero", "ignore:Casting complex")
def test_inputs_that_do_not_fit_are_refused_by_name() -> None:
    found = [line for op in registry.values() for line in findings(op)]
    assert not found, f"{len(found)} findings\n" + "\n".join(found[:40])


def test_a_rule_that_takes_anything_is_found() -> None:
    linear = registry["linear"]
    careless = replace(linear, shape=lambda x, weight, bias=None: linear.shape(x, x[:1], None))
    assert findings(careless)
