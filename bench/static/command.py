"""The static kernel report: every op x type x config compiled for GPUs that need not be here, compared with the committed table."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import triton

from bench.static import compare, figures_table
from bench.static import table as static_table
from bench.static.kernel_arguments import Refused
from bench.static.launches import Launch, collect, element_sizes, quick
from bench.static.table import Comparison, Rows, Uses
from tritensor.cuda.compiler import child_processes, cubin_cache
from tritensor.cuda.compiler.compile import describe
from tritensor.cuda.compiler.kernel_report import report
from tritensor.cuda.compiler.occupancy import LIMITS
from tritensor.ground import dtypes
from tritensor.ground.errors import LaunchError, PluginError
from tritensor.ops.table import op_selection, registry
from tritensor.utils.progress import Bar

_DIVISION = "around the subroutine of 64-bit division the assembler parks 32 bytes and stops at 64 registers: 8 blocks are resident, not 7"
_OLDER = "the assembler of Triton 3.6 parks at most 12 bytes and stops one step of registers lower; that of 3.9 does not"
_PRODUCT = "the largest float32 tile of the matrix product, of which Triton 3.6 parks at most 20 bytes; that of 3.9 does not"
_SUMS = "the largest float32 tile beside the sums of its rows: of 2,343 instructions of the loop seven fetch and put away what is parked"
_BESIDE = "the assembler parks a few bytes before and after the loops, none in them"
_CELLS = "the assembler of Triton 3.6 parks at most 18 bytes and stops at 32 registers, 16 blocks; of what is parked one word is fetched in the loop"
_CALLED = "within the subroutine of division, which is called for numbers at the ends of the range alone"
# (Triton, op, corner, type, architecture): why a few spilled bytes are right
SPILLS: dict[tuple[str, str, str, str, int], str] = {
    ("3.6", "floor_divide", "forward", "int64", 90): _DIVISION,
    ("3.6", "amax", "forward", "float64", 90): _OLDER,
    ("3.6", "amin", "forward", "float64", 90): _OLDER,
    ("3.6", "scatter_reduce", "backward", "float64", 90): _OLDER,
    ("3.6", "linear_scan", "forward", "float32", 90): _OLDER,
    ("3.6", "matmul", "backward", "float32", 90): _PRODUCT,
    ("3.6", "attention", "forward", "float32", 90): _PRODUCT,
    ("3.6", "attention", "backward", "float32", 90): _PRODUCT,
    **{(v, "linear_activation", "backward", "float32", 90): _SUMS for v in ("3.6", "3.9")},
    **{(v, "flash_attention", "backward", "bfloat16", a): _BESIDE for v, a in (("3.6", 80), ("3.6", 90), ("3.6", 100), ("3.9", 80))},
    **{("3.6", "flash_attention", c, "float32", 90): _BESIDE for c in ("forward", "backward")},
    ("3.6", "cross_entropy", "backward", "bfloat16", 100): _BESIDE,
    **{("3.6", "adaptive_max_pool", "forward", "bfloat16", a): _CELLS for a in (80, 90, 100)},
    **{("3.6", "adaptive_max_pool", "backward", "bfloat16", a): _BESIDE for a in (80, 90, 100)},
    **{("3.6", f"{name}_of_log{s}", "forward", "float64", 90): _BESIDE for name, s in (("kl_div", "s"), ("poisson_nll", ""))},
    ("3.6", "poisson_nll_of_log", "forward", "bfloat16", 100): _BESIDE,
    **{(v, "softplus", "backward", "float64", 90): _CALLED for v in ("3.6", "3.9")},
    **{("3.6", f"conv{name}", "backward", "float64", 90): _OLDER for name in ("1d", "1d_relu", "2d", "2d_relu")},
    **{("3.6", "bessel_j1", "forward", "float32", a): _BESIDE for a in (80, 90)},
    ("3.9", "floor_divide", "forward", "int64", 90): _DIVISION,
    ("3.9", "floor_divide", "forward", "int64", 100): _DIVISION,
}
SAMPLE = 50  # of what --changed finds in the table, one in as many is compiled all the same
STALE = 0.1  # of what was compiled: where the table lacks more, it is no longer a check

Kernel = dict[str, Any]  # one launch on one architecture: whose it is, and either all of its Report or an error


def facts(launch: Launch, arch: int) -> Kernel:
    """Whose launch it is: all that is known of it before it is compiled."""
    own = {name: getattr(launch, name) for name in ("key", "op", "corner", "dtype", "timed", "typed")}
    return own | {
        "arch": arch, "elementwise": registry[launch.op].broadcasts, "pointers": element_sizes(launch.spec.types), "kernel": describe(launch.spec),
    }  # fmt: skip


def sources(launch: Launch, arch: int) -> str:
    """A fingerprint of all that a launch's machine code follows from: sources, types, constants, options, Triton's version."""
    return cubin_cache.keys(launch.spec, arch)[0].hex()[:12]


def measure(launch: Launch, arch: int) -> Kernel:
    """Compile one launch for one architecture and read what it uses."""
    try:
        found = report(launch.spec, arch)
    except LaunchError as error:
        return facts(launch, arch) | failed(str(error))
    return facts(launch, arch) | asdict(found) | {"uses": str(static_table.uses(found, sources(launch, arch)))}


def failed(error: str) -> Kernel:
    """What is known of a kernel that did not compile: the whole error, and one line of it for the table."""
    return {"error": error, "uses": str(Uses(error=" ".join(error.strip().splitlines()[-1].split())[:160]))}


def faults(k: Kernel) -> list[str]:
    """What is wrong with a kernel whatever it was before, in words."""
    if "error" in k:
        return [k["error"]]
    found = []
    if not k["typed"]:
        found.append(f"none of the call's pointers is to {k['dtype']}; draw the op's timed sizes in float64, which becomes the row's type")
    version, uses = static_table.minor(triton.__version__), static_table.parse(k["uses"])
    if uses.spill and (version, k["op"], k["corner"], k["dtype"], k["arch"]) not in SPILLS:
        found.append(
            f"spills {uses.spill} bytes at {uses.registers} registers; mend its tiles, or give a reason in SPILLS of bench/static/command.py"
        )
    if uses.blocks == 0:
        most = LIMITS[k["arch"]].shared_per_block
        found.append(f"cannot run: {uses.shared} bytes of shared memory (at most {most}), {uses.warps} warps of {uses.registers} registers")
    if k["elementwise"] and k["timed"] and is_narrow(k):
        found.append(f"elementwise, on a timed size, and reads or writes less than it could at a time: {k['uses']}")
    return found


def is_narrow(k: Kernel) -> bool:
    """Whether the widest access is less than 16 bytes (or 8 elements, a thread's share of a tile) of the widest element type, or the
    narrower side's less than as many of the smallest."""
    uses = static_table.parse(k["uses"])
    if not (uses.load and uses.store and k["pointers"]):
        return False
    smallest, largest = k["pointers"][0], k["pointers"][-1]
    elements = min(16 // largest, 8)
    narrower, wider = sorted((uses.load, uses.store))
    return wider < elements * largest or narrower < elements * smallest


def run(launches: list[Launch], jobs: list[tuple[int, int]], processes: int | None) -> list[Kernel]:
    """Compile (place in `launches`, architecture) pairs, equal ones once, in parallel; each gets a Kernel, failed or not."""
    jobs_of: dict[Any, list[tuple[int, int]]] = {}
    for i, arch in jobs:
        jobs_of.setdefault((launches[i].spec, arch), []).append((i, arch))
    alike = list(jobs_of.values())
    found: dict[tuple[int, int], Kernel] = {}
    answers = child_processes.each(lambda same: measure(launches[same[0][0]], same[0][1]), alike, processes)
    for n, kernel in progress(answers, len(alike)):
        for i, arch in alike[n]:
            own = facts(launches[i], arch)
            found[i, arch] = (own | failed(str(kernel))) if isinstance(kernel, child_processes.Died) else (kernel | own)
    return [found[job] for job in jobs]


def known(launches: list[Launch], jobs: list[tuple[int, int]], table: Rows) -> dict[tuple[int, int], Kernel]:
    """Of `jobs` those whose machine code the table has read already: the same sources, types, constants and options, by the same Triton.

    One in SAMPLE is compiled all the same, another one with every new table.
    """
    seed = zlib.crc32("".join(sorted(u.sources for cells in table.values() for u in cells.values())).encode())
    found = {}
    for i, arch in jobs:
        was = table.get(launches[i].key, {}).get(arch)
        if was is None or was.error or was.sources != sources(launches[i], arch):
            continue
        if zlib.crc32(was.sources.encode(), seed) % SAMPLE:
            found[i, arch] = facts(launches[i], arch) | {"uses": str(was)}
    return found


def progress(answers: Iterable[Any], total: int) -> Iterator[Any]:
    """`answers` passed through, with a bar, or a line now and then."""
    bar = Bar("compiled", "kernels", total)
    for answer in answers:
        yield answer
        bar.step()
    bar.close()


def rows_of(kernels: list[Kernel]) -> Rows:
    """The table's form of a run."""
    rows: Rows = {}
    for k in kernels:
        rows.setdefault(k["key"], {})[k["arch"]] = static_table.parse(k["uses"])
    return rows


def summary(kernels: list[Kernel]) -> str:
    """Counts for each architecture, and the worst of each kind."""
    heads = f"{'':8}{'kernels':>9}{'failed':>8}{'spill':>7}{'narrow':>8}{'mma':>7}{'wgmma':>7}{'tcgen05':>9}{'cp.async':>10}{'tma':>5}{'warps/SM':>10}"
    lines = [heads]
    good = [(k, static_table.parse(k["uses"])) for k in kernels if "error" not in k]
    for arch in sorted({k["arch"] for k in kernels}):
        mine = [(k, u) for k, u in good if k["arch"] == arch]
        with_ = {name: sum(name in u.special for _, u in mine) for name in ("mma", "wgmma", "tcgen05", "cp.async", "tma")}
        warps = sorted(u.blocks * u.warps for _, u in mine) or [0]
        lines.append(
            f"sm_{arch:<5}{sum(k['arch'] == arch for k in kernels):>9}{sum(k['arch'] == arch for k in kernels) - len(mine):>8}"
            f"{sum(u.spill > 0 for _, u in mine):>7}{sum(k['timed'] and is_narrow(k) for k, _ in mine):>8}{with_['mma']:>7}{with_['wgmma']:>7}"
            f"{with_['tcgen05']:>9}{with_['cp.async']:>10}{with_['tma']:>5}{warps[len(warps) // 2]:>10}"
        )
    lines.append(
        "(spill: registers kept in memory; narrow: below 16 bytes at a time on a timed size; the rest: kernels that use it; warps/SM: median)"
    )
    worst = {
        "most spilled": sorted((p for p in good if p[1].spill), key=lambda p: -p[1].spill),
        "fewest warps on a multiprocessor": sorted(good, key=lambda p: (p[1].blocks * p[1].warps, p[0]["key"], p[0]["arch"])),
        "narrowest on timed sizes": sorted(
            (p for p in good if p[0]["timed"] and is_narrow(p[0])), key=lambda p: min(p[1].load, p[1].store)
        ),
    }
    for title, found in worst.items():
        lines += [f"{title}:", *(f"  {k['key']} sm_{k['arch']}: {u}" for k, u in found[:8])] if found else [f"{title}: none"]
    return "\n".join(lines)


def verdict(found: Comparison, kernels: list[Kernel], filtered: bool) -> tuple[list[str], list[str]]:
    """What the comparison says: lines to read, and lines for which the command fails."""
    notes = [f"{found.compared} kernels compared with the table: {len(found.worse)} regressions, {found.changed} other changes"]
    for keys, what in ((found.new, "are not in the table"), (found.gone, "of the table are launched no more")):
        if keys:
            notes.append(f"{len(keys)} {what} ({', '.join(keys[:3])}{', ...' if len(keys) > 3 else ''})")
    stale = not filtered and len(found.new) > STALE * len(kernels)
    return notes, found.worse + [f"the table lacks {len(found.new)} of {len(kernels)} kernels: it checks too little"] * stale


def updated(table: Rows, run: Rows, gone: list[str]) -> Rows:
    """The table with this run's rows in place of its own and without those that no launch has any more."""
    rows = {key: dict(cells) for key, cells in table.items() if key not in gone}
    for key, cells in run.items():
        rows.setdefault(key, {}).update(cells)
    return rows


EPILOG = """comparing configs (--compare), in seconds and without a GPU:

  python -m bench static --compare softmax                     the op's timed sizes: its rule's config beside others worth trying
  python -m bench static --compare matmul --size 0 --config block_n=128 --config block_n=128,stages=4
  python -m bench static --compare my_ops.py:_kernel           a kernel of yours: the configs of its @triton.autotune, or --config
  python -m bench static --compare my_ops.py:_kernel --args 'x=*bf16[4096,4096],y=*bf16[4096,4096],n=16777216' \\
      --grid 'cdiv(n, BLOCK)' --config BLOCK=1024 --config BLOCK=2048,num_warps=8

A kernel of a file needs to know what it is launched with. Either --args says it (arrays as *type[shape] in Triton's type names, numbers as
they are, n=i32 where the value is not known) and --grid; or the file has a function example() that calls the kernel once:

  def example():
      x = tt.empty(4096, 4096, dtype=tt.bfloat16, device="cuda")     # no memory is taken, nothing runs
      _kernel[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](x, x.numel())

A grid that is a function is calculated anew for each config. An example(BLOCK=1024) is called with each config's BLOCK, for a file that
uses tritensor.cuda.launch.launch. What example() launches beside the kernel is not asked for.

the columns: us is the predicted time at best: the largest of issue (instructions of all warps, 4 a clock and multiprocessor), tensor
(flops of the dots at the tensor cores' rate) and bytes (memory and the second-level cache), and limit says which. The model knows A100 (80), H200 (90)
and B200 (100); it leaves out waiting, bank conflicts and the launch itself, so trust it to rank configs rather than to time them. waves: programs over
those resident on the GPU at a time; tail: how full the last round is (a grid just above one round runs at half); regs, spill, shared:
registers of a thread, bytes of them kept in memory, bytes of shared memory of a program; loads, stores: how many of which width in bytes stand
in the code; loop: instructions of the hot loop; special: tensor-core, asynchronous and TMA instructions. * marks the best.

exit codes: 0; 1 where a kernel is worse than the table, spills, or no config of a comparison can run; 2 for a command line that cannot be done."""


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="python -m bench static",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Compile every launch of the op table for GPUs that need not be here; say what each uses; compare with the committed table.\n"
        "Kernels compiled once come from Triton's disk cache, so an interrupted run goes on where it was.",
        epilog=EPILOG,
    )
    made.add_argument("--arch", type=int, nargs="+", choices=sorted(LIMITS), help="compute capabilities (default: all; with --compare 90)")
    op_selection.add_option(made)
    made.add_argument(
        "--dtype", nargs="+", default=[], metavar="TYPE", choices=[d.name for d in dtypes.ALL],
        help="these types only; with --compare OP the one that is compared (default bfloat16)",
    )  # fmt: skip
    for flag, help in (
        ("--quick", "what CI checks: every (op, corner) in types that differ on sm_90, every (op, corner) on the others"),
        ("--figures", "the figures of the large kernels instead: launches, instructions a byte, waves, a step of GPT-2 small"),
        ("--changed", f"compile only what the table has not read from these very sources already, and one in {SAMPLE} of the rest"),
        ("--update", "write what was found into the table of this Triton version"),
    ):
        made.add_argument(flag, action="store_true", help=help)
    made.add_argument(
        "--out", type=Path, help="where all that was found is written (default: out/static.json); with --dump the folder of its files"
    )
    made.add_argument(
        "--table", type=Path, default=static_table.path_for(triton.__version__), help="the committed table (default: %(default)s)"
    )
    made.add_argument("--processes", type=int, default=None, help="compilers at a time (default: one for each core)")
    _add_comparison(made.add_argument_group("comparing configs"))
    return made


def _add_comparison(made: Any) -> None:
    made.add_argument(
        "--compare", metavar="WHAT", help="a kernel of a file (my_ops.py:_kernel) or an op of the table, under several configs"
    )
    made.add_argument(
        "--config", action="append", default=[], metavar="NAME=VALUE,...",
        help="a config: parameters of the kernel or fields of the op's configs, num_warps, num_stages; once for each config to compare "
        "(default: those of @triton.autotune; of an op the rule's and those that its kernel declares worth trying)",
    )  # fmt: skip
    made.add_argument(
        "--args", metavar="NAME=WHAT,...", help="what a kernel of a file is launched with: 'x=*bf16[4096,4096],n=4096,m=i32:16'"
    )
    made.add_argument("--grid", metavar="GRID", help="its programs: '4096', 'cdiv(n, BLOCK)', 'cdiv(m, BM), cdiv(n, BN)'")
    made.add_argument("--corner", choices=["forward", "backward", "both"], help="of an op (default: forward)")
    made.add_argument("--size", type=int, nargs="+", metavar="N", help="which of an op's timed sizes (default: all)")
    made.add_argument("--dump", choices=compare.FORMS, help="print this form of the best config's kernel, or write it into --out")
    made.add_argument("--json", type=Path, metavar="FILE", help="write all that was found of every config")


def _check(given: argparse.Namespace) -> None:
    """Raise Refused for options that do not go together."""
    if os.environ.get("TRITON_INTERPRET") == "1":
        raise Refused("TRITON_INTERPRET=1 makes kernels that cannot be compiled; unset it")
    if given.compare is not None:
        for option in ("quick", "changed", "update", "op", "figures"):
            if getattr(given, option):
                raise Refused(f"--{option} does not go with --compare, which names what it compares itself")
        return
    if given.figures:
        for option in ("arch", "quick", "changed", "op", "dtype", "out"):
            if getattr(given, option):
                raise Refused(f"--{option} does not go with --figures, which are the same for everybody")
    for option in ("config", "args", "grid", "corner", "size", "dump", "json"):
        if getattr(given, option):
            raise Refused(f"--{option} belongs to --compare: name an op or file.py:kernel with it")


def main(arguments: list[str] | None = None) -> None:
    """Compare configs, or check the table; see the parser's own words. Exits with 2 and one line for a command line that cannot be done."""
    given = parser().parse_args(arguments)
    try:
        _check(given)
        if given.compare is not None:
            compare.main(given)
        elif given.figures:
            figures_table.main(given.update, given.processes)
        else:
            check_table(given)
    except (Refused, op_selection.UnknownOpError, PluginError) as error:
        print(f"bench static: {error}", file=sys.stderr)
        sys.exit(2)


def check_table(given: argparse.Namespace) -> None:
    """Collect, compile, write, compare. Exits with 1 when a kernel does not compile, spills without a reason, or is worse than the table."""
    given.arch, given.out = given.arch or sorted(LIMITS), given.out or Path("out/static.json")
    asked = [op.name for op in op_selection.select_ops(given.op)] if given.op else []
    start = time.monotonic()
    launches, failures = collect(asked, given.dtype)
    every = [(i, arch) for arch in given.arch for i, one in enumerate(launches) if one.runs(arch)]
    jobs = quick(launches, given.arch) if given.quick else every
    print(
        f"{len(launches)} launches recorded in {time.monotonic() - start:.0f} s; {len(jobs)} (launch, architecture) to report", flush=True
    )
    table = static_table.load(given.table) if given.table.exists() else None
    read = known(launches, jobs, table or {}) if given.changed else {}
    if given.changed:
        print(f"{len(read)} of them stand in the table, read from the same sources; {len(jobs) - len(read)} to compile", flush=True)
    left = [job for job in jobs if job not in read]
    read |= dict(zip(left, run(launches, left, given.processes), strict=True))
    kernels = [read[job] for job in jobs]
    given.out.parent.mkdir(parents=True, exist_ok=True)
    given.out.write_text(json.dumps({"triton": triton.__version__, "failures": failures, "kernels": kernels}))
    print(summary(kernels))
    found = static_table.compare(
        table or {}, rows_of(kernels), [one.key for one in launches], lambda key: _concerned(key, asked, given.dtype)
    )
    if table is None:
        notes, worse = [f"there is no table {given.table} to compare with" + ("" if given.update else "; make it with --update")], []
    else:
        notes, worse = verdict(found, kernels, bool(given.op or given.dtype))
    wrong = [f"cannot be recorded: {line}" for line in failures]
    wrong += [f"{k['key']} sm_{k['arch']}: {what}" for k in kernels for what in faults(k)]
    print("\n".join([*notes, *worse, *wrong, f"{time.monotonic() - start:.0f} s; details in {given.out}"]))
    if given.update:
        gone = [] if failures else found.gone  # what could not be recorded is not gone
        rows = updated(table or {}, rows_of(kernels), gone)
        static_table.save(given.table, rows, triton.__version__, None if given.op or given.dtype else len(launches))
        print(f"wrote {given.table}")
    elif worse:
        print("to accept what changed: python -m bench static --update, with the same filters, and commit the table")
    if wrong or (worse and not given.update):
        sys.exit(f"{len(wrong)} faults, {len(worse)} regressions")


def _concerned(key: str, ops: list[str], types: list[str]) -> bool:
    """Whether a key of the table passes the run's filters."""
    op, _, dtype = key.split()[:3]
    return (not ops or op in ops) and (not types or dtype in types)
