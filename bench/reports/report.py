"""Report of `bench gpu`: a JSON file that is whole at every moment, and the tables that are printed from it."""

from __future__ import annotations

import importlib.util
import json
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "bench" / "results"
PARTS = ("roofline", "training", "host", "rows", "not_timed", "failed", "peer_failed", "died")  # of a report, beside its head
SCHEMA = 2  # of the report: 2 has the configs of kernels, networks' names and the spread of eager calls
CACHE = "calls take turns with sets of inputs, as many (at most 16) as are four times the second-level cache; cold: what one turn of all sets touches is twice the cache"
PACKAGES = ("tritensor", "triton", "numpy", "ml_dtypes", "cuda-bindings", "cuda-python", "torch")
_SMI = ("clocks.sm", "clocks.mem", "clocks.max.sm", "clocks.max.mem", "temperature.gpu", "power.draw", "power.limit",
        "clocks_throttle_reasons.active", "driver_version", "pstate")  # fmt: skip
# Bits of clocks_throttle_reasons.active that slow a kernel (NVML's names); idle and the application's own settings do not count.
_THROTTLE = {0x4: "power cap", 0x8: "hardware slowdown", 0x20: "software thermal", 0x40: "hardware thermal", 0x80: "power brake"}


def clocks() -> dict[str, Any]:
    """What nvidia-smi says of clocks, temperature, power and throttling now; {"missing": why} where it cannot be asked."""
    smi = shutil.which("nvidia-smi")
    if smi is None:
        return {"missing": "nvidia-smi is not on this machine"}
    try:
        done = subprocess.run([smi, f"--query-gpu={','.join(_SMI)}", "--format=csv,noheader,nounits", "-i", _first_visible()],
                              capture_output=True, text=True, check=True, timeout=20)  # fmt: skip
    except (OSError, subprocess.SubprocessError) as error:
        return {"missing": f"nvidia-smi: {error}"}
    values = [v.strip() for v in done.stdout.strip().split(",")]
    found: dict[str, Any] = dict(zip(_SMI, values, strict=False))
    try:
        bits = int(str(found.get("clocks_throttle_reasons.active", "0")), 16)
    except ValueError:
        bits = 0
    found["throttled"] = [name for bit, name in _THROTTLE.items() if bits & bit]
    return found


def _first_visible() -> str:
    """What nvidia-smi knows device 0 of this process by: it counts all GPUs of the machine, whichever CUDA_VISIBLE_DEVICES names."""
    return os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")[0].strip() or "0"


def _git(*args: str) -> str:
    done = subprocess.run(["git", *args], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else ""


def commit() -> dict[str, Any]:
    """The commit that is measured, and whether files differ from it; the hash is "" outside a checkout. Where a copy has no history, the environment
    says it: TRITENSOR_BENCH_COMMIT, with a + behind it when files differ."""
    if stated := os.environ.get("TRITENSOR_BENCH_COMMIT"):
        return {"hash": stated.rstrip("+"), "changed": stated.endswith("+")}
    if shutil.which("git") is None:
        return {"hash": "", "changed": None}
    return {"hash": _git("rev-parse", "HEAD"), "changed": bool(_git("status", "--porcelain", "--untracked-files=no"))}


def versions(*more: str) -> dict[str, str]:
    """Versions of Python and of the packages that matter, and of `more`."""
    found = {"python": platform.python_version(), "platform": platform.platform()}
    for name in (*PACKAGES, *more):
        if name == "tritensor":
            from tritensor import __version__

            found[name] = __version__
            continue
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    return found


def processor() -> str:
    """The name of this machine's CPU."""
    try:
        found = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    except OSError:
        found = None
    return found[1].strip() if found else platform.processor() or platform.machine()


def command_line() -> str:
    """What was typed, without folders: where things lie on the machine that measured says nothing to others."""
    return shlex.join(["python", "-m", "bench", *(Path(a).name if a.startswith("/") else a for a in sys.argv[1:])])


def facts(properties: Any, quick: bool, ops: list[str] | str = "all") -> dict[str, Any]:
    """The head of a GPU's report: where, when, with what, on which ops."""
    return {
        "gpu": properties.name,
        **circumstances("quick" if quick else "full", ops, CACHE),
        "properties": {k: v for k, v in properties._asdict().items() if isinstance(v, str | int | float | tuple)},
        "clocks": {"before": clocks()},
    }


def circumstances(mode: str, ops: list[str] | str, cache: str) -> dict[str, Any]:
    """What every report says of its making, whichever device it is of."""
    return {
        "schema": SCHEMA, "date": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()), "mode": mode, "ops": ops, "cache": cache,
        "commit": commit(), "versions": versions(), "command": command_line(),
    }  # fmt: skip


