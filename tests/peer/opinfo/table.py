"""The table: one line for every entry of PyTorch's database, what a walk found; reading, writing, totals."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.peer.opinfo.reasons import REASONS
from tests.peer.opinfo.walk import Found

FILE = Path(__file__).with_name("table.json")
BESIDE = ("complex64", "complex128 backward")  # told, and not counted among what is required
Line = dict[str, Any]


def line(found: Found) -> Line:
    """What a walk found, as the table has it: counts of samples passed/walked, `failing` as [where, what, samples, the first one's message]."""
    if found.missing:
        return {"state": "missing", "why": found.missing}
    failing = failing_groups(found)
    told = (
        BESIDE if any(c not in BESIDE and c != "errors" for c in found.counts) else ()
    )  # of an operation on complex numbers alone those count
    required = [f for f in failing if f[0] not in told]
    variants = {k: v for k, v in found.variants.items() if v != "no"}
    lacking = [v for v in variants.values() if v != "yes"]
    made: Line = {"state": "some" if required or lacking else "all"}
    made |= {k: str(c) for k, c in found.counts.items()}
    made |= variants
    if found.strides.walked:
        made["strides"] = f"{found.strides.passed}/{found.strides.walked}"
    if found.aliases:
        made["no alias"] = found.aliases
    if found.classes:
        made["other error classes"] = found.classes
    if failing:
        made["failing"] = failing
    return made


def failing_groups(found: Any) -> list[list[str]]:
    groups: dict[tuple[str, str], list[Any]] = {}
    for f in found.failures:
        groups.setdefault((f.where, f.kind), []).append(f)
    return [[*k, _ranges([f.index for f in fs]), _message(fs[0].detail)] for k, fs in groups.items()]


def _message(detail: str) -> str:
    """The first line of a message, short, without addresses."""
    text = (detail.splitlines() or [""])[0]
    return re.sub(r"0x[0-9a-f]+", "0x", text)[:110]


def _ranges(indices: list[int]) -> str:
    """[0, 1, 2, 5] as "0-2 5"."""
    parts: list[list[int]] = []
    for i in indices:
        if parts and i == parts[-1][-1] + 1:
            parts[-1].append(i)
        else:
            parts.append([i])
    return " ".join(str(p[0]) if len(p) == 1 else f"{p[0]}-{p[-1]}" for p in parts)


def firm(made: Line) -> Line:
    """A line without the messages of failing samples, which another processor's last digits change, and without strides, which are told for information."""
    kept = {k: v for k, v in made.items() if k != "strides"}
    if "failing" in kept:
        kept["failing"] = [f[:3] for f in kept["failing"]]
    return kept


def read(file: Path = FILE) -> dict[str, Line]:
    """The committed table."""
    return json.loads(file.read_text()) if file.exists() else {}


def write(table: dict[str, Line], file: Path = FILE) -> None:
    """One entry a line, sorted, so that two branches' tables merge."""
    lines = [f"{json.dumps(k)}: {json.dumps(table[k])}" for k in sorted(table)]
    file.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def reason(name: str) -> str:
    """The hand-written reason of an entry, by its own line's name or by its operation's."""
    return REASONS.get(name) or REASONS.get(name.partition("/")[0], "")


def _sum(lines: Iterable[Line], columns: Iterable[str]) -> str:
    pairs = [m[c].split(" ")[0].split("/") for m in lines for c in columns if c in m]
    passed, walked = sum(int(p) for p, _ in pairs), sum(int(w) for _, w in pairs)
    return f"{passed} of {walked}" + (f" ({100 * passed / walked:.1f} %)" if walked else "")


def totals(table: dict[str, Line]) -> str:
    """What the whole table says, the neural part apart."""
    parts = []
    neural = {k: v for k, v in table.items() if k.startswith("nn.functional")}
    for title, part in (("non-neural", {k: v for k, v in table.items() if k not in neural}), ("neural", neural)):
        here = {k: v for k, v in part.items() if v["state"] != "missing"}
        lines = here.values()
        names, resolved = ({k.partition("/")[0] for k in p} for p in (part, here))
        bare = sum(1 for k, v in part.items() if v["state"] != "all" and not reason(k))
        columns = {
            "forward (float32, int64, bool)": ("float32", "int64", "bool"), "backward (float64)": ("float64 backward",), "errors": ("errors",),
            "complex64": ("complex64",), "complex128 backward": ("complex128 backward",), "strides (information)": ("strides",),
        }  # fmt: skip
        ratio = 100 * len(here) / max(1, len(part))
        parts.append(f"{title}: {len(here)} of {len(part)} entries resolved ({ratio:.1f} %), {len(resolved)} of {len(names)} names")
        parts.append(
            f"  {sum(v['state'] == 'all' for v in lines)} entries pass everything required; {bare} missing or failing without a reason yet"
        )
        parts += [f"  {what}: {_sum(lines, c)}" for what, c in columns.items()]
        for what in ("method", "in-place"):
            parts.append(f"  {what}: {sum(v.get(what) == 'yes' for v in lines)} of {sum(what in v or _fails(v, what) for v in lines)}")
        parts.append(f"  aliases not here: {sum(len(v.get('no alias', ())) for v in lines)}")
    return "\n".join(parts)


def _fails(made: Line, where: str) -> bool:
    return any(f[0] == where for f in made.get("failing", ()))
