"""The README's figures of the CPU and the host, all of one run: `python -m bench readme [--write]`."""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from bench.distributed.quiet import QUIET, busy
from bench.reports.readme_table import put
from bench.reports.report import ROOT, commit, processor, versions
from bench.small.actions import ACTIONS
from bench.small.command import WORKLOADS
from bench.small.sequence import SEQUENCE, TOGETHER

BEGIN, END = "<!-- python -m bench readme: begin -->", "<!-- python -m bench readme: end -->"
# Lines of `bench host`, `bench small` and `bench train` that the README shows, with its words for them.
ON_DEVICE = {
    "cuLaunchKernelEx by cuda-python (the floor)": "`cuLaunchKernelEx` by cuda-python (the floor)",
    "replay: block, launch, array": "replay of a recorded call: block, launch, array",
    "x + y, gradient recorded": "`x + y`",
    "x.sum(), gradient recorded": "`x.sum()`",
    "x.mm(y.t()), gradient recorded": "`x.mm(y.t())`",
    "x.mul_(0.5), in place": "`x.mul_(0.5)`, in place",
    "Dropout, gradient recorded": "`Dropout`",
    "chain of 100 ops, forward and backward": "chain of 100 ops, forward and backward: 301 launches",
}
ON_CPU = {
    "x + y": "`x + y`",
    "x.sum()": "`x.sum()`",
    "m @ m, 8 x 8": "a product of 8 x 8 matrices",
    "x.reshape(3, 4)": "`reshape`",
    "x.transpose(0, 1)": "`transpose`",
    "x[1:3]": "a slice",
    "chain of 100 ops, forward and backward": "chain of 100 ops, forward and backward",
    "geometric mean of these eleven": "geometric mean of eleven such calls",
    TOGETHER: f"{len(SEQUENCE)} different calls one after another, as a program makes them",
    "geometric mean of the actions": f"geometric mean of {len(ACTIONS)} calls of small programs",
    "geometric mean of the workloads": f"geometric mean of {len(WORKLOADS)} programs of small ops",
}
STEPS = {
    "LeNet 28x28, 64 images, SGD with momentum": "LeNet, 64 images of 28 x 28, SGD with momentum",
    "MLP 784-512-512-10, 64 rows, SGD with momentum": "MLP 784-512-512-10, 64 rows, SGD with momentum",
    "MLP 784-512-512-10, 64 rows, Adam": "the same with Adam",
    "GPT 4x128, 8 texts of 128, Adam": "GPT of 4 blocks of width 128, 8 texts of 128, Adam",
    "LSTM 2x256, 32 texts of 64, Adam": "LSTM of 2 layers of 256, 32 texts of 64, Adam",
    "ResNet-18 32x32, 16 images, SGD with momentum": "ResNet-18, 16 images of 32 x 32, SGD with momentum",
}
_LINE = re.compile(r"^(.+?)\s+([\d.]+) (us|ms)(?:\s+([\d.]+) \3\s+([\d.]+) x torch)?$")
_MEAN = re.compile(r"^(geometric mean of .+?)\s+([\d.]+) x torch$")
_IMPORT = re.compile(r"^(import .+?)\s+([\d.]+) ms\s+([\d.]+) x$")


class Row(NamedTuple):
    """A line that a benchmark printed: our time and torch's in its unit, their ratio; what it does not say is None."""

    ours: float | None
    peer: float | None
    ratio: float | None
    unit: str


def rows(output: str) -> dict[str, Row]:
    """The lines of a benchmark's output that tell times, by label."""
    found: dict[str, Row] = {}
    for text in output.splitlines():
        if m := _MEAN.match(text):
            found[m[1]] = Row(None, None, float(m[2]), "")
        elif m := _IMPORT.match(text):
            found[m[1]] = Row(float(m[2]), None, float(m[3]), "ms")
        elif m := _LINE.match(text):
            found[m[1]] = Row(float(m[2]), float(m[4]) if m[4] else None, float(m[5]) if m[5] else None, m[3])
    return found


def run(*words: str) -> str:
    """What `python -m bench ...` prints, shown as it comes. Raises SystemExit where it fails."""
    command = [sys.executable, "-m", "bench", *words]
    print("$ python -m bench", *words, file=sys.stderr, flush=True)
    said = ""
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        for text in running.stdout:
            print(text, end="", file=sys.stderr, flush=True)
            said += text
    if running.returncode:
        raise SystemExit(f"bench readme: python -m bench {' '.join(words)} ended with {running.returncode}")
    return said


