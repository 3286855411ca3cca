"""Every op of the table on the CPU, at the sizes its record calls worth timing: time, GB/s, GFLOP/s."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

import tritensor as tt
from bench import million
from bench.timing import paired
from tritensor.table import Op, Sample, registry

LARGEST = 512 << 20  # bytes of inputs; larger samples are for a GPU


def _inputs(record: Op, sample: Sample) -> list[Any]:
    """The sample's inputs as tensors, floating ones in float32 where the op takes it, else in the first type that it takes."""
    name = "float32" if "float32" in record.dtypes else record.dtypes[0]
    dtype = getattr(tt, name)
    made = []
    for x in sample.inputs:
        if isinstance(x, np.ndarray):
            x = tt.from_numpy(x)
            x = x.to(dtype) if x.dtype is tt.float64 else x
        made.append(x)
    return made


def _label(inputs: list[Any], attrs: dict[str, Any]) -> str:
    shown = [f"{x.dtype.name}{list(x.shape)}" if isinstance(x, tt.Tensor) else repr(x) for x in inputs]
    return ", ".join(shown + [f"{k}={v}" for k, v in attrs.items()])


def _line(record: Op, sample: Sample) -> str:
    """One row: the op, its inputs, median time, and the rates that the record's work gives."""
    inputs = _inputs(record, sample)
    run = getattr(tt.ops, record.name)
    with tt.no_grad():
        seconds = paired(lambda: run(*inputs, **sample.attrs), None, seconds=0.4, rounds=7).ours
    text = f"{record.name:<20}{_label(inputs, sample.attrs):<72.72}{seconds * 1e3:>10.3f} ms"
    if record.work is not None:
        work = record.work(*[getattr(x, "array", x) for x in inputs], **sample.attrs)
        text += f"{work.bytes / seconds / 1e9:>9.2f} GB/s{work.flops / seconds / 1e9:>9.2f} GFLOP/s"
    return text


def main(arguments: list[str]) -> None:
    if "--peer" in arguments:
        million.main(arguments)
        return
    if arguments:
        sys.exit(f"ops: {' '.join(arguments)} is not known here; --peer compares every function with torch (--peer --help)")
    print("every op with sizes in its record, on the CPU")
    failed = []
    for name in sorted(registry):
        record = registry[name]
        for sample in record.sizes(np.random.default_rng(0)) if record.sizes is not None else ():
            if sum(x.nbytes for x in sample.inputs if isinstance(x, np.ndarray)) > LARGEST:
                continue
            try:
                print(_line(record, sample), flush=True)
            except Exception as error:  # one op that fails must not cost the rest of a long run
                failed.append(name)
                print(f"{name:<20}FAILED {type(error).__name__}: {error}", flush=True)
    if failed:
        sys.exit(f"{len(failed)} failed: {', '.join(failed)}")
