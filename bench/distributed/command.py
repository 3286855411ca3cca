"""`python -m bench distributed`: processes over MPI beside torch on gloo: all_reduce, data-parallel steps, and a model of many ranks.

Both libraries' ranks are there all the time, in processes of their own, and are asked in turn, in rounds: a figure is the median of the
rounds, a ratio the median of the rounds' ratios. Rounds count in which others used the machine least (`others`: the cores that they kept
busy in the worst of those). mpi4py is timed in the processes and on the memory of ours. A round takes the slowest
rank's seconds of a call, of many calls one after the other. Where there are more ranks than cores, the figures are of ranks that wait for
one another's turn on a core.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import itertools
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bench.cpu.timing import quartiles
from bench.distributed.groups import Group
from bench.distributed.prediction import lines, picture, predicted
from bench.distributed.quiet import Counted, Side, quietest
from bench.distributed.rank import BATCH
from bench.distributed.timeline import bars, hidden
from bench.reports.pictures import drawing
from bench.reports.report import command_line, commit, processor, versions

RANKS = (1, 2, 4)
SIZES = (4, 1 << 12, 1 << 16, 1 << 18, 1 << 20, 1 << 22, 1 << 24)
QUICK_SIZES = (4, 1 << 16, 1 << 20, 1 << 24)
WARM = 70  # calls before the first that counts: the first 64 of a group are checked
SIDES = ("sync", "async", "mpi4py", "gloo")
RATIOS = {"sync / mpi4py": ("sync", "mpi4py"), "async / mpi4py": ("async", "mpi4py"), "gloo / sync": ("gloo", "sync")}
SHARDED = ("ZeRO-1", "fully_shard")
REST = 0.02  # seconds before a group's turn

Groups = Mapping[tuple[str, int], Group]


def all_reduce(groups: Groups, ranks: int, nbytes: int, rounds: int, seconds: float, patience: float) -> dict[str, Any]:
    """Seconds of an all_reduce of each side, and the ratios that are to be reached; `seconds` is about what a side takes in a round."""
    ours, gloo = groups["tritensor", ranks], groups.get(("torch", ranks))
    sides = {"sync": (ours, "sync"), "async": (ours, "async"), "mpi4py": (ours, "mpi4py")} | ({"gloo": (gloo, "sync")} if gloo else {})
    calls = {}
    for name, (group, side) in sides.items():
        group.ask("all_reduce", side=side, nbytes=nbytes, calls=WARM if nbytes < 1 << 20 else 5)
        each = max(group.ask("all_reduce", side=side, nbytes=nbytes, calls=3))
        calls[name] = min(1000, max(3, int(seconds / each)))

    asks = {name: asking(group, "all_reduce", side=side, nbytes=nbytes, calls=calls[name]) for name, (group, side) in sides.items()}
    found, others = in_turns(asks, groups, rounds, patience)
    medians = {name: statistics.median(s) for name, s in found.items()}
    row = {"ranks": ranks, "nbytes": nbytes, "seconds": medians, "calls": calls, "others": others}
    return row | {"ratios": {name: ratio(found[a], found[b]) for name, (a, b) in RATIOS.items() if a in found and b in found}}


def working(groups: Groups) -> float:
    """Seconds for which cores have worked for this process and for all ranks."""
    return time.process_time() + sum(sum(group.ask("working")) for group in groups.values())


def turned(names: list[Any], i: int) -> list[Any]:
    """In another order in each round, so that nobody always comes after the same."""
    names = names[i % len(names) :] + names[: i % len(names)]
    return names[::-1] if i % 2 else names


def asking(group: Group, what: str, **given: Any) -> Callable[[], float]:
    """A question to a group, whose answer is the slowest rank's."""
    return lambda: max(group.ask(what, **given))


def in_turns(asks: Mapping[Side, Callable[[], float]], groups: Groups, rounds: int, patience: float) -> Counted:
    """Seconds of each side in the quietest rounds; in each all sides are asked, one after the other."""

    def one(i: int) -> dict[Side, float]:
        taken = {}
        for side in turned(list(asks), i):
            time.sleep(REST)
            taken[side] = asks[side]()
        return taken

    return quietest(one, rounds, lambda: working(groups), patience)


def ratio(a: Sequence[float], b: Sequence[float]) -> float:
    """The median of the rounds' ratios."""
    return statistics.median(x / y for x, y in zip(a, b, strict=True))