class Report:
    """The report on disk. Rows are dicts by key; a row that is there already is updated. Written at most once a second, and by save().

    What is being timed stands in a small file beside it: a process that dies or hangs there leaves its name, and who goes on does not try it again.
    """

    def __init__(self, path: Path, head: dict[str, Any]) -> None:
        self.path = path
        self.content: dict[str, Any] = {**head, **{part: {} for part in PARTS}}
        self._saved = 0.0
        self._at = path.with_name(f".{path.name}.at")

    @classmethod
    def resumed(cls, path: Path, head: dict[str, Any]) -> Report:
        """The report that stands at `path`, to be gone on with; a new one where none does or another GPU or commit made it. A quick one is a beginning
        of a full one: its rows are measured in the same way."""
        made = cls(path, head)
        if path.exists():
            before = read_report(path, "bench gpu --resume")
            same = all(before.get(k) == head[k] for k in ("schema", "gpu", "ops", "commit"))
            if same and before.get("mode") in (head["mode"], "quick"):
                made.content.update({k: before[k] for k in ("roofline", "training", "host", "rows")})
                made._mourn(before.get("died", {}))
            else:
                print(f"{path} is of another GPU, mode, choice of ops or commit: it is not gone on with")
        return made

    def _mourn(self, died: dict[str, str]) -> None:
        """Take over what killed earlier processes, and what the last one was at when it ended."""
        self.content["died"] = dict(died)
        if self._at.exists() and (key := self._at.read_text()):
            self.content["died"][key] = "the process ended, or was ended, while this was timed"
            self.begin("")
        self.content["failed"].update({k: v for k, v in self.content["died"].items() if not k.startswith("torch")})
        self.content["peer_failed"].update({k: v for k, v in self.content["died"].items() if k.startswith("torch")})

    def begin(self, key: str) -> None:
        """Note what is timed from now on; "": nothing."""
        if key:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._at.write_text(key)
        else:
            self._at.unlink(missing_ok=True)

    def put(self, part: str, key: str, values: dict[str, Any]) -> None:
        """Add to a row of "training", "host" or "rows"."""
        self.content[part].setdefault(key, {}).update(values)
        self._due()

    def fail(self, key: str, error: BaseException, peer: bool = False) -> None:
        """A row that could not be timed: the error stands in its place. A peer's failure is listed, and is none of the run's."""
        self.content["peer_failed" if peer else "failed"][key] = f"{type(error).__name__}: {str(error)[:800]}"
        self._due()

    def leave(self, key: str, why: str) -> None:
        """A row that was not timed, and why."""
        self.content["not_timed"][key] = why
        self._due()

    def _due(self) -> None:
        if time.monotonic() - self._saved > 1:
            self.save()

    def save(self) -> None:
        """Write all of it beside the file and put it in its place, so that a stop at any moment loses nothing."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        beside = self.path.with_name(f".{self.path.name}.{os.getpid()}")
        beside.write_text(json.dumps(self.content, indent=1) + "\n")
        os.replace(beside, self.path)
        self._saved = time.monotonic()


def read_report(path: Path, who: str) -> dict[str, Any]:
    """The report in a file. Ends the process with exit code 2 and a line where it cannot be read or is none; `who` opens the line."""
    try:
        content = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else f"no JSON: {error}"
        print(f"{who}: {path}: {why}", file=sys.stderr)
        raise SystemExit(2) from error
    if not is_report(content):
        print(f"{who}: {path} is no report of `python -m bench gpu` or `python -m bench ops --out`: it has no rows", file=sys.stderr)
        raise SystemExit(2)
    return content


def is_report(content: Any) -> bool:
    """Whether a JSON file's content is a report (the static table, which lies in the same folder, is none)."""
    return isinstance(content, dict) and isinstance(content.get("rows"), dict) and "schema" in content