# Sizes on disk
def own_bytes(package: str) -> int:
    """Bytes of an installed package's files, without what Python compiles."""
    if package == "tritensor":  # installed from a checkout it has no list of files
        folder, names = ROOT / "tritensor", []
        for here, _, files in os.walk(folder, followlinks=True):
            names += [Path(here) / f for f in files if not f.endswith(".pyc")]
        return sum(p.stat().st_size for p in names)
    files = importlib.metadata.files(package) or []
    return sum(p.stat().st_size for f in files if (p := Path(str(f.locate()))).exists() and p.suffix != ".pyc")


def needed(package: str, found: set[str] | None = None) -> set[str]:
    """An installed package and all that it requires, as far as it is installed, but for Triton."""
    found = set() if found is None else found
    name = re.sub(r"[-_.]+", "-", package).lower()
    if name in found or name == "triton":
        return found
    try:
        wanted = importlib.metadata.requires(name) or []
    except importlib.metadata.PackageNotFoundError:  # required elsewhere only: for another Python, say
        return found
    found.add(name)
    for text in wanted:
        if "extra ==" not in text:
            needed(re.split(r"[^\w.-]", text, maxsplit=1)[0], found)
    return found


def sizes() -> dict[str, tuple[float, float]]:
    """{package: (MB of its own files, with all that it needs but Triton)} of us and torch."""
    return {p: (own_bytes(p) / 1e6, sum(map(own_bytes, needed(p))) / 1e6) for p in ("tritensor", "torch")}


# The text
def _table(head: str, found: Mapping[str, Row], words: Mapping[str, str]) -> list[str]:
    def cell(value: float | None, unit: str) -> str:
        return "" if value is None else f"{value:.0f} {unit}" if value >= 100 else f"{value:.2f} {unit}"

    lines = [f"| {head} | tritensor | torch, CPU | ratio |", "|---|--:|--:|--:|"]
    for label, said in words.items():
        row = found[label]
        lines.append(
            f"| {said} | {cell(row.ours, row.unit)} | {cell(row.peer, row.unit)} | {'' if row.ratio is None else f'{row.ratio:.2f}'} |"
        )
    return [*lines, ""]


def _steps(one: Mapping[str, Row], two: Mapping[str, Row]) -> list[str]:
    lines = ["| training step on the CPU, ratio to torch | one thread | two threads |", "|---|--:|--:|"]
    return [*lines, *(f"| {said} | {one[label].ratio:.2f} | {two[label].ratio:.2f} |" for label, said in STEPS.items()), ""]


def _ranks(report: Mapping[str, object], ranks: int = 2) -> str:
    """What several processes cost beside torch on gloo, in one sentence; the report's ratios are torch's time over ours."""
    step = next(r for r in _listed(report, "steps") if r["ranks"] == ranks)
    cut = {r["kind"]: r for r in _listed(report, "sharded") if r["ranks"] == ranks}
    sums = [1 / r["ratios"]["gloo / sync"] for r in _listed(report, "all_reduce") if r["ranks"] == ranks]
    ratio = "torch / tritensor"
    return (
        f"Two ranks on two cores, beside torch on gloo: a step of that MLP under `DistributedDataParallel` takes {1 / step[ratio]:.2f} of torch's time, under "
        f"`ZeroRedundancyOptimizer` {1 / cut['ZeRO-1'][ratio]:.2f}, under `fully_shard` {1 / cut['fully_shard'][ratio]:.2f}; `all_reduce` "
        f"{min(sums):.2f} to {max(sums):.2f}."
    )


def _listed(report: Mapping[str, object], name: str) -> Iterable[dict]:
    return report[name]  # type: ignore[return-value]


