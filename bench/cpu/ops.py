"""Every op of the table on the CPU, forward and backward, at the sizes its record calls worth timing: time, GB/s, GFLOP/s.

`python -m bench ops --op softmax,conv*`: some ops alone. Sizes for GPUs (more than 512 MiB of inputs, more than 12 GFLOP) are left out and named at the
end. Each call is made on the same inputs again and again: what fits a cache is found there. `--out FILE` keeps the rows for `python -m bench compare`.
"""

from __future__ import annotations

import argparse
import functools
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from bench.cpu.timing import quartiles
from bench.gpu.clock import HostClock
from bench.gpu.rows import Case, caller, corners, drawn, prepare, types_of
from bench.gpu.sizes import shapes
from bench.ops_asked import ops_asked
from bench.reports.report import Report, circumstances, processor
from tritensor.ops.table import Op, Sample
from tritensor.ops.table.op_selection import add_option

SIDE = 1024  # of the square inputs of ops whose record names no sizes; a GPU's are 4096
CACHE = "every call is made on the same inputs"
LARGEST = 512 << 20  # bytes of inputs: the op table's sizes are for GPUs as well
MOST_FLOPS = 12e9  # of one call: some tenths of a second on a core


class OnCpu(HostClock):
    """tritensor on device cpu behind the door through which `bench gpu` knows a library, so that the same rows can be asked of it."""

    name = "tritensor"

    def __init__(self) -> None:
        import tritensor as tt

        self.t = tt
        self.device = tt.device("cpu")


def too_large(op: Op, sample: Sample, largest: int = LARGEST, flops: float = MOST_FLOPS) -> str:
    """Why a call is left to a GPU; "" where it is not. Looks at shapes alone: a sample that is drawn without values will do."""
    nbytes = sum(4 * x.size for x in sample.inputs if isinstance(x, np.ndarray))
    if nbytes > largest:
        return f"{nbytes >> 20} MiB of inputs are more than {largest >> 20}"
    work: Any = op.work(*sample.inputs, **sample.attrs) if op.work is not None else None
    if work is not None and work.flops > flops:
        return f"{work.flops / 1e9:.1f} GFLOP are more than {flops / 1e9:g}"
    return ""


def sized(ops: Iterable[Op]) -> tuple[list[Case], dict[str, str]]:
    """The calls of these ops on the CPU, in the first type that is timed; and by name what is left to a GPU, with the reason."""
    found: list[Case] = []
    left: dict[str, str] = {}
    for op in ops:
        dtype = types_of(op)[0]
        for i, shape in enumerate(shapes(op, dtype, SIDE, dry=True)):
            why = too_large(op, shape.sample)
            if why:
                left[f"{op.name} size{i}"] = why
                continue
            draw = functools.partial(drawn, op, dtype, SIDE, i)
            found += [c._replace(size=i) for c in corners(op, dtype, shape.sample, shape.largest, draw, shape.model)]
    return found, left


def row(lib: OnCpu, case: Case, seconds: float = 0.4) -> dict[str, Any]:
    """The figures of a case, in the fields of a GPU's report."""
    function = caller(lib, case)
    assert function is not None
    ready = prepare(lib, case, 0, function)
    median, spread = quartiles(ready.runs[0], seconds)
    return {
        "op": case.op.name, "corner": case.corner, "dtype": case.dtype, "shape": case.label, "bytes": ready.bytes, "flops": ready.flops,
        "ms": median * 1e3, "spread": round(spread, 3), "gbs": round(ready.bytes / median / 1e9, 3), "tflops": round(ready.flops / median / 1e12, 6),
    }  # fmt: skip


def line(r: dict[str, Any]) -> str:
    """One row: the op, its inputs, median time and spread, and the rates that the record's work gives."""
    text = f"{r['op']:<20}{r['corner'][:3]:<4}{r['dtype']:<9}{r['shape']:<60.59}{r['ms']:>10.3f} ms{100 * r['spread']:>5.0f} %{r['gbs']:>9.2f} GB/s"
    return text + (f"{r['tflops'] * 1e3:>9.2f} GFLOP/s" if r["flops"] else "")


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="python -m bench ops", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_option(made)
    made.add_argument("--out", type=Path, help="a file for the rows, as JSON")
    made.add_argument("--seconds", type=float, default=0.4, help="for each row (default 0.4)")
    made.add_argument("--peer", action="store_true", help="another table: every function beside torch (--peer --help)")
    return made


def main(arguments: list[str]) -> int:
    """Print the rows; the exit code is 1 when an op failed, 2 when there is none of that name."""
    if "--peer" in arguments:
        from bench.cpu import million

        million.main(arguments)
        return 0
    door = parser()
    given = door.parse_args(arguments)
    ops = sorted(ops_asked(door, given.op), key=lambda op: op.name)
    cases, left = sized(ops)
    print(f"{len(ops)} ops on the CPU, {processor()}: {len(cases)} calls; {len(left)} sizes are left to a GPU")
    head = {"cpu": processor(), **circumstances("cpu", [op.name for op in ops] if given.op else "all", CACHE)}
    report = Report(given.out, head) if given.out else None
    lib, failed = OnCpu(), []
    for case in cases:
        try:
            found = row(lib, case, given.seconds)
        except Exception as error:  # one op that fails must not cost the rest of a long run
            failed.append(case.key)
            print(f"{case.key} FAILED {type(error).__name__}: {error}", flush=True)
            if report:
                report.fail(case.key, error)
            continue
        print(line(found), flush=True)
        if report:
            report.put("rows", case.key, found)
    for name, why in left.items():
        print(f"left to a GPU: {name}: {why}")
        if report:
            report.leave(name, why)
    if report:
        report.save()
        print(f"written to {given.out}")
    if failed:
        print(f"{len(failed)} failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
