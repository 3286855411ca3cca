"""`bench static --compare`: configs of a kernel or an op side by side, compiled for a GPU that need not be here, with a predicted time."""

from __future__ import annotations

import argparse
import json
import math
import re
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import triton

from bench.static import kernel_arguments, kernel_file, op_configs
from bench.static.kernel_arguments import Refused
from bench.static.op_configs import Entry, Group
from bench.static.table import minor, uses
from tritensor.cuda.compiler.compile import compile
from tritensor.cuda.compiler.kernel_report import disassemble
from tritensor.cuda.compiler.prediction import RATES, Forecast, fastest, forecast_all
from tritensor.cuda.compiler.recorded_call import Call
from tritensor.cuda.runtime import active
from tritensor.cuda.virtual.virtual_gpu import VirtualGPU
from tritensor.ops.table.op_selection import select_ops
from tritensor.utils.progress import Bar

FORMS = ("ttir", "ttgir", "llir", "ptx", "sass")  # what --dump shows, from the first form to the machine code


class Found(NamedTuple):
    """One config with what its launches use and should take."""

    entry: Entry
    forecasts: tuple[Forecast, ...]

    @property
    def failure(self) -> str:
        return self.entry.failure or next((f.failure for f in self.forecasts if f.failure), "")

    @property
    def microseconds(self) -> float:
        return math.inf if self.failure or not self.forecasts else sum(f.microseconds for f in self.forecasts)

    @property
    def main(self) -> int:
        """The place of the launch that takes longest."""
        return max(range(len(self.forecasts)), key=lambda i: self.forecasts[i].microseconds)


def best_of(group: Group, found: list[Found]) -> int | None:
    """The place of the best config; None where none can run, or no time is known."""
    return fastest([() if f.failure else f.forecasts for f in found]) if group.timed else None


def main(given: argparse.Namespace) -> None:
    """Compare as the command line says, for one architecture after the other. Raises Refused."""
    configs = [kernel_arguments.config(text) for text in given.config]
    results = []
    for arch in given.arch or [90]:
        if arch not in RATES:
            raise Refused(f"--arch: no rates are known of sm_{arch}; known are {', '.join(f'sm_{a}' for a in RATES)}")
        recorder = VirtualGPU(arch)
        active.use(recorder)  # type: ignore[arg-type]
        groups = recorded(given, recorder, configs)
        found = measured(groups, arch, given.processes)
        for group, results_of in zip(groups, found, strict=True):
            print(table(group, results_of, arch), end="\n\n", flush=True)
        results += [as_json(g, f, arch) for g, f in zip(groups, found, strict=True)]
        if given.dump:
            dump(given.dump, groups, found, arch, given.out)
    if given.json:
        given.json.parent.mkdir(parents=True, exist_ok=True)
        given.json.write_text(json.dumps({"triton": triton.__version__, "groups": results}, default=str, indent=1) + "\n")
    if all(f["failure"] for g in results for f in g["configs"]):
        sys.exit(1)  # not one of them runs


def recorded(given: argparse.Namespace, recorder: VirtualGPU, configs: list[dict[str, Any]]) -> list[Group]:
    """What is compared: a kernel of a file, or an op of the table."""
    path, colon, name = given.compare.rpartition(":")
    if colon and path.endswith(".py"):
        for option in ("dtype", "corner", "size"):
            if getattr(given, option):
                raise Refused(
                    f"--{option} chooses among an op's calls; {given.compare} is a kernel, which --args or its file's example() calls"
                )
        return kernel_file.groups(kernel_file.load(path, name), recorder, given.args, given.grid, configs)
    for option in ("args", "grid"):
        if getattr(given, option) is not None:
            raise Refused(f"--{option} is for a kernel of a file, file.py:kernel; the op {given.compare} brings its timed sizes")
    ops = select_ops([given.compare])
    if len(given.dtype) > 1:
        raise Refused(f"--dtype: one type is compared at a time, {len(given.dtype)} were given")
    corners = ("forward", "backward") if given.corner == "both" else (given.corner or "forward",)
    dtype = given.dtype[0] if given.dtype else None
    return [g for op in ops for g in op_configs.groups(op, recorder, dtype, corners, given.size or [], configs)]


def measured(groups: list[Group], arch: int, processes: int | None) -> list[list[Found]]:
    """Every config of every group, compiled and predicted."""
    calls: dict[Call, int] = {}
    for group in groups:
        for entry in group.entries:
            for call in entry.calls:
                calls.setdefault(call, len(calls))
    bar = Bar("compiled", "kernels", len(calls))
    forecasts: dict[int, Forecast] = {}
    for n, forecast in forecast_all(list(calls), arch, processes):
        forecasts[n] = forecast
        bar.step()
    bar.close()
    return [[Found(e, tuple(forecasts[calls[c]] for c in e.calls)) for e in g.entries] for g in groups]


