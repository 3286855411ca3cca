"""Functions of 16-bit floats round as little as PyTorch's: over its sample database, no element is a unit in the last place further from the value that
PyTorch has of the same numbers in float64."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
import torch
from torch.testing._internal.common_methods_invocations import op_db

import tritensor as tt
from tests.peer.opinfo.compare import Difference, tensors
from tests.peer.opinfo.freedom import values_matter
from tests.peer.opinfo.resolve import key, resolved
from tests.peer.opinfo.translate import back
from tests.peer.opinfo.walk import _chosen, _ours, _theirs, samples_of

pytestmark = pytest.mark.peer
NARROW = {
    torch.float16: (2.0**-10, 2.0**-14, 60000.0),
    torch.bfloat16: (2.0**-7, 2.0**-126, 3e38),
}  # epsilon, smallest normal, all but the largest
SAMPLES = 12  # of each type
REASONS = {  # entries whose float64 values say nothing of ours
    "special.ndtr": "PyTorch's gives 0 below -8 in float64, too, where the value is 1e-16 and less",
    "nn.functional.linear_cross_entropy/chunked_none": "with weights of classes logits are linear's, of 16 bits, as PyTorch's are without chunks",
    "nn.functional.multi_head_attention_forward": "sums of a few random products that nearly cancel: both are hundreds of units off where one element is next to 0",
}


class Widened:
    """A sample in float64."""

    def __init__(self, sample: Any) -> None:
        self.input, self.args, self.kwargs = (widened(v) for v in (sample.input, sample.args, sample.kwargs))


def widened(v: Any) -> Any:
    if isinstance(v, torch.Tensor):
        return v.double() if v.dtype in NARROW else v
    if isinstance(v, list | tuple):
        return type(v)([widened(x) for x in v])
    if isinstance(v, dict):
        return {k: widened(x) for k, x in v.items()}
    return torch.float64 if isinstance(v, torch.dtype) and v in NARROW else v


def units(x: torch.Tensor, right: torch.Tensor, kind: torch.dtype) -> torch.Tensor:
    epsilon, tiny, _ = NARROW[kind]
    return (x - right).abs() / (torch.exp2(torch.floor(torch.log2(right.abs().clamp(min=tiny)))) * epsilon)


def worse(right: torch.Tensor, theirs: torch.Tensor, ours: Any) -> float:
    """By how many units in the last place an element of ours is further off than PyTorch's."""
    kind, right = theirs.dtype, right.double()
    asked = torch.isfinite(right) & torch.isfinite(theirs) & (right.abs() < NARROW[kind][2])
    pair = [torch.nan_to_num(units(x.double(), right, kind)[asked], nan=1e9) for x in (back(ours), theirs)]
    return float((pair[0] - pair[1]).max()) if pair[0].numel() else 0.0


def findings(op: Any, mine: Any, kind: torch.dtype) -> list[str]:
    found = []
    samples = samples_of(op, str(kind).removeprefix("torch."), False)
    chosen = _chosen(len(samples))
    for i in chosen[:: max(1, len(chosen) // SAMPLES)]:
        try:
            if not values_matter(op.name, samples[i]):
                continue
            _, right, _ = _theirs(op.op, Widened(samples[i]))
            _, theirs, _ = _theirs(op.op, samples[i])
        except Exception:  # what PyTorch refuses in one of the two types
            continue
        try:
            _, ours, _ = _ours(mine, samples[i])
        except Difference:  # which test_opinfo_peer tells
            continue
        for r, t, m in zip(tensors(right, torch.Tensor), tensors(theirs, torch.Tensor), tensors(ours, tt.Tensor), strict=False):
            if t.dtype in NARROW and r.shape == t.shape == tuple(m.shape) and (off := worse(r, t, m)) > 1.02:
                found.append(f"{kind} {i}: {off:.3g} units further off; {samples[i].summary()[:200]}")
    return found


@pytest.mark.parametrize("op", [op for op in op_db if set(NARROW) & set(op.dtypes)], ids=key)
def test_no_more_is_rounded(op: Any) -> None:
    torch.set_num_threads(1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mine, _ = resolved(op)
        found = [line for kind in NARROW if mine is not None and kind in op.dtypes for line in findings(op, mine, kind)]
    assert bool(found) == (key(op) in REASONS), found
