"""The command `tritensor tune`: finds the configs that a GPU runs fastest with, writes them to its tuned file; --dry-run ranks them by prediction."""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tritensor.cuda import availability
from tritensor.cuda.compiler import precompile
from tritensor.cuda.runtime import active
from tritensor.cuda.virtual.virtual_gpu import VirtualGPU
from tritensor.ground import dtypes
from tritensor.ground.errors import DTypeError, PluginError
from tritensor.io.atomic import atomic_write
from tritensor.ops.table import Op
from tritensor.ops.table.op_selection import UnknownOpError, add_option, select_ops
from tritensor.ops.tuning import tuned
from tritensor.ops.tuning.search import kernel_file, pruning
from tritensor.ops.tuning.search.halving import Found, halve
from tritensor.ops.tuning.search.journal import FullDiskError, Journal, JournalError, full
from tritensor.ops.tuning.search.plan import Listed, Planned, launches_in, listed, planned, written
from tritensor.ops.tuning.search.targets import ShapesError, read_shapes
from tritensor.ops.tuning.search.worker import GPU, Job, Worker, files_of
from tritensor.ops.tuning.tuned import Entry, TunedFileError
from tritensor.tools.dry_run import Shapes
from tritensor.utils.progress import Bar

TYPES = ("float32", "bfloat16")
NOISE = 1.02  # the least gain that is kept: two times of one config differ by as much
MOST = 16  # configs of a target that are timed, those first that are predicted fastest
FEW = 5  # configs of a target beside the heuristic where all ops are tuned: then a dry run of two cores stays below twenty minutes
SHOWN = 12  # targets up to which a dry run prints every config


class Usage(Exception):
    """What the command line asks for cannot be had; the message says why and what to do."""


REFUSALS = (Usage, UnknownOpError, PluginError, ShapesError, DTypeError, JournalError, TunedFileError, kernel_file.KernelFileError)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `tritensor tune`."""
    add_option(parser)
    parser.add_argument(
        "--kernel",
        metavar="FILE.py:KERNEL",
        help="a kernel of your own in place of ops: its @triton.autotune configs, or `configs` of the file, on `shapes` of the file or --shapes",
    )
    parser.add_argument("--shapes", type=Path, metavar="FILE", help="calls to tune at, as JSON, in place of the ops' own timed sizes")
    parser.add_argument(
        "--dtype",
        nargs="+",
        action="extend",
        default=[],
        metavar="TYPE",
        help=f"element types (default: {', '.join(TYPES)}; with neither --op nor --shapes elementwise ops in {TYPES[0]} alone)",
    )
    parser.add_argument(
        "--budget", type=float, metavar="MINUTES", help="stop after so long, what has most to win first (default: no limit)"
    )
    parser.add_argument(
        "--out", type=Path, metavar="FILE", help="file to write or to add to (default: the GPU's own, kernels/tuned/<gpu>.json)"
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="compile, prune and rank by prediction; times nothing, needs no GPU, writes nothing"
    )
    parser.add_argument("--arch", default="90", metavar="SM", help="what a dry run compiles for (default: %(default)s)")
    parser.add_argument(
        "--configs",
        type=int,
        metavar="N",
        help=f"most configs of a target beside the heuristic's (default: all; {FEW} with neither --op nor --shapes)",
    )
    parser.add_argument("--jobs", type=int, metavar="N", help="compilers at a time (default: one per core)")
    parser.add_argument("--timeout", type=float, default=60.0, metavar="SECONDS", help="how long a config may take (default: %(default)s)")


def main(argv: Sequence[str], parser: argparse.ArgumentParser) -> int:
    """Tune as asked; 0 done, 1 something failed, 2 nothing could be begun."""
    add_arguments(parser)
    try:
        return _run(parser.parse_args(argv))
    except REFUSALS as error:
        print(f"tritensor tune: {error}", file=sys.stderr)
        return 2
    except FullDiskError as error:
        print(f"tritensor tune: {error}", file=sys.stderr)
        return 1


def _run(args: argparse.Namespace, work: Any = None) -> int:
    _check(args)
    shapes = read_shapes(args.shapes) if args.shapes is not None and args.kernel is None else None
    ops = [] if args.kernel else _ops(args.op or list(shapes or ()))
    if shapes is not None and args.op and not any(op.name in shapes for op in ops):
        raise Usage(f"--shapes {args.shapes}: has no call of {', '.join(op.name for op in ops)}; it has calls of {', '.join(shapes)}")
    journal: Journal | None = None
    worker = None if args.dry_run else Worker(args.timeout, **({"work": work} if work is not None else {}))
    try:
        # The worker says what it is: this process never opens the GPU, which a config may hang.
        on = _gpu(worker) if worker is not None else GPU("", precompile.archs(args.arch)[0], 0)
        journal, out = _open_journal(args, on) if worker is not None else (None, Path())
        active.use(VirtualGPU(on.capability))  # what follows in this process launches nothing
        if args.kernel:
            targets, failures = kernel_file.listed(args.kernel, args.shapes), list[str]()
        else:
            bar = Bar("listing configs", "ops", len(ops))
            targets, failures = listed(ops, shapes, _types(args), Shapes(), _configs(args), lambda name: bar.step(name))
            bar.close()
        if not targets:
            for line in failures:
                print(f"tritensor tune: {line}", file=sys.stderr)
            if failures:
                return 2
            raise Usage(
                "nothing to tune: "
                + (f"no kernel of {', '.join(o.name for o in ops[:5])} takes a config at a timed size" if ops else "no call")
                + "; --shapes names calls"
            )
        plans = _compile_all(targets, on.capability, args.jobs)
        if worker is None:
            _print_ranking(plans, on.capability)
        else:
            assert journal is not None
            failures += _measure(args, plans, worker, journal, out, on, shapes)
    finally:
        if journal is not None:
            journal.close()
        if worker is not None:
            worker.close()
    for line in failures:
        print(f"tritensor tune: {line}", file=sys.stderr)
    return 1 if failures else 0


def _check(args: argparse.Namespace) -> None:
    if active.emulated():
        raise Usage("TRITON_INTERPRET is set, so kernels are interpreted and have no speed; unset it for this command")
    if args.budget is not None and not args.budget > 0:
        raise Usage(f"--budget {args.budget:g}: minutes, more than 0")
    if args.jobs is not None and args.jobs < 1:
        raise Usage(f"--jobs {args.jobs}: at least 1")
    if args.configs is not None and args.configs < 1:
        raise Usage(f"--configs {args.configs}: at least 1")
    if args.dry_run and args.out is not None:
        raise Usage("--out with --dry-run: a prediction is no measurement, so there is nothing to write; drop one of them")
    if args.kernel and args.op:
        raise Usage("--kernel and --op exclude each other: a kernel of a file belongs to no op; run the command twice")
    try:
        precompile.archs(args.arch)
    except ValueError as error:
        raise Usage(f"--arch: {error}") from None


def _ops(words: Sequence[str]) -> list[Op]:
    try:
        return select_ops(words)
    except (UnknownOpError, PluginError):
        raise
    except Exception as error:  # whatever a file of ops raises when it is run
        raise Usage(f"--op {' '.join(words)}: the file raises when run: {type(error).__name__}: {' '.join(str(error).split())}") from error


def _types(args: argparse.Namespace) -> Callable[[Op], Sequence[str]]:
    """The types to tune an op in. Of all ops at once, elementwise ones are tuned in the first alone: they are hundreds and share a kernel, so that
    in both they would take as long as all the others."""
    asked = [dtypes.as_dtype(t).name for t in args.dtype]
    everything = not (args.op or args.shapes or asked)
    return lambda op: asked or (TYPES[:1] if everything and op.broadcasts else TYPES)


def _configs(args: argparse.Namespace) -> int | None:
    """The most configs of a target beside the heuristic's; None for all."""
    return args.configs or (None if args.op or args.shapes else FEW)


