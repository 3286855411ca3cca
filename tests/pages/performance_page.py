"""docs/performance.md: what is measured and how, with the figures of the committed reports. `python -m tests.pages.performance_page` writes it anew."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable
from pathlib import Path

import tritensor as tt
from bench.static import figures_table
from bench.static.table import RESULTS, Uses, load
from tritensor.ops.table import registry

PAGE = Path(__file__).resolve().parents[2] / "docs" / "performance.md"
COLUMNS = "| kernels | compile | spilled | registers (median) | warps on a multiprocessor (median) | tensor cores | tma |"
RULE = "|---|--:|--:|--:|--:|--:|--:|--:|"
HEAD = """# Performance

Three things can be slow: the host, which runs Python; the kernels, which move bytes and multiply; and waiting, of one for the other. Each is measured by a
command that anybody can run, and what stands here is either read from the reports that are committed in `bench/results/`, or told by the README with the date
and the machine. This page is written by `python -m tests.pages.performance_page`.

| command | measures | beside it, in the same run |
|---|---|---|
| `python -m bench host` | what a tiny op costs the host: lookup, shape rule, graph node, launch; without a GPU the launch goes to a stub of the driver in C; ops one after another | torch, where it is installed |
| `python -m bench small` | programs of many small ops on the CPU, single calls, and calls one after another; `--programs`, `--first`: whole programs; `--tree NAME=PATH`: another checkout | `--peer`: torch; numpy, and jax where it is installed |
| `python -m bench compile` | formulas and cells written by hand, inside `tt.lazy()`: calls that are known, with what is asked beside what was measured; `--first`: first calls in fresh processes | eager, in turn; `--peer torch,jax`: torch, torch.compile, jax.jit, results compared first |
| `python -m bench train` | whole training steps on the CPU | torch, in processes of its own, in turn |
| `python -m bench ops` | every op on the CPU, forward and backward | `--peer`: torch |
| `python -m bench optim` | a step of every optimizer on the CPU | torch |
| `python -m bench loader` | DataLoader workers: a dataset that waits, batches of 16 MiB through shared memory, the time to the first batch; `--quick` | one process; torch |
| `python -m bench checkpoint` | saving and loading 1 GB in every format, seconds and peak memory; `--bytes`, `--folder` for another disk | plain reading and writing of the bytes; torch |
| `python -m bench profiler` | what each option of the profiler adds to a training step | the same step without it, in turn |
| `python -m bench tensorboard` | what a scalar, a histogram and an image cost the program that logs them | torch's SummaryWriter |
| `python -m bench distributed` | several processes over MPI: `all_reduce` of every size, data-parallel steps on 1, 2 and 4 ranks, what backward hides, and a model of up to 1,024 ranks; `--quick`, `--plot` | mpi4py in the same processes; `--peer`: torch on gloo |
| `python -m bench imports` | `import tritensor` | `import numpy, triton`; torch |
| `python -m bench readme` | the figures below and in the README, all of one run | torch |
| `python -m bench static` | what the compiler made of every kernel: registers, spills, widths of accesses, tensor-core instructions | the committed table; a regression fails CI |
| `python -m bench gpu` | every op on a GPU, beside the roofline, from graphs and called one after another | `--against torch,compile` |
| `python -m bench compare a.json b.json` | what became slower between two reports | |

A ratio counts when both sides ran in one process or in turn on one quiet machine. A time is a median with its spread. Nothing is timed on the emulated device.

## On a GPU

