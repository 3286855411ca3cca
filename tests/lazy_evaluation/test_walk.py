"""Every op between others, lazily: alone, twice, after a broadcast, before a reduction and behind a product, with its gradients of two orders, in all its types."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import tritensor as tt
from tests.kernels.tapes.captured import own_ops
from tests.lazy_evaluation.programs import array, difference
from tritensor.ground import dtypes
from tritensor.ground.device import cpu
from tritensor.ops.table import Op, ops
from tritensor.ops.tuning.gpu_calls import attributes
from tritensor.testing.questions.cases import cast, promote_inputs, samples

OPS = [op for op in own_ops() if not op.mutates and getattr(op.forward, "draws", None) is None]
TOLERANCE = {"float64": 1e-9, "float16": 2e-4, "bfloat16": 2e-3}  # of 16 bits a twentieth: see `difference`
# beside a pole the second derivative is a hundred times as far off as tan itself, which the CPU's lanes round otherwise
ILL_CONDITIONED = {"tan": 2e-4}


def _inputs(op: Op, dtype: str, most: int) -> Iterator[tuple[list[Any], dict[str, Any], bool]]:
    for sample in samples(op)[:most]:
        inputs = [*promote_inputs(op, tuple([cast(x, dtype) for x in sample.inputs]))]
        arrays = [x for x in inputs if isinstance(x, np.ndarray)]
        if not any(x.dtype.kind == "c" or 0 in x.shape for x in arrays):
            yield inputs, attributes(op, sample, cpu), sample.smooth


def _forms(op: Op, attrs: dict[str, Any], given: list[Any]) -> list[Any]:
    """Results of an op as it is, and between others."""

    def made(xs: list[Any]) -> list[Any]:
        found = getattr(ops, op.name)(*xs, **attrs)
        return [y for y in (found if isinstance(found, tuple) else (found,)) if isinstance(y, tt.Tensor)]

    def changed(f: Callable[[Any], Any]) -> list[Any]:
        return [f(x) if isinstance(x, tt.Tensor) and x.dtype.is_floating_point and x.dtype.itemsize > 1 else x for x in given]

    ones = {x.shape[-1]: tt.ones(x.shape[-1], dtype=x.dtype, device=x.device) for x in given if isinstance(x, tt.Tensor) and x.ndim}
    found = made(given)
    found += made(changed(lambda x: x * ones[x.shape[-1]].to(x.dtype) if x.ndim else x))
    found += made(changed(lambda x: tt.eye(len(x), dtype=x.dtype, device=x.device) @ x if x.ndim == 2 else x))
    first = found[0]
    if first.dtype.is_floating_point and first.dtype.itemsize > 1 and first.ndim:
        found += [(first * 0.5).sum(-1), first.amax(0) if first.numel() else first]
    if len(given) == 1 and (first.dtype, first.shape) == (given[0].dtype, given[0].shape):
        found += made([first])
    return found


def _program(op: Op, attrs: dict[str, Any], inputs: list[Any], device: str, orders: int) -> list[Any]:
    graded = [
        isinstance(x, np.ndarray) and dtypes.is_float(x.dtype) and x.dtype.itemsize > 1 and op.rule is not None and orders > 0
        for x in inputs
    ]
    given = [tt.tensor(x, requires_grad=g, device=device) if isinstance(x, np.ndarray) else x for x, g in zip(inputs, graded, strict=True)]
    found = _forms(op, attrs, given)
    leaves = [x for x, g in zip(given, graded, strict=True) if g]
    ends = [(y.float() * y.float()).mean() for y in found if y.requires_grad and y.dtype.is_floating_point]
    if ends:
        grads = [g for g in tt.autograd.grad(sum(ends), leaves, create_graph=orders > 1, allow_unused=True) if g is not None]
        found += grads
        further = [(g.float() * g.float()).mean() for g in grads if g.requires_grad]
        if further:
            found += [g for g in tt.autograd.grad(sum(further), leaves, allow_unused=True) if g is not None]
    return [y for y in found if not y.dtype.is_complex]


def _tolerance(op: Op, dtype: str, attrs: dict[str, Any]) -> float:
    """Of a cast that of the coarser of its types."""
    types = {dtype, str(attrs.get("dtype", dtype))}
    return max(
        [ILL_CONDITIONED.get(op.name, 0.0), *[TOLERANCE.get(t, 2e-5) for t in types if t.startswith(("float", "bfloat"))]], default=2e-5
    )


def _ask(op: Op, dtype: str, device: str, most: int, orders: int) -> None:
    for inputs, attrs, smooth in _inputs(op, dtype, most):
        orders_here = orders if smooth else 0
        eager = [array(y) for y in _program(op, attrs, inputs, device, orders_here)]
        with tt.lazy():
            runs = [_program(op, attrs, inputs, device, orders_here) for _ in range(2)]
            runs.append([])
            for y in _program(op, attrs, inputs, device, orders_here):  # asked one by one
                runs[-1].append(y.clone())
                tt.evaluate(runs[-1][-1])
        for run in runs:
            found = difference(eager, [array(y) for y in run], _tolerance(op, dtype, attrs) if device == "cpu" else 0.0)
            assert not found, f"{dtype} {[x.shape if isinstance(x, np.ndarray) else x for x in inputs]} {attrs}: {found}"


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_an_op_between_others(op: Op) -> None:
    _ask(op, "float32" if "float32" in op.dtypes else op.dtypes[0], "cpu", 1, 1)


@pytest.mark.slow
@pytest.mark.full
@pytest.mark.parametrize(("op", "dtype"), [(op, t) for op in OPS for t in op.dtypes], ids=lambda x: getattr(x, "name", x))
def test_an_op_of_all_its_types(op: Op, dtype: str) -> None:
    _ask(op, dtype, "cpu", 3, 2)


@pytest.mark.slow
@pytest.mark.parametrize("op", [op for op in OPS if op.name != "view_as_complex"], ids=lambda op: op.name)
def test_an_op_on_a_gpu(op: Op) -> None:
    _ask(op, "float32" if "float32" in op.dtypes else op.dtypes[0], "cuda", 1, 1)