def with_ratios(row: dict[str, Any]) -> dict[str, Any]:
    """A row with its ratios: ours over torch's time, below 1 is faster; `lost_ms`: more than the better of torch's two."""
    out = dict(row)
    best = [row[k] for k in ("torch_ms", "compile_ms") if row.get(k)]
    if row.get("torch_ms"):
        out["ratio_torch"] = round(row["ms"] / row["torch_ms"], 3)
    if row.get("compile_ms"):
        out["ratio_compile"] = round(row["ms"] / row["compile_ms"], 3)
    if best:
        out["lost_ms"] = round(row["ms"] - min(best), 5)
    return out


def torch_installed() -> bool:
    return importlib.util.find_spec("torch") is not None


def cell(value: Any, form: str = ".2f", missing: str = "-") -> str:
    """A figure in a table, or what stands for one that is not there."""
    return missing if value is None else format(value, form)


def lines(content: dict[str, Any]) -> list[str]:
    """The table, the time lost against torch first; what failed and what was left out at the end."""
    rows = sorted((with_ratios(r) for r in content["rows"].values() if "ms" in r), key=lambda r: -r.get("lost_ms", -1e9))
    out = [summary(content), ""]
    out.append(
        f"{'op':<20}{'':<4}{'type':<9}{'input':<46}{'ms':>9}{'GB/s':>8}{'TFLOP/s':>9}{'roof':>6}{'torch':>7}{'compile':>8}{'host us':>9}{'lost ms':>9}"
    )
    for r in rows:
        out.append(
            f"{r['op']:<20}{r['corner'][:3]:<4}{r['dtype']:<9}{r['shape']:<46.45}{r['ms']:>9.4f}{r['gbs']:>8.0f}{r['tflops']:>9.1f}{cell(r.get('roof'), '.2f'):>6}"
            f"{cell(r.get('ratio_torch'), '.2f'):>7}{cell(r.get('ratio_compile'), '.2f'):>8}{cell(r.get('host_us'), '.1f'):>9}{cell(r.get('lost_ms'), '.4f'):>9}"
            + ("" if r.get("cold", True) else "  in cache")
            + (f"  {r['model']}" if r.get("model") else "")
        )
    for name, row in content["training"].items():
        shown = ", ".join(f"{k} {v}" for k, v in row.items())
        out.append(f"training: {name}: {shown}")
    for name, row in content["host"].items():
        out.append(f"host: {name:<32}{cell(row.get('host_us'), '.2f'):>8} us, torch {cell(row.get('torch_host_us'), '.2f')} us")
    for part, title in (("not_timed", "not timed"), ("peer_failed", "failed in torch"), ("failed", "FAILED")):
        out += [f"{title}: {key}: {str(why).splitlines()[0]}" for key, why in content[part].items()]
    return out


def device_of(content: dict[str, Any]) -> str:
    """The GPU of a report, or the CPU of one that `bench ops --out` wrote."""
    return str(content.get("gpu") or content.get("cpu") or "an unknown device")


def summary(content: dict[str, Any]) -> str:
    """Where and when a report was made, and the roofline that its rows are held against."""
    roof = content["roofline"]
    if not roof:
        return f"{device_of(content)}, {content['date']}, no roofline"
    rates = ", ".join(f"{k} {max(v.values(), default=0):.0f} TFLOP/s" for k, v in roof.get("tflops", {}).items())
    copy = max(roof.get("copy_gbs", {}).values(), default=0)
    throttled = content["clocks"].get("after", {}).get("throttled") or content["clocks"]["before"].get("throttled")
    note = f"; throttled: {', '.join(throttled)}" if throttled else ""
    return f"{content['gpu']}, {content['date']}, {content['mode']}: copy {copy:.0f} GB/s, {rates}{note}. Ratios are ours over torch's: below 1 is faster"
