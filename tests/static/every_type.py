"""Compiles for sm_90 what ops take beyond the types that they claim in the table; faults are printed.

`python -m tests.static.every_type`: each op in one such type of each kind, another from op to op, so that a kernel of many ops meets them all;
`python -m tests.static.every_type op ...`: these ops in each such type.
`--changed` leaves out what compiled from the same sources when the list beside this file was written, but for one in SAMPLE; `--update` writes it.
"""

from __future__ import annotations

import argparse
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path

import triton

import tritensor.kernels  # noqa: F401  (fills the table)
from bench.static import table as static_table
from bench.static.command import SAMPLE
from bench.static.launches import calls_of, corners_of, inputs_of
from tritensor.cuda.compiler import child_processes, cubin_cache
from tritensor.cuda.compiler.arguments import Specialization
from tritensor.cuda.compiler.kernel_report import report
from tritensor.cuda.runtime import active
from tritensor.cuda.virtual.recording_runtime import RecordingRuntime
from tritensor.ground import dtypes
from tritensor.ground.errors import DTypeError, LaunchError, ShapeError
from tritensor.ops.table import Op, registry

LIST = Path(__file__).with_name(f"every_type-triton-{static_table.minor(triton.__version__)}.txt")  # fingerprints, one a line
ARCH = 90
CALLS = 3  # samples of an op that are recorded in a type


def asked(op: Op, every: bool) -> Iterator[str]:
    """The types of an op that are compiled here."""
    kinds: dict[str, list[str]] = {}
    for d in dtypes.ALL:
        if d.triton is not None and d.name not in op.dtypes:
            kinds.setdefault(d.kind, []).append(d.name)
    for names in kinds.values():
        yield from names if every else [names[zlib.crc32(op.name.encode()) % len(names)]]


def taken(op: Op, dtype: str, recorder: RecordingRuntime) -> Iterator[Specialization]:
    """The kernels that an op launches in a type, none where it refuses it."""
    calls = [s for name, s in calls_of(op) if name.startswith("sample") and any(getattr(x, "dtype", None) == "float64" for x in s.inputs)]
    for sample in calls[-CALLS:]:
        recorder.launches.clear()
        try:
            op.shape(*inputs_of(op, sample, dtype), **sample.attrs)
            for _ in corners_of(op, sample, dtype):
                yield from recorder.launches
                recorder.launches.clear()
                if dtypes.as_dtype(dtype).kind == "float8":  # a storage type: its gradients are computed in another
                    break
        except (DTypeError, ShapeError, ValueError, OverflowError):
            continue


def recorded(ops: list[str]) -> dict[Specialization, str]:
    """The kernels that ops launch, each with the first (op, type) that does."""
    recorder = RecordingRuntime()
    active.use(recorder)
    found: dict[Specialization, str] = {}
    for op in registry.values():
        if op.forward is None or (ops and op.name not in ops):
            continue
        for dtype in asked(op, every=bool(ops)):
            for spec in taken(op, dtype, recorder):
                found.setdefault(spec, f"{op.name} {dtype}")
    return found


def compiled(spec: Specialization) -> str:
    """What is wrong with a kernel, in a line."""
    try:
        report(spec, ARCH)
    except LaunchError as error:
        return str(error).strip().splitlines()[-1]
    return ""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.static.every_type")
    parser.add_argument("ops", nargs="*")
    parser.add_argument("--changed", action="store_true")
    parser.add_argument("--update", action="store_true")
    given = parser.parse_args()
    found = recorded(given.ops)
    fingerprints = {spec: cubin_cache.keys(spec, ARCH)[0].hex()[:12] for spec in found}
    listed = LIST.read_text() if given.changed and LIST.exists() else ""
    known, seed = set(listed.split()), zlib.crc32(listed.encode())
    specs = [s for s, mark in fingerprints.items() if mark not in known or zlib.crc32(mark.encode(), seed) % SAMPLE == 0]
    faults = 0
    for n, said in child_processes.each(compiled, specs):
        if said:
            faults += 1
            print(f"{found[specs[n]]}: {said}", flush=True)
    print(f"{len(specs)} of {len(found)} kernels compiled, {faults} faults")
    if given.update and not faults:
        LIST.write_text("\n".join(sorted(set(fingerprints.values()))) + "\n")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
