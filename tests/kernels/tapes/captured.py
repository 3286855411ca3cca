"""Ops whose corners are captured as steps, as captured.json has them: `python -m tests.kernels.tapes.captured` writes it anew."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import tritensor.kernels  # noqa: F401  (fills the table)
from tritensor.ground import dtypes
from tritensor.ground.device import gpu
from tritensor.kernels.parts.tapes.capture import Captured, capture, dry, forward_of
from tritensor.ops.array import CudaArray
from tritensor.ops.table import Op, registry
from tritensor.ops.table.corner_calls import call
from tritensor.ops.tuning.gpu_calls import attributes, typed
from tritensor.testing.questions.cases import samples

RECORD = Path(__file__).with_name("captured.json")


def own_ops() -> list[Op]:
    """The library's ops that a GPU runs."""
    return [op for op in registry.values() if op.module.startswith("tritensor.kernels.") and forward_of(op) is not None]


def captures(op: Op) -> Iterator[tuple[str, Captured | None]]:
    """("forward" or "backward", what is captured) of every sample of an op in float32, C-ordered, without what has complex numbers or no elements."""
    dtype = "float32" if "float32" in op.dtypes else op.dtypes[0]
    for sample in samples(op):
        specs = typed(op, sample.inputs, dtype)
        inputs = tuple(dry(tuple(x.shape), np.dtype(x.dtype)) if hasattr(x, "shape") else x for x in specs)
        arrays = [x for x in inputs if isinstance(x, CudaArray)]
        attrs = attributes(op, sample, gpu(0))
        said: Any = op.shape(*specs, **attrs)
        outs = () if op.mutates else tuple(dry(tuple(s.shape), np.dtype(s.dtype)) for s in ((said,) if hasattr(said, "shape") else said))
        if any(x.dtype.kind == "c" or 0 in x.shape for x in (*arrays, *outs)):
            continue
        yield "forward", capture(forward_of(op), inputs, attrs)  # type: ignore[arg-type]
        needs = tuple(isinstance(x, CudaArray) and dtypes.is_float(x.dtype) for x in inputs)
        if op.backward is None or not any(needs):
            continue
        found: list[Captured | None] = []

        def noted(corner: Any, found: list[Any] = found) -> Any:
            return None if corner is None else lambda *args: found.append(capture(corner, args, {}))

        g: Any = tuple(dry(y.shape, y.dtype) for y in outs[: op.public])
        corner = op.backward._replace(functions=tuple(noted(f) for f in op.backward.functions))
        call(op, corner, g if op.public > 1 else g[0], inputs, outs, attrs, needs)
        yield from (("backward", c) for c in found)


def survey() -> dict[str, dict[str, list[str]]]:
    """For "forward" and "backward" the ops all of whose calls are captured, and those of whose calls some are."""
    found: dict[str, dict[str, list[str]]] = {k: {"whole": [], "partly": []} for k in ("forward", "backward")}
    for op in own_ops():
        of_op = list(captures(op))
        for corner, lists in found.items():
            known = [c is not None for k, c in of_op if k == corner]
            if any(known):
                lists["whole" if all(known) else "partly"].append(op.name)
    return {corner: {k: sorted(names) for k, names in lists.items()} for corner, lists in found.items()}


if __name__ == "__main__":
    RECORD.write_text(json.dumps(survey(), indent=1) + "\n")
