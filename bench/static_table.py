"""The committed table of what kernels use: one line for each kernel, and the rules by which a change of it is a regression."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tritensor.cuda.kernel_report import Report
from tritensor.cuda.occupancy import occupancy

RESULTS = Path(__file__).parent / "results"
TENSOR = {"mma.sync": "mma", "wgmma.mma_async": "wgmma", "tcgen05.mma": "tcgen05"}
UNIT = 8  # registers of a thread: the step in which a multiprocessor hands them out, and so of occupancy

LEGEND = (
    "'op corner type call kernel': {architecture: uses}. size0: the op's first timed size; sample3: its fourth sample. "
    "'24r 16/8 16x4' is 24 registers, widest load 16 and widest store 8 bytes, 16 blocks of 4 warps on a multiprocessor; then, where "
    "there is one: spill (bytes), shared (bytes), tm (tensor memory columns), and how many of mma, wgmma, tcgen05, cp.async, tma "
    "stand in the code."
)


@dataclass(frozen=True)
class Uses:
    """What a kernel uses on one architecture: bytes of the widest load and store (0: there is none), spilled and shared bytes,
    blocks and warps on a multiprocessor, and how many of each special instruction. A kernel that does not compile has only `error`."""

    registers: int = 0
    load: int = 0
    store: int = 0
    blocks: int = 0
    warps: int = 0  # of one block
    spill: int = 0
    shared: int = 0
    tm: int = 0
    special: dict[str, int] = field(default_factory=dict)
    error: str = ""

    def __str__(self) -> str:
        if self.error:
            return f"error: {self.error}"
        text = f"{self.registers}r {self.load or '-'}/{self.store or '-'} {self.blocks}x{self.warps}"
        more = {"spill": self.spill, "shared": self.shared, "tm": self.tm, **self.special}
        return text + "".join(f" {k}:{n}" for k, n in more.items() if n)


def uses(report: Report) -> Uses:
    """The table's cell for a compiled kernel."""
    bulk: dict[str, int] = {}
    copied = 0
    for name, count in report.bulk.items():
        kind = "tma" if name.startswith("cp.async.bulk") else "cp.async"
        bulk[kind] = bulk.get(kind, 0) + count
        if kind == "cp.async":  # a load that goes to shared memory
            copied = max(copied, int(name.split()[1]))
    blocks = occupancy(report.arch, report.registers, report.shared, report.warps, report.tensor_memory).blocks
    return Uses(
        registers=report.registers, load=max(copied, *map(int, report.loads), 0) // 8, store=max(*map(int, report.stores), 0, 0) // 8,
        blocks=blocks, warps=report.warps, spill=report.spilled, shared=report.shared, tm=report.tensor_memory,
        special={TENSOR[k]: n for k, n in sorted(report.tensor.items())} | dict(sorted(bulk.items())),
    )  # fmt: skip


def parse(text: str) -> Uses:
    """The inverse of str(Uses). Raises ValueError for a text that is none."""
    if text.startswith("error: "):
        return Uses(error=text.removeprefix("error: "))
    found = re.fullmatch(r"(\d+)r (\d+|-)/(\d+|-) (\d+)x(\d+)((?: [a-z0-9.]+:\d+)*)", text)
    if found is None:
        raise ValueError(f"{text!r} is not what the static table holds, such as '24r 16/8 16x4 shared:512'")
    registers, load, store, blocks, warps = (int(n) if n != "-" else 0 for n in found.groups()[:5])
    more = {k: int(n) for k, n in (pair.split(":") for pair in found[6].split())}
    plain = {k: more.pop(k, 0) for k in ("spill", "shared", "tm")}
    return Uses(registers, load, store, blocks, warps, special=more, **plain)


Rows = dict[str, dict[int, Uses]]  # key of a launch -> architecture -> what it uses there


def minor(triton: str) -> str:
    """3.9 of 3.9.0: registers differ from one minor version of Triton to the next."""
    return ".".join(triton.split(".")[:2])


def path_for(triton: str) -> Path:
    """The committed table of a Triton version; each minor version has its own."""
    return RESULTS / f"static-triton-{minor(triton)}.json"