A GPU waits for Python wherever ops are small. The first call of an op with given layouts is recorded, later ones replay the recording
([the road of an op](cuda.md#the-road-of-an-op)), and a CUDA graph takes the host out of the step.

<!-- section of ../README.md: Speed on a GPU -->
What has run on a GPU, and what has been measured there: [README](../README.md#speed-on-a-gpu).
<!-- end -->

## On the CPU

<!-- section of ../README.md: Speed on the CPU -->
Size, import, training steps, single ops and an op's cost to the host beside torch, of one run: [README](../README.md#speed-on-the-cpu).
<!-- end -->

A program of many small ops spends its time in Python around numpy. So a public function, an operator and an op are *doors*: a call that comes for the second
time, after the function's first sixteen, is recorded, and leaves a *plan*, a straight line of Python with numpy's calls, the tensors and the node; a later
one goes from a key to its plan. The key tells layouts, types, whether gradients are asked for, whether they are recorded, and every other argument with its
type; Python numbers that reach one op as they are stand outside of it. A call is recorded a second time on device meta, where there are no values, and is
planned only where it comes to the same. Nothing is planned that writes but by one ufunc, draws from a generator of its own, or reads values, and none is
taken while somebody looks at single ops: autocast, hooks on saved tensors, modes, a profile, another default device. What plans rest on drops them when it
changes: an op that is registered anew, `ops.replay.forget()`.

Formulas of elementwise ops and of rows (softmax, norms, losses) are machine code from one element on, compiled by the LLVM inside Triton when they are first
needed, kept in its cache, and called with the arrays themselves: address, shape and strides are read at numpy's offsets, which are probed first; where that
fails, as on an interpreter that lays objects otherwise, the addresses are handed over by Python.

## What the kernels use
"""
LARGE = """
What decides how fast the large kernels are can be counted without a GPU, and CI fails where a figure becomes worse (`python -m bench static --figures`). Launches
and bytes are those of one call or one training step; bytes come from memory or go there, what a launch reads or writes of an array once, and what is needed is
each operand as often as the formula reads it. A kernel whose instructions need more clocks to issue than its products need on the tensor cores waits for itself;
a wave is as many programs as the GPU holds at once, and its last one should be full; lane instructions a byte say how far a kernel that moves memory is from what
memory can deliver (an H200: about 7), counted on the longest way through the code. The predicted time is a lower bound. What is marked lazy is the same
program inside `tt.lazy()` once its path is known; GB of arguments are the arrays of all launches, each as often as a launch names it.

""".splitlines()
EVERY = """Every kernel launch of the op table is compiled for GPUs that are not here, and the machine code is read. *Spilled* are kernels that keep
registers in memory, each with a reason in `bench/static/command.py`; *tensor cores* those that use them (mma, wgmma, tcgen05); *tma* those that let the
hardware copy tiles. CI compiles again what covers every op and type, and fails where a kernel spills more, reads narrower, or loses its tensor cores or its
occupancy.
"""
FOOT = """
Read a line of the report with the help of [writing a kernel](kernels.md). `python -m bench static --op softmax` prints them for one op.
"""


def overview(rows: dict[str, dict[int, Uses]]) -> list[str]:
    """A line for each architecture."""
    lines = [f"| architecture {COLUMNS}", RULE]
    for arch in sorted({a for cells in rows.values() for a in cells}):
        found = [cells[arch] for cells in rows.values() if arch in cells]
        lines.append(f"| sm_{arch} | {len(found)} | {' | '.join(_figures(found))} |")
    return lines


def families(rows: dict[str, dict[int, Uses]], arch: int = 90) -> list[str]:
    """A line for each family of ops, on one architecture."""
    lines = [f"| family {COLUMNS}", RULE]
    found: dict[str, list[Uses]] = {}
    for key, cells in rows.items():
        if arch in cells and key.split()[0] in registry:  # a report may be older than the table
            # an elementwise op whose reference is numpy's own function says "numpy"
            module = registry[key.split()[0]].module.split(".")
            found.setdefault(module[2] if len(module) > 2 else "elementwise", []).append(cells[arch])
    return [*lines, *(f"| {family} | {len(uses)} | {' | '.join(_figures(uses))} |" for family, uses in sorted(found.items()))]


def _figures(found: list[Uses]) -> Iterable[str]:
    good = [u for u in found if not u.error]
    tensor = sum(bool({"mma", "wgmma", "tcgen05"} & u.special.keys()) for u in good)
    median = lambda numbers: f"{statistics.median(numbers):.0f}"  # noqa: E731
    return (
        str(len(good)), str(sum(u.spill > 0 for u in good)), median(u.registers for u in good), median(u.blocks * u.warps for u in good),
        str(tensor), str(sum("tma" in u.special for u in good)),
    )  # fmt: skip


def large() -> list[str]:
    """A line for each figure of the large kernels, a column for each Triton version."""
    tables = {path.stem.rpartition("-")[2]: figures_table.load(path) for path in sorted(RESULTS.glob("figures-triton-*.json"))}
    newest = list(tables.values())[-1]
    values = [{f.name: f.value for f in found} for found in tables.values()]
    lines = [f"| figure | to reach | {' | '.join(f'Triton {v}' for v in tables)} |", f"|---|--:|{'--:|' * len(tables)}"]
    for f in newest:
        asked = "" if f.asked is None else f"{'at least' if f.least else 'at most'} {f.asked:g}"
        lines.append(f"| {f.name} | {asked} | {' | '.join(f'{found[f.name]:g}' for found in values)} |")
    return lines


def page() -> str:
    """The whole page."""
    assert tt.kernels is not None  # every family's files are found through it
    lines = [HEAD, *LARGE, *large(), "", "## Every kernel", "", EVERY]
    for path in sorted(RESULTS.glob("static-triton-*.json"), reverse=True):
        head, rows = json.loads(path.read_text()), load(path)
        lines += [
            f"### Triton {head['triton']}",
            "",
            f"{head['launches']} launches; one kept for each kernel, type and shape that differs.",
            "",
            *overview(rows),
            "",
        ]
        if path == max(RESULTS.glob("static-triton-*.json")):
            lines += ["By family, on sm_90:", "", *families(rows), ""]
    return "\n".join(lines).rstrip("\n") + "\n" + FOOT


if __name__ == "__main__":
    PAGE.write_text(page())
