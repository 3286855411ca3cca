"""Step counts on a GPU: those of all parameters of a group in one tensor, so that one launch advances them."""

from __future__ import annotations

from typing import Any

import numpy as np

from tritensor.array import from_host
from tritensor.optim.optimizer import Optimizer, refuse_in_capture
from tritensor.table import ops
from tritensor.tensor.core import Tensor, new_tensor

_F32, _F64 = np.dtype(np.float32), np.dtype(np.float64)


class Counts:
    """`counts` (n,) float32, of which each state's "step" is an element; `scalars` (n, 3) float64 and its `rows`, see adam_count."""

    __slots__ = ("counts", "rows", "scalars", "steps")

    def __init__(self, entries: list[dict[str, Any]], p: Tensor) -> None:
        refuse_in_capture(p)
        if any(isinstance(e["step"], Tensor) for e in entries):
            given = [
                e["step"] if isinstance(e["step"], Tensor) else ops.full(shape=(), value=e["step"], dtype=_F32, device=p.device)
                for e in entries
            ]
            self.counts = ops.stack(*[s.detach().to(device=p.device, dtype=_F32) for s in given], dim=0)
        else:
            self.counts = new_tensor(from_host(np.array([e["step"] for e in entries], _F32), p.device))
        self.scalars = ops.full(shape=(len(entries), 3), value=0, dtype=_F64, device=p.device)
        self.steps = [self.counts[i] for i in range(len(entries))]
        self.rows = [self.scalars[i] for i in range(len(entries))]
        for entry, step in zip(entries, self.steps, strict=True):
            entry["step"] = step


def counts_of(optimizer: Optimizer, found: list[tuple[Tensor, dict[str, Any]]]) -> Counts:
    """The counts of parameters that are updated together, given with their states: those kept from the step before where the
    states still hold them; else new ones, which go on from what the states hold.

    Raises CaptureError where they would be made in the capture of a CUDA graph.
    """
    kept: dict[Any, Counts] = optimizer.__dict__.setdefault("_counts", {})
    key = tuple([id(entry) for _, entry in found])
    counts = kept.get(key)
    if counts is None or any([entry["step"] is not step for (_, entry), step in zip(found, counts.steps, strict=True)]):
        for other in [k for k in kept if not set(k).isdisjoint(key)]:
            del kept[other]
        counts = kept[key] = Counts([entry for _, entry in found], found[0][0])
    return counts