def steps(groups: Groups, rounds: int, calls: int, patience: float) -> list[dict[str, Any]]:
    """Seconds of a training step of each group, with gradients averaged and without, and the ratio of torch's to ours."""
    asks = {(key, averaged): asking(groups[key], "step", averaged=averaged, calls=calls) for key in groups for averaged in (True, False)}
    for group in groups.values():
        group.ask("step", averaged=True, calls=WARM // 2)
    found, others = in_turns(asks, groups, rounds, patience)
    rows = []
    for ranks in sorted({ranks for _, ranks in groups}):
        row: dict[str, Any] = {"ranks": ranks, "others": others}
        for library in ("tritensor", "torch"):
            if (library, ranks) in groups:
                row[library] = {
                    "step": statistics.median(found[(library, ranks), True]),
                    "without_averages": statistics.median(found[(library, ranks), False]),
                }
        if "torch" in row:
            row["torch / tritensor"] = ratio(found[("torch", ranks), True], found[("tritensor", ranks), True])
        rows.append(row)
    return rows


def sharded(groups: Groups, rounds: int, calls: int, patience: float) -> list[dict[str, Any]]:
    """Seconds of a step of models that are cut over the ranks, of each way to cut on each number of ranks, and the ratio of torch's to ours."""
    rows: list[dict[str, Any]] = []
    for ranks, kind in itertools.product(sorted({n for _, n in groups if n > 1}), SHARDED):
        sides = {library: groups[library, ranks] for library in ("tritensor", "torch") if (library, ranks) in groups}
        for group in sides.values():
            group.ask("sharded", kind=kind, calls=WARM // 2)
        asks = {library: asking(group, "sharded", kind=kind, calls=calls) for library, group in sides.items()}
        found, others = in_turns(asks, groups, rounds, patience)
        rows.append({"ranks": ranks, "kind": kind, "seconds": {n: statistics.median(s) for n, s in found.items()}, "others": others})
        if "torch" in found:
            rows[-1]["torch / tritensor"] = ratio(found["torch"], found["tritensor"])
    return rows


def size(nbytes: int) -> str:
    """4 B, 64 KiB, 16 MiB."""
    for unit, name in ((1 << 20, "MiB"), (1 << 10, "KiB")):
        if nbytes >= unit:
            return f"{nbytes / unit:g} {name}"
    return f"{nbytes} B"


def all_reduce_lines(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """The table of all_reduce; microseconds."""
    head = f"{'ranks':>5} {'size':>8}" + "".join(f"{n:>11}" for n in SIDES) + "".join(f"{n:>17}" for n in RATIOS) + f"{'others':>9}"
    made = ["all_reduce of float32 in place, us", head]
    for row in rows:
        seconds, ratios = row["seconds"], row["ratios"]
        line = f"{row['ranks']:>5} {size(row['nbytes']):>8}"
        line += "".join(f"{1e6 * seconds[n]:>11.1f}" if n in seconds else f"{'-':>11}" for n in SIDES)
        line += "".join(f"{ratios[n]:>17.2f}" if n in ratios else f"{'-':>17}" for n in RATIOS)
        made.append(f"{line}{row['others']:>9.2f}")
    return made


def step_lines(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """The table of steps; milliseconds."""
    made = [f"DistributedDataParallel, MLP 784-512-512-10, batch {BATCH} a rank, SGD with momentum: ms a step (without averages)"]
    made.append(f"{'ranks':>5}{'tritensor':>20}{'torch':>20}{'torch / tritensor':>20}{'others':>9}")
    for row in rows:
        line = f"{row['ranks']:>5}"
        for library in ("tritensor", "torch"):
            found = row.get(library)
            line += f"{1e3 * found['step']:>11.2f} ({1e3 * found['without_averages']:6.2f})" if found else f"{'-':>20}"
        line += f"{row['torch / tritensor']:>20.2f}" if "torch" in row else f"{'-':>20}"
        made.append(f"{line}{row['others']:>9.2f}")
    return made


def sharded_lines(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """The table of steps of cut models; milliseconds."""
    made = [
        f"the same model with AdamW, cut over the ranks: ms a step\n{'ranks':>5} {'':<14}{'tritensor':>10}{'torch':>10}{'torch / tritensor':>20}{'others':>9}"
    ]
    for row in rows:
        seconds = [f"{1e3 * row['seconds'][n]:.2f}" if n in row["seconds"] else "-" for n in ("tritensor", "torch")]
        times = f"{row['torch / tritensor']:.2f}" if "torch / tritensor" in row else "-"
        made.append(f"{row['ranks']:>5} {row['kind']:<14}{seconds[0]:>10}{seconds[1]:>10}{times:>20}{row['others']:>9.2f}")
    return made


def timeline_lines(ranks: int, seen: Mapping[str, Any]) -> list[str]:
    """The bars of a backward, and what it hides."""
    buckets = seen["buckets"]
    beside, total = hidden(buckets)
    made = [f"backward on {ranks} ranks, as rank 0 saw it: . gradients come, = averaged meanwhile, # averaged while backward waits"]
    made += bars(buckets)
    return [*made, f"  a step of {1e3 * seen['step']:.2f} ms; of {1e3 * total:.2f} ms of averaging backward hides {1e3 * beside:.2f}"]


def peer_of(asked: str | None) -> tuple[str, str] | None:
    """(a Python that has torch, torch's version); None where none is asked for and this one has not. Exit code 2 where that one has not."""
    if asked is None and importlib.util.find_spec("torch") is None:
        return None
    python = asked or sys.executable
    try:
        done = subprocess.run([python, "-c", "import torch; print(torch.__version__)"], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        print(
            f"bench distributed: --peer {python} cannot import torch ({error}); give the Python of an environment that has it",
            file=sys.stderr,
        )
        raise SystemExit(2) from error
    return python, done.stdout.strip()


def sums(nbytes: int = 1 << 24) -> float:
    """Bytes a second of float32 that a core adds to others in place."""
    a, b = np.ones(nbytes // 4, np.float32), np.ones(nbytes // 4, np.float32)
    return nbytes / quartiles(lambda: np.add(a, b, out=b), 0.1)[0]


def measured(quick: bool, peer: tuple[str, str] | None, patience: float) -> dict[str, Any]:
    """The report: everything that is timed, printed as it comes."""
    cores = len(os.sched_getaffinity(0))
    report: dict[str, Any] = {
        "date": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()), "mode": "quick" if quick else "full", "command": command_line(),
        "commit": commit(), "versions": versions("mpi4py", "mpich") | {"torch": peer[1] if peer else "no peer"},
        "processor": processor(), "cores": cores,
        "threads": int(os.environ["OMP_NUM_THREADS"]), "all_reduce": [], "sums": sums(),
    }  # fmt: skip
    print(f"{report['processor']}, {cores} cores, {report['threads']} thread a rank; torch: {report['versions']['torch']}")
    rounds = 3 if quick else 15
    with contextlib.ExitStack() as stack:
        wanted = [("tritensor", n, sys.executable) for n in RANKS] + [("torch", n, peer[0]) for n in RANKS if peer]
        groups = {(library, n): stack.enter_context(Group(library, n, python)) for library, n, python in wanted}
        for n in RANKS[1:]:
            for nbytes in QUICK_SIZES if quick else SIZES:
                report["all_reduce"].append(all_reduce(groups, n, nbytes, rounds, 0.03 if quick else 0.1, patience))
        print("\n".join(all_reduce_lines(report["all_reduce"])), flush=True)
        report["steps"] = steps(groups, rounds, 10 if quick else 30, patience)
        print("\n".join(step_lines(report["steps"])), flush=True)
        report["sharded"] = sharded(groups, rounds, 5 if quick else 20, patience)
        print("\n".join(sharded_lines(report["sharded"])), flush=True)
        report["timeline"] = {str(n): groups["tritensor", n].ask("timeline", calls=11 if quick else 51)[0] for n in RANKS}
    for n in RANKS[1:]:
        print("\n".join(timeline_lines(n, report["timeline"][str(n)])))
    return report


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench distributed", description=__doc__)
    parser.add_argument(
        "--peer", metavar="PYTHON", help="a Python that has torch (default: this one, where torch is installed; else no peer)"
    )
    parser.add_argument("--quick", action="store_true", help="fewer sizes and rounds; under a minute")
    parser.add_argument(
        "--patience", type=float, default=0.0, metavar="S", help="how long each row waits for rounds in which others are quiet"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures there")
    parser.add_argument(
        "--plot", type=Path, metavar="FILE", help="draw the model over the number of ranks (.svg or .png; needs matplotlib)"
    )
    parser.add_argument("--report", type=Path, metavar="FILE", help="the model of figures that --json wrote; times nothing")
    args = parser.parse_args(argv)
    if args.plot:
        drawing("bench distributed --plot")  # before anything is timed for a picture that cannot be drawn
    report = json.loads(args.report.read_text()) if args.report else measured(args.quick, peer_of(args.peer), args.patience)
    made = predicted(report)
    print("\n".join(lines(report, made)))
    if args.plot:
        picture(report, made, args.plot)
    if args.json:
        args.json.write_text(json.dumps(report | {"model": made.as_json()}, indent=1) + "\n")
    return 0
