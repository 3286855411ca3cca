"""Walks the op table below autograd: through a class that holds a plain tensor, and through a mode, each op gives what it gives without, and its gradients."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import tritensor as tt
import tritensor.kernels
from tests.overriding.wrappers import Holding, Log, bare
from tritensor.ground.device import cpu
from tritensor.ops.table import Op, registry
from tritensor.tensor.core import Tensor, new_tensor
from tritensor.testing.questions.cases import Case, is_floating, samples, types

MOST = 4  # samples of each op
RTOL, ATOL = 2e-4, 2e-5  # of float32: a sum of PyTorch's smaller ops rounds otherwise than the one that fuses them


def _inputs(case: Case, wrap: Callable[[Tensor], Any]) -> list[Any]:
    given: list[Any] = []
    for p in case.placed():
        t = new_tensor(p.array) if hasattr(p, "array") else p
        if isinstance(t, Tensor):
            t = wrap(t)
            if is_floating(t._array) and case.op.rule is not None:
                t.requires_grad_()
        given.append(t)
    return given


def _ask(case: Case, wrap: Callable[[Tensor], Any]) -> tuple[list[Any], list[Any] | None, list[Any]]:
    """(the results, the gradients of the inputs, or None where the numbers have none, the inputs as they are afterwards) of a case."""
    given = _inputs(case, wrap)
    with tt.set_grad_enabled(not case.op.mutates):
        made = getattr(tt.ops, case.op.name)(*given, **case.attrs())
    outs = [] if made is None else list(made) if isinstance(made, tuple) else [made]
    used = [y for y in outs if y.requires_grad]
    wanted = [x for x in given if isinstance(x, Tensor) and x.requires_grad]
    try:
        found = (
            tt.autograd.grad(used, wanted, [tt.ones(y.shape, dtype=y.dtype) for y in used], allow_unused=True) if used and wanted else ()
        )
    except tt.errors.GradError:  # the op has no gradient of this call
        found = None
    return outs, None if found is None else list(found), given


def _numbers(x: Any) -> Any:
    return bare(x).detach().numpy() if isinstance(x, Tensor) else x


def _differences(what: str, have: list[Any], want: list[Any]) -> Iterator[str]:
    if len(have) != len(want):
        yield f"{what}: {len(have)}, not {len(want)}"
        return
    for i, (a, b) in enumerate(zip(have, want, strict=True)):
        a, b = _numbers(a), _numbers(b)
        if (a is None) != (b is None):
            yield f"{what} {i}: {a}, not {b}"
        elif isinstance(a, np.ndarray):
            if a.dtype != b.dtype or a.shape != b.shape:
                yield f"{what} {i}: {a.dtype}{a.shape}, not {b.dtype}{b.shape}"
            elif not np.allclose(wide := a.astype(np.complex128), exact := b.astype(np.complex128), RTOL, ATOL, equal_nan=True):
                yield f"{what} {i}: wrong by {np.abs(wide - exact).max()}"


def _findings(op: Op) -> list[str]:
    found: list[str] = []
    for i, sample in enumerate(samples(op)[:MOST]):
        dtype = "float32" if "float32" in types(op) else types(op)[0]
        case = Case(op, i, sample, dtype, "plain", cpu)
        want = _ask(case, lambda t: t)
        held = _ask(case, Holding)
        with Log() as log:
            told = _ask(case, lambda t: t)
        if not log.names:
            found.append(f"{case}: the mode is told nothing")
        for who, have in (("held", held), ("told", told)):
            for what, a, b in zip(("result", "gradient", "input"), have, want, strict=True):
                found += [f"{case} {who}: {line}" for line in _differences(what, a, b)] if b is not None else []
        if case.op.inputs and case.op.public == 1 and not op.mutates and not all(isinstance(y, Holding) for y in held[0]):
            found.append(f"{case}: the result is a {type(held[0][0]).__name__}")
    return found


@pytest.mark.standard
@pytest.mark.parametrize("op", list(registry.values()), ids=lambda op: op.name)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_it_gives_the_same(op: Op) -> None:
    assert not (found := _findings(op)), "\n".join(found[:20])