def _gpu(worker: Worker) -> GPU:
    try:
        return worker.gpu()
    except RuntimeError as error:
        raise Usage(
            f"no GPU to time on ({availability.for_timing(str(error))}); --dry-run ranks configs by prediction without one"
        ) from None


def _open_journal(args: argparse.Namespace, on: GPU) -> tuple[Journal, Path]:
    """The journal, and the file that will be written. What stands there already must be a tuned file of this GPU."""
    import triton

    here = tuned.slug(on.name)
    default = tuned.FOLDER / f"{here}.json" if not args.kernel else Path(f"{args.kernel.rpartition(':')[2]}-{here}.json")
    out = args.out or default
    if out.is_dir():
        raise Usage(f"--out {out}: is a folder; give the name of a file in it")
    if out.exists():
        header, _ = tuned.read(out)
        if tuned.slug(header.gpu) != here:
            raise Usage(f"--out {out}: made on {header.gpu}, and this GPU is {on.name}; give another name")
    journal = Journal(out.with_name(out.name + ".journal"), {"gpu": on.name, "triton": triton.__version__})
    if journal.damaged:
        print(f"{journal.path}: {journal.damaged} damaged lines are left out; what they held is measured anew", file=sys.stderr)
    return journal, out


def _compile_all(targets: Sequence[Listed], arch: int, jobs: int | None) -> list[Planned]:
    calls = launches_in(targets)
    bar = Bar(f"compiling {sum(len(t.configs) for t in targets)} configs of {len(targets)} targets for sm_{arch}", "launches", len(calls))
    try:
        return planned(targets, pruning.compiled(calls, arch, jobs, done=bar.step))
    finally:
        bar.close()


