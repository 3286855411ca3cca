"""The committed table of what kernels use: one line for each kernel, and the rules by which a change of it is a regression."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tritensor.cuda.compiler.kernel_report import Report
from tritensor.cuda.compiler.occupancy import occupancy

RESULTS = Path(__file__).parent.parent / "results"
TENSOR = {"mma.sync": "mma", "wgmma.mma_async": "wgmma", "tcgen05.mma": "tcgen05"}
GROWTH = 0.15  # of a loop's instructions, of the share of bytes that move in small pieces: what is more is worse
UNIT = 8  # registers of a thread: the step in which a multiprocessor hands them out, and so of occupancy

LEGEND = (
    "'op corner type call kernel': {architecture: uses}. size0: the op's first timed size; sample3: its fourth sample. "
    "'24r 2x16+4/8 16x4' is 24 registers, two loads of 16 bytes and one of 4, a store of 8, 16 blocks of 4 warps on a multiprocessor; "
    "then code (instructions), or loop (those of the hot loop) and in (the loads in it); then, where there is one: spill (bytes), shared "
    "(bytes), tm (tensor memory columns), and how many of mma, wgmma, tcgen05, cp.async, tma stand in the code; @ what it was compiled from."
)


@dataclass(frozen=True)
class Uses:
    """What a kernel uses on one architecture: how many loads and stores of each width in bytes, blocks and warps on a multiprocessor,
    instructions (of the hot loop, and its loads; without a loop, in all), spilled and shared bytes, and how many of each special
    instruction. A kernel that does not compile has only `error`. Equal ones may come from different `sources`."""

    registers: int = 0
    loads: dict[int, int] = field(default_factory=dict)
    stores: dict[int, int] = field(default_factory=dict)
    blocks: int = 0
    warps: int = 0  # of one block
    code: int = 0
    loop: int = 0
    inner: dict[int, int] = field(default_factory=dict)  # loads in the loop
    spill: int = 0
    shared: int = 0
    tm: int = 0
    special: dict[str, int] = field(default_factory=dict)
    error: str = ""
    sources: str = field(default="", compare=False)  # fingerprint of what it was compiled from

    def __str__(self) -> str:
        if self.error:
            return f"error: {self.error}"
        text = f"{self.registers}r {_accesses(self.loads)}/{_accesses(self.stores)} {self.blocks}x{self.warps}"
        more = {"code": self.code, "loop": self.loop, "in": _accesses(self.inner) if self.inner else 0}
        more |= {"spill": self.spill, "shared": self.shared, "tm": self.tm, **self.special}
        return text + "".join(f" {k}:{n}" for k, n in more.items() if n) + (f" @{self.sources}" if self.sources else "")

    @property
    def load(self) -> int:
        """Bytes of the widest load (0: there is none)."""
        return max(self.loads, default=0)

    @property
    def store(self) -> int:
        """Bytes of the widest store (0: there is none)."""
        return max(self.stores, default=0)


def _accesses(widths: dict[int, int]) -> str:
    """'2x16+4': two accesses of 16 bytes and one of 4."""
    return "+".join(f"{n}x{size}" if n > 1 else str(size) for size, n in sorted(widths.items(), reverse=True)) or "-"


def _widths(text: str) -> dict[int, int]:
    """The inverse of _accesses."""
    parts = (part.rpartition("x") for part in text.split("+") if part not in ("", "-"))
    return {int(size): int(n or 1) for n, _, size in parts}


def uses(report: Report, sources: str = "") -> Uses:
    """The table's cell for a compiled kernel, and the fingerprint of what it was compiled from."""
    bulk: dict[str, int] = {}
    for name, count in report.bulk.items():
        kind = "tma" if name.startswith("cp.async.bulk") else "cp.async"
        bulk[kind] = bulk.get(kind, 0) + count
    blocks = occupancy(report.arch, report.registers, report.shared, report.warps, report.tensor_memory).blocks
    return Uses(
        registers=report.registers, loads=_in_bytes(report.loads), stores=_in_bytes(report.stores), blocks=blocks, warps=report.warps,
        code=0 if report.loop else report.instructions, loop=report.loop, inner=_in_bytes(report.loop_loads),
        spill=report.spilled, shared=report.shared, tm=report.tensor_memory,
        special={TENSOR[k]: n for k, n in sorted(report.tensor.items())} | dict(sorted(bulk.items())), sources=sources,
    )  # fmt: skip