def load(path: Path) -> Rows:
    """The rows of a table."""
    rows = json.loads(path.read_text())["rows"]
    return {key: {int(arch): parse(text) for arch, text in cells.items()} for key, cells in rows.items()}


def save(path: Path, rows: Rows, triton: str, launches: int | None) -> None:
    """Write a table: sorted, a line for each kernel, so that a diff of two reads.

    `launches`: how many the op table has in all (None: as many as the file says, after a run of a few ops); the head says it beside how
    many of them stand here for each architecture.
    """
    if launches is None:
        launches = json.loads(path.read_text())["launches"] if path.exists() else len(rows)
    archs = sorted({arch for cells in rows.values() for arch in cells})
    kernels = {f"sm_{a}": sum(a in cells for cells in rows.values()) for a in archs}
    head = {"written by": "python -m bench static --update", "triton": triton, "legend": LEGEND, "launches": launches, "kernels": kernels}
    lines = [f" {json.dumps(k)}: {json.dumps(v)}," for k, v in head.items()]
    cells = [f"  {json.dumps(key)}: {json.dumps({str(a): str(u) for a, u in sorted(rows[key].items())})}" for key in sorted(rows)]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("{\n" + "\n".join(lines) + '\n "rows": {\n' + ",\n".join(cells) + "\n }\n}\n")


def regressions(arch: int, was: Uses, now: Uses) -> list[str]:
    """What is worse now, in words; nothing where the kernel is as good as it was.

    - it does not compile, and did
    - it spills more bytes of registers than it did
    - its widest load or store is narrower
    - it lost the tensor-core instruction it used (wgmma for mma counts as lost), TMA copies, or asynchronous copies (unless for TMA)
    - it uses over 20 % more registers and at least 8 more, the unit in which they are handed out: below that compilers wander
    - fewer warps are resident than with 8 more registers than it had: one step down is wandering, two are not. Shared memory and
      tensor memory have no such slack: their use follows from the tiles alone.
    """
    if was.error:
        return []
    if now.error:
        return [f"does not compile any more: {now.error}"]
    found = []
    if now.spill > was.spill:
        found.append(f"spills {now.spill} bytes, was {was.spill}")
    for what, before, after in (("load", was.load, now.load), ("store", was.store, now.store)):
        if after < before:
            found.append(f"widest {what} {after} bytes, was {before}")
    lost = was.special.keys() - now.special.keys()
    if "cp.async" in lost and "tma" in now.special:
        lost -= {"cp.async"}
    found += [f"no {name} any more, had {was.special[name]}" for name in sorted(lost)]
    if now.registers > 1.2 * was.registers and now.registers >= was.registers + UNIT:
        found.append(f"{now.registers} registers, was {was.registers}")
    least = occupancy(arch, min(was.registers + UNIT, 255), was.shared, was.warps, was.tm).warps
    if now.blocks * now.warps < least:
        found.append(f"{now.blocks} blocks of {now.warps} warps on a multiprocessor, was {was.blocks} of {was.warps}")
    return found


@dataclass
class Comparison:
    """A run against the table: lines that say what is worse, keys that the table lacks, keys of the table that no launch has any more."""

    worse: list[str]
    new: list[str]
    gone: list[str]
    compared: int
    changed: int  # compared, not worse, and not the same


def compare(table: Rows, run: Rows, recorded: Iterable[str], concerned: Any = None) -> Comparison:
    """`recorded`: the keys of all launches, compiled in this run or not; `concerned(key)`: whether the run's filters let a key in."""
    worse, new = [], []
    compared = changed = 0
    for key in sorted(run):
        for arch, now in sorted(run[key].items()):
            was = table.get(key, {}).get(arch)
            if was is None:
                new.append(f"{key} sm_{arch}")
                continue
            compared += 1
            found = regressions(arch, was, now)
            worse += [f"{key} sm_{arch}: {what}\n    was {was}\n    now {now}" for what in found]
            changed += not found and now != was
    known = set(recorded)
    gone = sorted(k for k in table if k not in known and (concerned is None or concerned(k)))
    return Comparison(worse, new, gone, compared, changed)
