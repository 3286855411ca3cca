"""Ask ops by hand: `python -m tritensor.testing softmax conv* my_ops.py` prints what is wrong with them, on the CPU and on device cuda."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence

from tritensor.testing.devices import NAMES, emulate_without_gpu


def _add_arguments(found: argparse.ArgumentParser) -> None:
    found.add_argument("ops", nargs="*", metavar="NAME", help="ops by name, pattern (conv*) or file (my_ops.py); all when none is named")
    found.add_argument("--dtype", nargs="+", action="extend", help="types to ask in; all that the op claims when none is named")
    found.add_argument("--device", nargs="+", action="extend", choices=[*NAMES, "cuda"], help="cpu and cuda when none is named")
    found.add_argument(
        "--show", type=int, default=6, metavar="N", help="kinds of finding to print for one op, type and device (default: %(default)s)"
    )
    found.add_argument(
        "--extremes", action="store_true", help="also ask kernels of NaN, infinities and 1e4, put into the samples one at a time"
    )
    found.add_argument("--sabotage", action="store_true", help="plant faults in the ops instead, and say which of them the questions find")


def main(argv: Sequence[str], parser: argparse.ArgumentParser) -> int:
    """Run the command; 0 where all holds, 1 where something does not, 2 where the command line makes no sense."""
    _add_arguments(parser)
    given = parser.parse_args(argv)
    # Here and not in the shell: nothing that this process has imported so far defines a kernel (`import tritensor` loads none), and Triton reads
    # the variable when one is defined. What is imported below, the author's file among it, is interpreted where there is no GPU.
    from tritensor.ground.errors import ArgumentError, DeviceError, DTypeError, PluginError

    try:
        emulate_without_gpu()
        from tritensor.ops.table.op_selection import UnknownOpError, select_ops
        from tritensor.testing.devices import places
    except DeviceError as error:
        print(error, file=sys.stderr)
        return 2
    try:
        ops, on = select_ops(given.ops), places(given.device)
        return _sabotage(ops) if given.sabotage else _ask(ops, given.dtype, list(on), given.show, given.extremes)
    except (UnknownOpError, PluginError, ArgumentError, DeviceError, DTypeError) as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return 2


def _ask(ops: list, dtypes: list[str] | None, on: list[str], show: int, extremes: bool) -> int:
    from tritensor.testing.lines.reached import Reached
    from tritensor.testing.op_check import ask_op, check_complex_numbers, check_samples, find_unrecorded, select_types

    total, wrong = 0, []
    for op in ops:
        before = total
        with Reached([op]) as reached:
            for place in on:
                for dtype in select_types(op, dtypes):
                    start = time.perf_counter()
                    report = ask_op(op, dtype, place, extremes=extremes)
                    total += _print_report(f"{op.name}/{dtype}/{place}", report, time.perf_counter() - start, show)
        start = time.perf_counter()
        report = check_samples(op)
        if "cpu" in on:
            report.merge(check_complex_numbers(op))
        total += _print_report(f"{op.name}/samples and complex numbers", report, time.perf_counter() - start, show)
        wrong += [op.name] if total > before else []
        if not dtypes and set(on) > {"cpu"}:  # all was asked
            for line in reached.missed(op):
                print(f"    note: no sample runs {line}")
            for corner in find_unrecorded(op):
                print(f"    note: {corner}; so each call runs its Python, where others are recorded and replayed")
    if len(ops) > 1:
        print(f"{len(ops)} ops: " + (f"findings in {', '.join(wrong)}" if wrong else "no findings"))
    return 1 if total else 0


def _print_report(what: str, report, seconds: float, show: int) -> int:
    lines = report.lines()
    print(f"{what}: {len(report.findings) or 'no'} findings, {seconds:.1f} s", flush=True)
    for line in lines[:show]:
        print("   ", line)
    if len(lines) > show:
        print(f"    and {len(lines) - show} more kinds; --show {len(lines)} shows them")
    return len(lines)


def _sabotage(ops: list) -> int:
    from tritensor.testing.planted_faults import sabotage

    escaped = 0
    for op in ops:
        verdicts = sabotage(op)
        for verdict in verdicts:
            print(f"{op.name}: {verdict}", flush=True)
        slipped = [v.fault for v in verdicts if v.escaped]
        counted = [v for v in verdicts if v.outcome != "changes nothing"]
        said = f"; a sample that reaches them is missing for {', '.join(slipped)}" if slipped else ""
        print(f"{op.name}: {len(counted) - len(slipped)} of {len(counted)} planted faults are caught{said}", flush=True)
        escaped += len(slipped)
    return 1 if escaped else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], argparse.ArgumentParser(prog="python -m tritensor.testing", description=__doc__)))
