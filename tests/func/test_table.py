"""Walks the op table: every op under vmap beside a loop over the examples, its gradients so, its tangents beside its gradients and in other layouts."""

from __future__ import annotations

import numpy as np
import pytest

import tritensor.kernels  # noqa: F401  (fills the table)
from tests.func.walk import has_rule, jvp_findings, layout_findings, mapped_ops, vjp_findings, vmap_findings
from tritensor.ops.table import Op

pytestmark = pytest.mark.filterwarnings("ignore:(divide|invalid|overflow|underflow):RuntimeWarning")  # samples at poles and corners
OPS = [pytest.param(op, id=op.name) for op in mapped_ops()]
LOOPED = {  # ops without a rule, and why
    "count_keys": "keys of each example fall into bins of their own, which bincount asks of host values anyway",
    "norm_of_all": "its one caller, get_total_norm, gives it arrays of a GPU as they are; examples of a batch go one by one through other ops",
    "nonzero_static": "places are counted in each example by themselves",
}
# Tangents that are no transpose of the gradient, on purpose.
LOPSIDED = {
    "cast": "16-bit tangents are rounded once, gradients come from 16 bits",
    "eig": "gradients that depend on the phase of an eigenvector are refused, tangents have one phase",
    "embedding": "the row of padding has a tangent and no gradient",
}


def findings(op: Op, few: bool) -> list[str]:
    """What is wrong with an op, by its samples or the first of them."""
    found = []
    for sample in list(op.samples(np.random.default_rng(0)))[: 2 if few else None]:
        said = vmap_findings(op, sample) + vjp_findings(op, sample, np.random.default_rng(1))
        if op.name not in LOPSIDED:
            said += jvp_findings(op, sample, np.random.default_rng(1))
        said += layout_findings(op, sample, np.random.default_rng(1))
        found += [f"{sample!r}: {line}" for line in said]
    return found


@pytest.mark.parametrize("op", OPS)
def test_op(op: Op) -> None:
    """Batches, the gradients of examples, tangents, layouts."""
    assert not (found := findings(op, few=True)), "\n".join(found)


@pytest.mark.slow
@pytest.mark.parametrize("op", OPS)
def test_op_by_all_samples(op: Op) -> None:
    assert not (found := findings(op, few=False)), "\n".join(found)


def test_what_is_said_to_loop_does() -> None:
    """A new op without a rule in tritensor/func/rules runs in a loop, which a warning and docs/ops.md say; whose rule is lost shows there."""
    without = {op.name for op in mapped_ops() if not has_rule(op)}
    assert set(LOOPED) <= without, f"have a rule by now: {set(LOOPED) - without}"
