"""`python -m tests.gpu.lease [--seconds 780] [--out FOLDER] [--resume LEDGER]`: all that a GPU can prove in some minutes, most worth first.

    doctor, smoke       does it work; every op once, forward and backward, beside numpy
    demos, host         two models train as on the CPU, eager and as graphs; what an eager op costs the host, beside torch
    bench quick         every op's time beside torch, torch.compile and the roofline
    suite ...           pytest -m gpu in shards: core, accuracy, walk, races, sizes
    bench all, tune     every size; configs of the five ops that lose most time against torch
    suite sanitizer     compute-sanitizer on every family of kernels

Each step runs in a process of its own for a time of its own; --seconds is a wall: ten seconds before it all is written, and what would not fit is left for
the next run. The folder holds at most seven files, each whole at any moment. --resume goes on with a ledger and the files beside it: what is done is not
done again. A ledger of another tree, driver or Triton: steps that pass or fail are asked again, and figures are kept, marked, until all else is done.
One of another GPU is refused.

First, where no GPU is: --pack compiles what the steps launch, most worth first, with the GPU machine's Triton; its Python may be another, since a kernel's
key is its source, its arguments, Triton and its settings. The pack tells the commit of a copy that has no history. Last: --collect takes the results home.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

_START = time.monotonic()

from tests.gpu.lease import identity, steps  # noqa: E402  (the clock comes first)
from tests.gpu.lease.child import adopt  # noqa: E402
from tests.gpu.lease.guard import Guard  # noqa: E402
from tests.gpu.lease.ledger import NAME, Ledger, LedgerError, of_this_gpu  # noqa: E402
from tests.gpu.lease.perform import Work, perform, write  # noqa: E402
from tests.gpu.lease.plan import carry_out  # noqa: E402
from tests.gpu.lease.table import table  # noqa: E402
from tritensor.io.atomic import remove_orphans  # noqa: E402
from tritensor.ops.tuning.tuned import slug  # noqa: E402

WALL = 10.0  # seconds before --seconds are over, when all is written
ENDING = 4.0  # seconds that it takes to end a step


class Stopped(BaseException):
    """The process was told to end."""


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="python -m tests.gpu.lease", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    made.add_argument("--seconds", type=float, default=780.0, help="all of the time that there is (default: %(default)s)")
    made.add_argument("--out", type=Path, help="folder of the results (default: $OUT, else out/lease)")
    made.add_argument("--resume", type=Path, metavar="LEDGER", help="go on with an earlier run, whose files lie beside its ledger")
    made.add_argument("--step", nargs="+", default=[], metavar="NAME", help="these steps alone")
    made.add_argument("--op", nargs="+", default=[], metavar="OP", help="these ops alone, in the steps that ask ops")
    made.add_argument("--processes", type=int, default=os.cpu_count() or 1, help="workers (default: one per core)")
    made.add_argument(
        "--pack", nargs="?", type=Path, const=Path(), metavar="FILE", help="compile ahead into this file (needs no GPU), and stop"
    )
    made.add_argument("--arch", type=int, default=90, help="with --pack: compute capability without its dot (default: %(default)s)")
    made.add_argument("--minutes", type=float, help="with --pack: stop compiling after so long; the same command goes on")
    made.add_argument("--collect", type=Path, metavar="FOLDER", help="take a run's results home, and stop")
    return made


def main(argv: Sequence[str] | None = None) -> int:
    """Run the plan: 0 where all passed, 1 where something failed or is left, 2 where nothing could be begun."""
    given = parser().parse_args(argv)
    try:
        if given.collect is not None:
            from tests.gpu.lease.collect import collect

            print("\n".join(collect(given.collect)))
            return 0
        if given.pack is not None:
            from tests.gpu.lease.pack import PACK, make

            return make(given.pack if given.pack.name else PACK, given.op, given.arch, given.processes, given.minutes)
        return lease(given)
    except (LedgerError, ValueError) as error:
        print(f"lease: {error}", file=sys.stderr)
        return 2


def lease(given: argparse.Namespace) -> int:
    """The run on this machine's GPU."""
    plan = steps.chosen(given.step, given.op)
    out = given.out or (Path(os.environ["OUT"]) if os.environ.get("OUT") else identity.ROOT / "out" / "lease")
    out.mkdir(parents=True, exist_ok=True)
    remove_orphans(out)
    with tempfile.TemporaryDirectory(prefix="lease-") as folder:
        scratch = Path(folder)
        pack, about = _unpacked(scratch)
        who = {"tree": identity.tree(), "commit": identity.commit(), "pack": about.get("said", "no pack: kernels are compiled here")}
        who["commit"] = who["commit"] or (about.get("commit", "") if about.get("tree") == who["tree"] else "")
        environment = identity.environment(pack, who["commit"])
        who |= identity.asked(environment)
        if pack is not None and about.get("tree") != who["tree"]:
            who["pack"] += ", of another tree: what changed is compiled"
        ledger = Ledger(out, who)
        if not who["gpu"]:
            if not ledger.path.exists():  # one of a run with a GPU is worth more
                ledger.write()
            print(f"lease: no GPU here: {who['why']}", file=sys.stderr)
            return 2
        if given.resume is not None:
            _resume(given.resume, ledger, out, scratch, slug(who["gpu"]))
        name = slug(who["gpu"])
        work = Work(scratch, out, ledger, environment, name, tuple(given.op), given.processes, steps.kept(name), started=_START)
        return carried_out(plan, work, given.seconds)


