"""`python -m bench gpu`: every op of the table on the GPU: time, share of the roofline measured in the same run, ratio to torch eager and compiled.

`python -m bench gpu --quick` fits in eight minutes. The report is written as it grows, so a run that is cut short loses nothing and
`--resume` goes on with it, behind a row that killed or hung the process; no failure stops the run, and the exit code is 1 when there was one. `--op softmax --plot` times some ops alone, at the
sizes of GPT-2, Llama-8B and ResNet-50 among others, and draws them. Every call is replayed from a CUDA graph ("ms") and made one after another
("eager_ms"), in medians; inputs take turns, so many sets that they do not fit the second-level cache.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from bench.gpu.clock import Ours, Torch
from bench.gpu.rows import cases, ordered
from bench.gpu.run import PARTS, PEERS, QUICK_SECONDS, Bench, DeviceGoneError, Plan
from bench.ops_asked import ops_asked
from bench.reports.pictures import drawing, written
from bench.reports.report import RESULTS, ROOT, Report, facts, lines, read_report, torch_installed
from tritensor.ops.table import Op
from tritensor.ops.table.op_selection import add_option
from tritensor.ops.tuning.tuned import slug


def plan(given: argparse.Namespace, ops: Sequence[Op]) -> Plan:
    """What the flags ask for."""
    found, untimed = [], {}
    for op in ordered(list(ops)):
        of_op = list(cases(op, given.quick))
        found += of_op
        if not of_op:
            untimed[op.name] = "a view: it moves no data and costs the host alone" if op.view else "its record has no sizes"
    if given.host:
        parts: tuple[str, ...] = ("host",)
    else:
        parts = ("roofline", "ops", "compile") if given.op else PARTS
    seconds = given.seconds or (QUICK_SECONDS if given.quick else None)
    return Plan(found, untimed, given.quick, seconds, parts, peers=given.against, named=bool(given.op))


def _against(text: str) -> tuple[str, ...]:
    """The value of --against. Raises argparse's error for a peer that is none."""
    names = tuple(n for n in text.split(",") if n and n != "none")
    strangers = [n for n in names if n not in PEERS]
    if strangers:
        raise argparse.ArgumentTypeError(f"{', '.join(strangers)}: no such peer; there are {', '.join(PEERS)}, and none")
    return names


def _positive(text: str) -> float:
    """The value of --seconds. Raises argparse's error for what is no time."""
    if not 0 < (seconds := float(text)) < float("inf"):
        raise argparse.ArgumentTypeError(f"{text}: seconds, more than 0")
    return seconds


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="python -m bench gpu", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_option(made)
    made.add_argument("--quick", action="store_true", help="the largest size of elementwise ops in float32 alone; eight minutes in all")
    peers = "torch (eager), compile (torch.compile), both, or none (default torch,compile)"
    made.add_argument("--against", type=_against, default=PEERS, metavar="PEERS", help=peers)
    made.add_argument("--host", action="store_true", help="the host cost of eager ops alone")
    made.add_argument("--seconds", type=_positive, help="time limit; what it leaves out is listed")
    made.add_argument("--out", type=Path, help="the report (default bench/results/<gpu>.json; with --op out/<gpu>.json)")
    made.add_argument("--resume", action="store_true", help="keep what the report holds and time the rest")
    made.add_argument("--no-warm", action="store_true", help="do not compile ahead")
    made.add_argument(
        "--plot", action="store_true", help="beside the report, a page of its rows (.md) and a picture (.png, needs matplotlib)"
    )
    made.add_argument(
        "--table", type=Path, metavar="FILE", help="print the tables of a report and time nothing; with --plot, write its page and picture"
    )
    return made


def compile_ahead(given: argparse.Namespace, arch: int) -> None:
    """Compile what will be launched, in one process per core; a failure there shows again, by name, when its row is timed."""
    asked = ["--op", *given.op] if given.op else []
    command = [sys.executable, "-m", "bench.gpu.warm", "--arch", str(arch), *(["--quick"] if given.quick else []), *asked]
    done = subprocess.run(command, env=os.environ | {"PYTHONPATH": str(ROOT)}, check=False)
    if done.returncode:
        print("compiling ahead failed in part; those kernels are compiled when they are launched", flush=True)


def peer_library(names: Sequence[str] = PEERS) -> Ours | None:
    """torch on the GPU: full float32 everywhere, the fastest of cuDNN's algorithms; None where none is asked for, torch is not installed or sees no GPU."""
    if not names:
        return None
    wanted = " and ".join({"torch": "torch", "compile": "torch.compile"}[n] for n in names)
    if not torch_installed():
        print(f"{wanted}: torch is not installed here, so rows have no ratio to {'it' if len(names) == 1 else 'them'}")
        return None
    import torch

    if not torch.cuda.is_available():
        print(f"{wanted}: torch {torch.__version__} sees no GPU, so rows have no ratio to {'it' if len(names) == 1 else 'them'}")
        return None
    import torch._functorch.config as functorch

    functorch.donated_buffer = False  # a compiled backward is called again and again with retain_graph=True
    torch.backends.cudnn.allow_tf32 = False  # float32 is float32, as in torch's own default for matrix products and in ours
    torch.backends.cudnn.benchmark = True
    return Torch(torch)


def why_not() -> str:
    """Why nothing can be timed on this machine; "" where there is a GPU."""
    from tritensor.cuda import availability
    from tritensor.cuda.runtime.active import emulated

    return "TRITON_INTERPRET=1 emulates it; unset it" if emulated() else availability.for_timing(availability.reason())


def main(argv: Sequence[str] | None = None) -> int:
    """Time, print, write; the exit code is 1 when anything failed, 2 where nothing can be timed, 3 when the GPU answers no more."""
    door = parser()
    given = door.parse_args(argv)
    if given.plot:
        drawing("bench gpu --plot")  # before anything is timed for a picture that cannot be drawn
    if given.table:
        content = read_report(given.table, "bench gpu --table")
        print("\n".join(lines(content) + (written(content, given.table) if given.plot else [])))
        return 0
    ops = ops_asked(door, given.op)
    why = why_not()
    if why:
        print(f"bench gpu needs a GPU: {why}. python -m bench static compiles kernels and predicts their time without one")
        return 2
    return timed(given, ops)


def timed(given: argparse.Namespace, ops: Sequence[Op]) -> int:
    """The run on the GPU that is there; the exit code."""
    from tritensor import cuda

    start = time.monotonic()
    properties = cuda.get_device_properties(0)
    major, minor = properties.capability
    if not (given.no_warm or given.host):  # the host's few ops are compiled while they are warmed up
        compile_ahead(given, 10 * major + minor)
    wanted = plan(given, ops)
    if wanted.seconds is not None:
        wanted = wanted._replace(seconds=wanted.seconds - (time.monotonic() - start))
    head = facts(properties, given.quick, sorted(op.name for op in ops) if given.op else "all")
    # A report of some ops must not take the place of the one that the README's table is made from.
    path = given.out or (ROOT / "out" if given.op else RESULTS) / f"{slug(properties.name)}.json"
    report = Report.resumed(path, head) if given.resume else Report(path, head)
    try:
        code = Bench(wanted, report, Ours(), peer_library(given.against), properties.l2_cache_size).run()
    except DeviceGoneError as error:
        print(f"bench gpu: {error}", file=sys.stderr)
        return 3
    print("\n".join(lines(report.content)))
    print("\n".join([f"written to {path}", *(written(report.content, path) if given.plot else [])]))
    return code


if __name__ == "__main__":
    sys.exit(main())
