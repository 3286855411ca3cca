"""The steps of the lease in the order of their worth: what each starts, for how long, and how its figures are read."""

from __future__ import annotations

import collections
import json
import shutil
from typing import Any

from tests.gpu.lease.perform import Step, Told, Work
from tests.gpu.workers import ROOT, python

REPORT = "report.json"  # of `bench gpu`, in the scratch folder
TUNED = "tuned.json"
GAPS = 5  # ops that lose most time against torch, to be tuned
SHOWN = ("x + y", "x @ y", "x.softmax(-1)", "10 x (x * y + y), backward")  # of the host's ops, those in the table


def _asked(work: Work) -> list[str]:
    return ["--op", *work.ops] if work.ops else []


def _dealt(work: Work, step: str, seconds: float) -> list[str]:
    """The options of every command that deals items."""
    files = ["--report", str(work.scratch / f"{step}.jsonl"), "--done", str(work.scratch / f"{step}.done")]
    return [*files, "--seconds", f"{max(seconds, 1.0):.0f}", "--processes", str(work.processes)]


# Doctor
def _doctor(work: Work, words: str, rows: list[dict[str, Any]]) -> Told:
    try:
        said = json.loads(words[words.index("{") :])
    except ValueError:
        return Told(errors=(f"doctor said no JSON: {words[-200:]}",))
    launch = next((c["value"] for c in said["checks"] if c["name"].endswith("launch")), "")
    return Told(launch, tuple(f"{c['group']} {c['name']}: {c['value']}" for c in said["checks"] if c["status"] == "fail"))


# Smoke
def _smoke(work: Work, words: str, rows: list[dict[str, Any]]) -> Told:
    kernels: collections.Counter[str] = collections.Counter()
    for row in rows:
        kernels.update(row.get("kernels", {}))
    items = work.ledger.entry("smoke").items
    passed = sum(outcome == "passed" for outcome, *_ in items.values())
    by = f", kernels: {', '.join(f'{n} {how}' for how, n in kernels.most_common())}" if kernels else ""
    return Told(f"{passed} of {len(items)} ops and types as numpy's{by}")


# The suite
def _suite(shard: str, least: float, most: float) -> Step:
    name = f"suite {shard}"

    def command(work: Work, seconds: float) -> list[str] | str:
        return python("tests.gpu.suite", shard, *_dealt(work, name, seconds), *_asked(work))

    def told(work: Work, words: str, rows: list[dict[str, Any]]) -> Told:
        count = collections.Counter(outcome for outcome, *_ in work.ledger.entry(name).items.values())
        return Told(", ".join(f"{n} {outcome}" for outcome, n in count.most_common()))

    return Step(name, "proof", least, most, command, told, patience=360.0)


# Training
def _demos(work: Work, words: str, rows: list[dict[str, Any]]) -> Told:
    items = work.ledger.entry("demos").items
    return Told("; ".join(f"{item}: {said}" for item, (outcome, _, said) in items.items() if outcome == "passed"))


# Speed
def _content(work: Work) -> dict[str, Any]:
    try:
        return json.loads((work.scratch / REPORT).read_text())
    except (OSError, ValueError):
        return {}


def _bench(name: str, least: float, most: float, *flags: str) -> Step:
    def command(work: Work, seconds: float) -> list[str] | str:
        time = [] if "--host" in flags else ["--seconds", f"{max(seconds, 1.0):.0f}", *_asked(work)]
        return python("bench", "gpu", *flags, *time, "--resume", "--out", str(work.scratch / REPORT))

    return Step(name, "figures", least, most, command, _host if "--host" in flags else _rows, patience=150.0)


def _host(work: Work, words: str, rows: list[dict[str, Any]]) -> Told:
    content = _content(work)
    host = content.get("host", {})
    shown = [
        f"{n} {host[n]['host_us']:.1f}" + (f" ({host[n]['torch_host_us']:.1f})" if "torch_host_us" in host[n] else "")
        for n in SHOWN
        if "host_us" in host.get(n, {})
    ]
    torch = any("torch_host_us" in r for r in host.values())
    why = "" if torch else "; no torch beside it: " + content.get("versions", {}).get("torch", "unknown")
    return Told(f"us{' (torch)' if torch else ''}: {', '.join(shown)}{why}" if shown else "", _failed(content, "host: "))