# Without a GPU
def _print_ranking(plans: Sequence[Planned], arch: int) -> None:
    """The configs of each target by predicted time, and how much slower the heuristic's is than the best."""
    for plan in plans:
        order = sorted(
            (v for v in plan.verdicts if not v.dropped or v is plan.verdicts[0]), key=lambda v: v.us if v.us is not None else float("inf")
        )
        place = 1 + next(i for i, v in enumerate(order) if v is plan.verdicts[0])
        print(f"{plan.target.name}: heuristic is {place} of {len(order)}{_times(plan)}")
        for v in order if len(plans) <= SHOWN else order[:1] if place > 1 else []:
            us = "not predicted" if v.us is None else f"{v.us:9.2f} us, limited by {v.limit}"
            print(f"    {us}  {written(v.config)}{'  (heuristic)' if v is plan.verdicts[0] else ''}")
        for v in plan.verdicts if len(plans) <= SHOWN else ():
            if v.dropped:
                print(f"    not timed  {written(v.config)}: {v.dropped}")
    _print_regret([p.regret for p in plans if p.regret is not None], f"predicted for sm_{arch}")


def _times(plan: Planned) -> str:
    return "" if plan.regret is None else f", predicted {100 * plan.regret:.0f} % slower than the best"


def _print_regret(found: Sequence[float], how: str) -> None:
    if found:
        print(
            f"regret of the heuristic, {how}, over {len(found)} targets: median {100 * statistics.median(found):.1f} %, worst {100 * max(found):.1f} %"
        )
    else:
        print(f"regret of the heuristic: nothing was {how.split()[0]}")


# On a GPU
def _measure(
    args: argparse.Namespace,
    plans: Sequence[Planned],
    worker: Worker,
    journal: Journal,
    out: Path,
    on: GPU,
    shapes: dict[str, list[Any]] | None,
) -> list[str]:
    """Time what is left of each target, write the tuned file, say what was found; returns a line for each failure."""
    files = files_of(args.op)
    end = None if args.budget is None else time.monotonic() + 60 * args.budget
    bar = Bar(f"timing on {on.name}", "targets", len(plans))
    won: dict[tuned.Place, Found] = {}
    failures: list[str] = []
    notes: list[str] = []
    left, most = 0, ""
    try:
        for plan in plans:
            if end is not None and time.monotonic() > end:
                left += 1
                continue
            target = plan.target
            own = kernel_file.job(args.kernel, args.shapes, target) if args.kernel else None
            worker.take(own or Job(files, target.place, target.dtype, target.number, shapes))
            result = halve(target.heuristic, plan.timed(MOST), _make_timer(worker, journal, plan))
            if isinstance(result, str):
                failures.append(f"{plan.target.name}: the heuristic's own config failed: {result}")
            else:
                won[plan.target.place] = result
                notes += [f"{plan.target.name}: {written(config)}: {why}" for config, why in result.failed]
                if result.gain > max((f.gain for p, f in won.items() if p != plan.target.place), default=1.0):
                    most = f"best so far {result.gain:.2f}x: {plan.target.place.op} {plan.target.place.bucket}"
            bar.step(most)
    finally:
        bar.close()
        kept = _write(out, on, won)
    for line in notes:  # that a config crashes or hangs is a finding, no failure: it is not taken
        print(f"not usable: {line}")
    _print_found(won, kept, left, out, bool(args.kernel))
    return failures


def _make_timer(worker: Worker, journal: Journal, plan: Planned) -> Any:
    """Time a config, or read from the journal what it took."""

    def measure(config: Any, round: int, seconds: float) -> float | str:
        name, code = written(config), plan.code(config)
        known = journal.get(plan.target.name, name, round, code)  # by the code too: a kernel that was edited is timed anew
        if known is None:
            fields = None if config == plan.target.heuristic else tuned.fields_of(config)
            known = worker.time(fields, seconds)
            journal.put(plan.target.name, name, round, known, code)
        return known

    return measure


def _write(out: Path, on: GPU, won: dict[tuned.Place, Found]) -> int:
    """Put what gains more than noise into the tuned file, in place of what stood there for the same; how many entries that is."""
    entries = tuned.read(out)[1] if out.exists() else {}
    for place in won:
        entries.pop(place, None)  # also where nothing gains now: the old winner was of another kernel or compiler
    kept = {p: Entry(tuned.fields_of(f.config), f.us, f.gain) for p, f in won.items() if f.gain >= NOISE}
    entries |= kept
    if entries or out.exists():
        try:
            with atomic_write(out) as file:
                file.write(tuned.written(tuned.header_now(on.name), entries).encode())
        except OSError as error:
            raise full(out, error) from None
    return len(kept)


def _print_found(won: dict[tuned.Place, Found], kept: int, left: int, out: Path, own: bool) -> None:
    for place, f in sorted(won.items()):
        print(
            f"{place}: {written(f.config)}, {f.us:.2f} us, {f.gain:.3f}x the {'first config' if own else 'heuristic'}, of {f.timed} timed"
        )
    _print_regret([f.gain - 1 for f in won.values()], "measured")
    if left:
        print(f"--budget is spent: {left} targets were not timed; the same command goes on with them")
    print(
        f"{out}: {kept} entries that gain {100 * (NOISE - 1):.0f} % or more; all times are in {out.name}.journal, remove it to measure anew"
    )
    if not own and out.parent.resolve() != tuned.FOLDER.resolve():
        print(f"use it: {tuned.VARIABLE}={os.fspath(out)}")
