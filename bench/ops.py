"""Every op of the table on the CPU, at the sizes its record calls worth timing: time, GB/s, GFLOP/s."""

from __future__ import annotations

import numpy as np

import tritensor as tt
from bench.timing import paired
from tritensor.table import Op, Sample, registry


def _call(record: Op, sample: Sample) -> str:
    inputs = [
        tt.as_tensor(x.astype(np.float32) if isinstance(x, np.ndarray) and x.dtype == np.float64 else x) if isinstance(x, np.ndarray) else x
        for x in sample.inputs
    ]
    arrays = [getattr(x, "array", x) for x in inputs]
    run = getattr(tt.ops, record.name)
    with tt.no_grad():
        seconds = paired(lambda: run(*inputs, **sample.attrs), None, seconds=0.4, rounds=7).ours
    text = f"{record.name:<18}{sample!r:<70.70}{seconds * 1e3:>10.3f} ms"
    if record.work is not None:
        work = record.work(*arrays, **sample.attrs)
        text += f"{work.bytes / seconds / 1e9:>9.2f} GB/s{work.flops / seconds / 1e9:>9.2f} GFLOP/s"
    return text


def main() -> None:
    print("every op with sizes in its record, float32, on the CPU")
    for name in sorted(registry):
        record = registry[name]
        for sample in record.sizes(np.random.default_rng(0)) if record.sizes is not None else ():
            if sum(x.nbytes for x in sample.inputs if isinstance(x, np.ndarray)) <= 512 << 20:
                print(_call(record, sample), flush=True)