def markdown(said: Mapping[str, str], ranks: Mapping[str, object], disk: Mapping[str, tuple[float, float]], circumstances: str) -> str:
    """The section: `said` is what host, small, train1, train2, imports and functions printed. Raises KeyError for a line that none printed."""
    host, device = said["host"].split("host cost on device cuda", 1)
    imports, on_device = rows(said["imports"]), rows(device)
    mean = re.search(r"(\d+) calls, geometric mean ([\d.]+)", said["functions"])
    assert mean is not None, "bench ops --peer printed no geometric mean"
    worst = max(r.ratio for r in rows(said["functions"]).values() if r.ratio is not None)
    (ours, ours_all), (peer, peer_all) = disk["tritensor"], disk["torch"]
    lines = [
        circumstances,
        "",
        "| size and start | tritensor | torch, CPU build |",
        "|---|--:|--:|",
        f"| its own files | {ours:.0f} MB | {peer:.0f} MB |",
        f"| with all that it needs, but Triton, which torch's GPU build needs as well | {ours_all:.0f} MB | {peer_all:.0f} MB |",
        f"| import | {imports['import tritensor'].ours:.0f} ms | {imports['import torch'].ours:.0f} ms |",
        "",
        f"`import tritensor` takes {imports['import tritensor'].ratio:.2f} of what `import numpy, triton` takes, with 300 more ops in the table "
        f"{imports['import tritensor, 300 more ops'].ratio:.2f}: an op's file, and Triton with it, is loaded when the op is first asked for.",
        "",
        *_table(
            f"host cost of an eager op on device cuda ({device.splitlines()[0].partition(')')[0].strip(' (')}), 4 x 3 float32",
            on_device,
            ON_DEVICE,
        ),
        *_table("the same on the CPU", rows(host) | rows(said["small"]), ON_CPU),
        *_steps(rows(said["train1"]), rows(said["train2"])),
        f"{mean[1]} functions on a million elements take {mean[2]} of torch's time (geometric mean; the largest {worst:.1f}). {_ranks(ranks)}",
    ]
    return "\n".join(lines)


def main(argv: Sequence[str]) -> int:
    """Measure everything and print the section, or write it into the README."""
    parser = argparse.ArgumentParser(prog="python -m bench readme", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a fifth of the time: to see whether all runs")
    parser.add_argument("--readme", type=Path, default=ROOT / "README.md")
    parser.add_argument("--write", action="store_true", help="put it into the README, between its marks")
    given = parser.parse_args(argv)
    if "torch" not in needed("torch"):
        raise SystemExit(
            "bench readme: torch is not installed here, and every figure stands beside torch's; use an environment that has it"
        )
    began, worked, start = busy(), _own(), time.monotonic()
    share = 0.2 if given.quick else 1.0
    said = {
        "host": run("host", "--seconds", f"{2 * share}"),
        "small": run("small", "--peer", "--actions", "--workloads", "--seconds", f"{0.01 * share}"),
        "train1": run("train", "--threads", "1", "--seconds", f"{6 * share}"),
        "train2": run("train", "--threads", "2", "--seconds", f"{6 * share}"),
        "imports": run("imports"),
        "functions": run("ops", "--peer", "--seconds", f"{0.5 * share}"),
    }
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "ranks.json"
        run("distributed", "--json", str(file), *(["--quick"] if given.quick else []))
        ranks = json.loads(file.read_text())
    others = max(0.0, busy() - began - (_own() - worked)) / (time.monotonic() - start)
    text = markdown(said, ranks, sizes(), circumstances(others, given.quick))
    if given.write:
        put(given.readme, text, BEGIN, END)
        print(f"written to {given.readme}")
    else:
        print(text)
    return 0


def _own() -> float:
    """Seconds for which this process and those that it has waited for have worked."""
    return sum(u.ru_utime + u.ru_stime for u in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)))


def circumstances(others: float, quick: bool) -> str:
    """The command, the date, the machine and how busy others kept it."""
    v, now = versions(), time.strftime("%Y-%m-%d", time.gmtime())
    cores, of = len(os.sched_getaffinity(0)), commit()
    loud = " **A rehearsal on a machine that was not quiet: to be measured again.**" if others >= QUIET else ""
    return (
        f"`python -m bench readme{' --quick' if quick else ''} --write`, {now}, commit {of['hash'][:10] or 'unknown'}: {cores} cores of {processor()}, on which others kept "
        f"{others:.1f} cores busy meanwhile; Triton {v['triton']}, numpy {v['numpy']}, torch {v['torch']}. Ratios are our time over torch's, "
        f"medians of rounds in turn: below 1 is faster.{loud}"
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
