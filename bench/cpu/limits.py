"""Which of an op's sizes are too large for a CPU: the op table's sizes are for GPUs as well."""

from __future__ import annotations

from typing import Any

import numpy as np

from tritensor.ops.table import Op, Sample

LARGEST = 512 << 20  # bytes of inputs
MOST_FLOPS = 12e9  # of one call: some tenths of a second on a core


def too_large(op: Op, sample: Sample, largest: int = LARGEST, flops: float = MOST_FLOPS) -> str:
    """Why a call is left to a GPU; "" where it is not. Looks at shapes alone: a sample that is drawn without values will do."""
    nbytes = sum(4 * x.size for x in sample.inputs if isinstance(x, np.ndarray))
    if nbytes > largest:
        return f"{nbytes >> 20} MiB of inputs are more than {largest >> 20}"
    work: Any = op.work(*sample.inputs, **sample.attrs) if op.work is not None else None
    if work is not None and work.flops > flops:
        return f"{work.flops / 1e9:.1f} GFLOP are more than {flops / 1e9:g}"
    return ""