def carried_out(plan: Sequence[steps.Step], work: Work, seconds: float) -> int:
    """The plan, as far as so many seconds since the work's start go; then the table, whatever ended it."""
    adopt()
    guard = Guard()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, _stop)
    stopped = ""
    try:
        carry_out(
            plan,
            work.ledger,
            lambda: seconds - WALL - ENDING - (time.monotonic() - work.started),
            lambda step, most, limited: perform(step, most, limited, work, guard),
            lambda text: print(f"[{time.monotonic() - work.started:6.1f}] {text}", flush=True),
        )
    except Stopped as signalled:
        stopped = f"stopped by {signalled}"
    finally:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        guard.close()
    work.keep()
    work.ledger.write()
    open_steps = [s.name for s in plan if not work.ledger.entry(s.name).done]
    again = f"python -m tests.gpu.lease --resume {work.out / NAME}"
    notes = [*([stopped] if stopped else []), *([f"{len(open_steps)} steps are not done; go on: {again}"] if open_steps else [])]
    notes.append(f"take the results home: python -m tests.gpu.lease --collect {work.out}")
    text = table(work.ledger, plan, time.monotonic() - work.started, notes)
    write(work.out / "table.txt", f"{text}\n".encode())
    print(f"\n{text}", flush=True)
    return 1 if open_steps or any(work.ledger.entry(s.name).outcome != "passed" for s in plan) else 0


def _stop(number: int, frame: Any) -> None:
    raise Stopped(signal.Signals(number).name)


def _unpacked(scratch: Path) -> tuple[Path | None, dict[str, Any]]:
    """The pack that lies in the checkout, ready to be read, and what is known of it."""
    from tests.gpu.lease.pack import PACK, unpacked

    if not PACK.exists():
        return None, {}
    return unpacked(PACK, scratch / "lease.ttpack")


def _resume(path: Path, ledger: Ledger, out: Path, scratch: Path, name: str) -> None:
    """Take over a ledger and the files beside it."""
    before = of_this_gpu(path, ledger.identity["gpu"])
    same = ledger.go_on(before, [s.name for s in steps.STEPS if s.kind == "proof"])
    for inside, outside in steps.kept(name).items():
        source = path.parent / outside
        if source.exists():
            data = source.read_bytes()
            if inside == steps.REPORT and not same:
                write(out / f"older-{outside}", data)  # a report is of one tree: it is begun anew
            else:
                (scratch / inside).write_bytes(data)
    older = path.parent / f"older-{name}.json"
    if older.exists() and older.parent.resolve() != out.resolve():
        write(out / older.name, older.read_bytes())


if __name__ == "__main__":
    sys.exit(main())
