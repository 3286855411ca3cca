"""Walks the op table on device meta: each op's answer has the shape, type and strides of the CPU's, forward and backward, or the op is listed here."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import tritensor as tt
import tritensor.kernels
from tritensor.ground.device import cpu, meta
from tritensor.ops.table import Op, registry
from tritensor.tensor.core import Tensor, new_tensor
from tritensor.testing.questions.cases import Case, is_floating, samples, types, variants


def _call(case: Case, grad: bool) -> tuple[list[Any], list[Tensor]]:
    """The inputs of a case as tensors, and what the op gives for them."""
    given: list[Any] = []
    for p in case.placed():
        t = new_tensor(p.array) if hasattr(p, "array") else p
        if grad and isinstance(t, Tensor) and is_floating(t._array) and case.op.rule is not None:
            t.requires_grad_()
        given.append(t)
    with tt.set_grad_enabled(grad):
        made = getattr(tt.ops, case.op.name)(*given, **case.attrs())
    return given, [] if made is None else list(made) if isinstance(made, tuple) else [made]


def _told(x: Tensor | None) -> Any:
    """Shape, type and strides, those of dimensions that step nowhere left out."""
    if x is None:
        return None
    return tuple(x.shape), x.dtype, [s for n, s in zip(x.shape, x.stride(), strict=True) if n > 1] if x.numel() else []


def _gradients(given: list[Any], outs: list[Tensor]) -> list[Any]:
    wanted = [x for x in given if isinstance(x, Tensor) and x.requires_grad]
    used = [y for y in outs if y.requires_grad]
    return list(tt.autograd.grad(used, wanted, [tt.ones_like(y) for y in used], allow_unused=True)) if used and wanted else []


def _findings(op: Op, cases: Iterator[tuple[Case, Case]]) -> list[str]:
    found = []
    for here, there in cases:
        given, outs = _call(here, True)
        bare, answers = _call(there, True)
        if not all(y.is_meta for y in answers):
            found.append(f"{there}: an answer is not on meta")
        if [_told(y) for y in answers] != [_told(y) for y in outs]:
            found.append(f"{there}: {[_told(y) for y in answers]}, on the CPU {[_told(y) for y in outs]}")
        if [y.requires_grad for y in answers] != [y.requires_grad for y in outs]:
            found.append(f"{there}: requires_grad is not the CPU's")
        try:
            wanted = _gradients(given, outs)
        except tt.errors.GradError:  # the op has no gradient of this call
            continue
        have, leaves = _gradients(bare, answers), [x for x in bare if isinstance(x, Tensor) and x.requires_grad]
        if [g is None for g in have] != [g is None for g in wanted]:
            found.append(f"{there}: gradients {[_told(y) for y in have]}, on the CPU {[_told(y) for y in wanted]}")
        found += [
            f"{there}: a gradient {_told(g)} of {_told(x)}"
            for g, x in zip(have, leaves, strict=False)
            if g is not None and _told(g)[:2] != _told(x)[:2]
        ]
    return found


def _cases(op: Op, every: bool) -> Iterator[tuple[Case, Case]]:
    for i, sample in enumerate(samples(op)):
        for dtype in types(op) if every else types(op)[:1]:
            for layout in variants(op, sample, dtype) if every else ("plain",):
                yield Case(op, i, sample, dtype, layout, cpu), Case(op, i, sample, dtype, layout, meta)
        if not every:
            return


@pytest.mark.parametrize("op", list(registry.values()), ids=lambda op: op.name)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_first_sample(op: Op) -> None:
    assert not (found := _findings(op, _cases(op, False))), "\n".join(found)


@pytest.mark.standard
@pytest.mark.parametrize("op", list(registry.values()), ids=lambda op: op.name)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_every_sample(op: Op) -> None:
    assert not (found := _findings(op, _cases(op, True))), "\n".join(found[:20])