def _in_bytes(bits: dict[str, int]) -> dict[int, int]:
    return {int(width) // 8: n for width, n in bits.items()}


def parse(text: str) -> Uses:
    """The inverse of str(Uses). Raises ValueError for a text that is none."""
    if text.startswith("error: "):
        return Uses(error=text.removeprefix("error: "))
    found = re.fullmatch(r"(\d+)r ([\dx+]+|-)/([\dx+]+|-) (\d+)x(\d+)((?: [a-z0-9.]+:[\dx+]+)*)(?: @([0-9a-f]+))?", text)
    if found is None:
        raise ValueError(f"{text!r} is not what the static table holds, such as '24r 16/8 16x4 shared:512'")
    registers, blocks, warps = int(found[1]), int(found[4]), int(found[5])
    pairs = dict(pair.split(":") for pair in found[6].split())
    inner = _widths(pairs.pop("in", ""))
    more = {k: int(n) for k, n in pairs.items()}
    plain = {k: more.pop(k, 0) for k in ("code", "loop", "spill", "shared", "tm")}
    return Uses(registers, _widths(found[2]), _widths(found[3]), blocks, warps, inner=inner, special=more, sources=found[7] or "", **plain)


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
    - its widest load or store is narrower, or over 15 % more of its bytes go through accesses narrower than that
    - its hot loop has more loads narrower than the kernel's widest, or is over 15 % longer; without a loop, its code is
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
    counted = was.code or was.loop  # a row without instructions has the widest access alone: it was written before the rest was counted
    for what, was_widths, now_widths in (("load", was.loads, now.loads), ("store", was.stores, now.stores)):
        before, after = max(was_widths, default=0), max(now_widths, default=0)
        if after < before:
            found.append(f"widest {what} {after} bytes, was {before}")
        if counted and _narrow(now_widths, before) > _narrow(was_widths, before) + GROWTH:
            found.append(f"{what}s {_accesses(now_widths)}, was {_accesses(was_widths)}: more bytes below {before} at a time")
    found += _longer(was, now)
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


def _narrow(widths: dict[int, int], nbytes: int) -> float:
    """The share of the bytes that go through accesses of fewer than `nbytes` bytes."""
    return sum(size * n for size, n in widths.items() if size < nbytes) / max(1, sum(size * n for size, n in widths.items()))


def _longer(was: Uses, now: Uses) -> list[str]:
    """What is worse about the instructions that run most."""
    found = []
    if was.loop and now.loop:
        before, after = (sum(n for size, n in u.inner.items() if size < was.load) for u in (was, now))
        if after > before:
            found.append(
                f"loads in the loop {_accesses(now.inner)}, was {_accesses(was.inner)}: {after} below {was.load} bytes, was {before}"
            )
    for what, before, after, least in (("loop", was.loop, now.loop, 4), ("code", was.code, now.code, 16)):
        if before and after > (1 + GROWTH) * before and after >= before + least:
            found.append(f"{what} of {after} instructions, was {before}")
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
            if not found and now != was and was.sources and now.sources == was.sources:
                found = ["not what the table read from these very sources: write it anew"]
            worse += [f"{key} sm_{arch}: {what}\n    was {was}\n    now {now}" for what in found]
            changed += not found and now != was
    known = set(recorded)
    gone = sorted(k for k in table if k not in known and (concerned is None or concerned(k)))
    return Comparison(worse, new, gone, compared, changed)