HEAD = (
    "config", "us", "issue", "tensor", "bytes", "limit", "waves", "tail", "warps/SM", "regs", "spill", "shared", "loads", "stores", "loop", "special",
)  # fmt: skip


def table(group: Group, found: list[Found], arch: int) -> str:
    """Configs side by side: predicted microseconds and the three limits of them, then what the launch that takes longest uses."""
    best = best_of(group, found)
    rows: list[tuple[str, ...]] = [HEAD]
    for n, one in enumerate(found):
        said = (one.failure,) if one.failure else cells(one, group.timed)
        rows.append((("* " if n == best else "  ") + label(one.entry.config), *said))
    widths = [max(len(r[i]) for r in rows if len(r) > 2) for i in range(len(HEAD))]
    widths[0] = max(len(r[0]) for r in rows)
    head = f"{group.name}, sm_{arch} ({RATES[arch].name}), Triton {minor(triton.__version__)}"
    lines = [head + (f"; the rule says {label(group.rule)}" if group.rule else "")]
    for row in rows:
        if len(row) == 2:
            lines.append(f"{row[0]:<{widths[0]}}  {row[1]}")
            continue
        middle = [f"{c:>{w}}" for c, w in zip(row[1:-1], widths[1:-1], strict=True)]
        lines.append("  ".join([f"{row[0]:<{widths[0]}}", *middle, row[-1]]).rstrip())
    launches = max((len(f.forecasts) for f in found if not f.failure), default=0)
    if launches > 1:
        lines.append(f"({launches} launches; us: all of them, the rest: the one that takes longest)")
    if not group.timed:
        lines.append("(no time without a grid: --grid 4096, or --grid 'cdiv(n, BLOCK)')")
    notes = {note for f in found for one in f.forecasts if one.prediction is not None for note in one.prediction.assumed}
    lines += [f"(assumed: {note})" for note in sorted(notes)]
    return "\n".join(lines)


def label(config: dict[str, Any]) -> str:
    """A config in one line; the empty one is what is launched without."""
    return " ".join(f"{k}={v}" for k, v in config.items()) or "as it stands"


def cells(one: Found, timed: bool) -> tuple[str, ...]:
    """A row of the table, without the config."""
    forecast = one.forecasts[one.main]
    made, predicted = forecast.report, forecast.prediction
    assert made is not None
    assert predicted is not None
    used = uses(made)
    access = str(used).split()[1].split("/")
    special = " ".join(f"{k}:{n}" for k, n in used.special.items())
    ghz = RATES[made.arch].ghz
    times = tuple(f"{clocks / ghz / 1e3:.1f}" for clocks in (predicted.issue, predicted.tensor, predicted.bytes))
    model = (f"{one.microseconds:.1f}", *times, predicted.limit, f"{predicted.waves:.2f}", f"{predicted.tail:.2f}")
    return (
        *(model if timed else ("-",) * 7), str(used.blocks * used.warps), str(made.registers), str(made.spilled), str(made.shared), *access,
        str(made.loop or "-"), special,
    )  # fmt: skip


def as_json(group: Group, found: list[Found], arch: int) -> dict[str, Any]:
    """All that is known of a group."""
    best = best_of(group, found)

    def launch(call: Call, one: Forecast) -> dict[str, Any]:
        predicted = one.prediction if group.timed and not one.failure else None
        return {
            "grid": call.grid if group.timed else None, "report": asdict(one.report) if one.report is not None else None,
            "prediction": predicted and predicted._asdict(), "failure": one.failure,
        }  # fmt: skip

    configs = [
        {
            "config": f.entry.config, "best": n == best, "microseconds": f.microseconds if group.timed and not f.failure else None,
            "failure": f.failure, "launches": [launch(*both) for both in zip(f.entry.calls, f.forecasts, strict=False)],
        }
        for n, f in enumerate(found)
    ]  # fmt: skip
    return {"name": group.name, "arch": arch, "configs": configs}


def dump(form: str, groups: list[Group], found: list[list[Found]], arch: int, folder: Path | None) -> None:
    """Write one form of each group's best config into a folder, or print it where there is one group and no folder. Raises Refused."""
    if folder is None and len(groups) > 1:
        raise Refused(f"--dump: {len(groups)} calls are compared; choose one (--size 0), or give --out FOLDER for all")
    for group, results in zip(groups, found, strict=True):
        good = [f for f in results if not f.failure]
        if not good:
            continue
        place = best_of(group, results)
        best = good[0] if place is None else results[place]
        call = best.entry.calls[best.main]
        made = compile(call.spec, arch)
        text = disassemble(made.asm["cubin"]) if form == "sass" else str(made.asm[form])
        title = f"{form} of {call.spec.kernel.__name__}, {label(best.entry.config)}, sm_{arch}"
        if folder is None:
            print(f"// {title}\n{text}")
            continue
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / (re.sub(r"[^\w.=-]+", "_", f"{group.name.partition(':')[0]} {label(best.entry.config)} sm_{arch}") + f".{form}")
        file.write_text(text)
        print(f"{title}: {file}")