def _rows(work: Work, words: str, rows: list[dict[str, Any]]) -> Told:
    content = _content(work)
    found = [r for r in content.get("rows", {}).values() if "ms" in r]
    beside = [r for r in found if r.get("torch_ms")]
    faster = sum(r["ms"] <= r["torch_ms"] for r in beside)
    compiled = [r for r in found if r.get("compile_ms")]
    ahead = sum(r["ms"] <= r["compile_ms"] for r in compiled)
    left = sum("out of time" in why for why in content.get("not_timed", {}).values())
    gaps = "; most lost in " + ", ".join(largest_gaps(content)) if largest_gaps(content) else ""
    text = f"{len(found)} rows; {faster} of {len(beside)} no slower than torch, {ahead} of {len(compiled)} than torch.compile{gaps}"
    return Told(text if found else "", _failed(content), left)


def _failed(content: dict[str, Any], only: str = "") -> tuple[str, ...]:
    return tuple(f"{key}: {why}" for key, why in content.get("failed", {}).items() if key.startswith(only))


def largest_gaps(content: dict[str, Any]) -> list[str]:
    """The ops that lose most time against the better of torch's two, each once."""
    lost: dict[str, float] = {}
    for row in content.get("rows", {}).values():
        best = min([row[k] for k in ("torch_ms", "compile_ms") if row.get(k)], default=None)
        if "ms" in row and best is not None and row["ms"] > best and row.get("config"):
            lost[row["op"]] = max(lost.get(row["op"], 0.0), row["ms"] - best)
    return sorted(lost, key=lambda op: -lost[op])[:GAPS]


def _tune(work: Work, seconds: float) -> list[str] | str:
    ops = list(work.ops) or largest_gaps(_content(work))
    if not ops:
        return "no row of the report is slower than torch's: nothing to tune for"
    shipped = ROOT / "kernels" / "tuned" / f"{work.slug}.json"
    if not (work.scratch / TUNED).exists() and shipped.exists():
        shutil.copy(shipped, work.scratch / TUNED)  # entries that are not tuned now stay
    minutes = f"{max(seconds - 15.0, 5.0) / 60:.2f}"
    return python(
        "tritensor.tools.command_line", "tune", "--op", *ops, "--budget", minutes, "--configs", "8", "--out", str(work.scratch / TUNED)
    )


def _tuned(work: Work, words: str, rows: list[dict[str, Any]]) -> Told:
    lines = [line for line in words.splitlines() if line.startswith("regret") or " entries that gain " in line]
    left = next((int(line.split(": ")[1].split()[0]) for line in words.splitlines() if line.startswith("--budget is spent")), 0)
    return Told("; ".join(line.replace(f"{work.scratch}/", "").partition("; notes")[0] for line in lines), left=left)


def kept(slug: str) -> dict[str, str]:
    """Which files of the scratch folder go out, by their names outside."""
    return {REPORT: f"{slug}.json", TUNED: f"tuned-{slug}.json", f"{TUNED}.journal": f"tuned-{slug}.json.journal"}


STEPS = (
    Step("doctor", "proof", 5, 90, lambda work, seconds: python("tritensor.doctor", "--json"), _doctor),
    Step(
        "smoke",
        "proof",
        20,
        150,
        lambda work, s: python("tests.gpu.smoke", *_dealt(work, "smoke", s), *_asked(work)),
        _smoke,
        patience=150.0,
    ),
    Step("demos", "proof", 20, 90, lambda work, s: python("tests.gpu.demos", *_dealt(work, "demos", s)), _demos, patience=60.0),
    _bench("host", 15, 45, "--quick", "--host"),
    _bench("bench quick", 60, 240, "--quick"),
    _suite("core", 30, 120),
    _suite("accuracy", 20, 60),
    _suite("walk", 30, 180),
    _suite("races", 30, 120),
    _suite("sizes", 30, 120),
    _bench("bench all", 60, 300),
    Step("tune", "figures", 60, 150, _tune, _tuned, patience=200.0),
    _suite("sanitizer", 60, 330),
)
OF_OPS = ("doctor", "smoke", "bench quick", "suite walk", "suite races", "suite sizes", "bench all", "tune")  # those that --op narrows


def chosen(names: list[str], ops: list[str]) -> list[Step]:
    """The steps that are asked for. Raises ValueError for a name that is none's."""
    strangers = [n for n in names if n not in {s.name for s in STEPS}]
    if strangers:
        raise ValueError(f"--step {', '.join(strangers)}: no such step; there are {', '.join(s.name for s in STEPS)}")
    return [s for s in STEPS if (s.name in names if names else not ops or s.name in OF_OPS)]
