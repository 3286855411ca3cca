"""The command `tritensor doctor`: is the GPU working? Packages, settings, driver, devices, caches, a kernel against numpy; what to fix."""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tritensor.cuda import availability
from tritensor.cuda.compiler import cubin_cache
from tritensor.cuda.compiler.pack import Pack
from tritensor.cuda.runtime import active
from tritensor.cuda.virtual.virtual_gpu import VirtualGPU
from tritensor.ground.device import gpu
from tritensor.ground.errors import LaunchError
from tritensor.llvm import compiler as native
from tritensor.ops.array import empty
from tritensor.ops.lazy_array import at_once
from tritensor.ops.table import ops
from tritensor.tensor.core import new_tensor
from tritensor.tools.doctor_probe import Check, probe

PATIENCE = 240  # seconds that the process which works on the GPU may take
LEAST_SPACE = 200 << 20  # bytes free, below which a cache is in danger
PROBE = "--probe"  # the process that works on the GPU is this file with this option, so that a crash or a hang is a finding too


# Packages and settings
def packages() -> list[Check]:
    """Versions of what tritensor runs on."""
    wanted = {"triton": ((3, 6), (3, 10)), "numpy": ((2, 1), (99,)), "ml_dtypes": ((0, 5), (99,)), "cuda-bindings": ((12, 9), (14,))}
    out = [Check("packages", "python", "ok", platform.python_version())]
    for name, (least, end) in wanted.items():
        spelled = "cuda-python" if name == "cuda-bindings" else name
        span = f">={'.'.join(map(str, least))}" + (f",<{'.'.join(map(str, end))}" if end != (99,) else "")
        fix = f"pip install '{spelled}{span}'"
        try:
            version = importlib.metadata.version(name)  # without importing it: what is broken may crash as it loads
        except importlib.metadata.PackageNotFoundError:
            out.append(Check("packages", name, "fail", "not installed", fix))
            continue
        fits = least <= _numbers(version) < end
        out.append(Check("packages", name, "ok" if fits else "fail", version, "" if fits else f"{fix} (it is made for {span})"))
    return out


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(n) for n in re.findall(r"\d+", version)[:3])


def settings() -> list[Check]:
    """Environment variables that change what happens."""
    out = []
    if active.emulated():
        there = availability.found().gpus
        value = "TRITON_INTERPRET is set: device cuda is emulated on the CPU, thousands of times slower than a GPU"
        fix = "unset TRITON_INTERPRET" + (f" ({there} GPU{'s are' if there > 1 else ' is'} here)" if there else "")
        out.append(Check("settings", "emulation", "fail", value, fix))
    elif os.environ.get("TRITON_INTERPRET"):
        value = f"TRITON_INTERPRET={os.environ['TRITON_INTERPRET']}: no emulation"
        out.append(Check("settings", "emulation", "note", value))
    slow = {"CUDA_LAUNCH_BLOCKING": "every launch waits for its end", "TRITON_ALWAYS_COMPILE": "nothing is taken from caches",
            "TRITON_KERNEL_DUMP": "nothing is taken from caches", "TRITON_KERNEL_OVERRIDE": "nothing is taken from caches",
            "DISABLE_PTXAS_OPT": "kernels are slow", "TRITON_DEBUG": "kernels carry assertions"}  # fmt: skip
    for name, effect in slow.items():
        if os.environ.get(name, "0") not in ("", "0"):
            out.append(Check("settings", name, "warn", f"{os.environ[name]}: {effect}", f"unset {name} unless you want that"))
    for name in ("CUDA_VISIBLE_DEVICES", "TRITENSOR_PACK", "TRITENSOR_CACHE", "TRITENSOR_LOG", "TRITON_CACHE_DIR"):
        if name in os.environ:
            out.append(Check("settings", name, "note", os.environ[name] or "(empty)"))
    return out


# The driver
def driver() -> list[Check]:
    """The driver's library and version, against what cuda-python and Triton's assembler are made for."""
    found = availability.found()
    if not found.gpus:
        what, _, fix = found.reason.rpartition("; ")
        return [Check("driver", availability.LIBRARY, "fail", what or found.reason, fix)]
    gpus = f"{found.gpus} GPU{'s' if found.gpus > 1 else ''}"
    out = [Check("driver", availability.LIBRARY, "ok", f"made for CUDA {availability.written(found.driver)}, sees {gpus}{_module()}")]
    major = found.driver // 1000  # within a major version drivers run what newer toolkits make
    try:
        bindings = _numbers(importlib.metadata.version("cuda-bindings"))[0]
    except importlib.metadata.PackageNotFoundError:
        return out  # packages() says it
    if bindings > major:
        value = f"cuda-bindings {bindings} is made for CUDA {bindings} and later, the driver for CUDA {availability.written(found.driver)}"
        out.append(Check("driver", "bindings", "warn", value, f"pip install 'cuda-python<{major + 1}', or update the driver"))
    for tool in ("ptxas", "ptxas-blackwell"):
        version = _assembler(tool)
        if version and int(version.split(".")[0]) > major:
            value = f"Triton's {tool} is of CUDA {version}, the driver of CUDA {availability.written(found.driver)}: it may refuse what that makes"
            name = f"TRITON_{tool.upper().replace('-', '_')}_PATH"
            fix = f"update the driver, or set {name} to a ptxas of CUDA {major}, should the kernel below fail"
            out.append(Check("driver", tool, "warn", value, fix))
    return out


def _module() -> str:
    """The kernel module's version, where Linux shows it."""
    try:
        said = re.search(r"\s(\d+\.\d+(?:\.\d+)?)\s", Path("/proc/driver/nvidia/version").read_text())
    except OSError:
        return ""
    return f", kernel module {said[1]}" if said else ""


def _assembler(tool: str) -> str:
    """The CUDA version of an assembler in Triton's wheel ("12.9"); "" where it has none."""
    import triton

    path = Path(triton.__file__).parent / "backends/nvidia/bin" / tool
    if not path.exists():
        return ""
    done = subprocess.run([path, "--version"], capture_output=True, text=True, check=False)
    found = re.search(r"release (\d+\.\d+)", done.stdout)  # what the binary says of itself: wheels are repackaged
    return found[1] if found else ""


# Caches
def caches() -> list[Check]:
    """Ours, Triton's, and the packs: where, whether they can be written, how much is in them."""
    out = []
    home = cubin_cache.cache_folder()
    if home is None:
        out.append(Check("caches", "tritensor", "warn", "TRITENSOR_CACHE is empty: every process compiles anew", "unset TRITENSOR_CACHE"))
    else:
        kept = [p.stat().st_size for p in (home / "cubins" / f"triton-{cubin_cache.version()}").rglob("*.ttcubin")]
        text = f"{len(kept)} kernels of Triton {cubin_cache.version()}, {sum(kept) / 1e6:.1f} MB"
        out.append(_folder("tritensor", home, text, "TRITENSOR_CACHE"))
    theirs = Path(os.environ.get("TRITON_CACHE_DIR") or Path(os.environ.get("TRITON_HOME") or Path.home()) / ".triton" / "cache")
    out.append(_folder("triton", theirs, "", "TRITON_CACHE_DIR"))
    named = [Path(p) for p in os.environ.get("TRITENSOR_PACK", "").split(os.pathsep) if p]
    for path in [*named, *(sorted((home / "packs").glob("*.ttpack")) if home is not None else ())]:
        out.append(_pack(path, path in named))
    return out


def _folder(name: str, path: Path, holds: str, variable: str) -> Check:
    """Can a cache be written, is there room?"""
    there = path
    while not there.exists() and there != there.parent:  # it is made with the first kernel: what counts is the folder that is there
        there = there.parent
    if not os.access(there, os.W_OK | os.X_OK) or not there.is_dir():
        value = f"{path}: cannot be written; every process compiles anew"
        return Check("caches", name, "warn", value, f"mend its permissions, or set {variable}")
    free = shutil.disk_usage(there).free
    text = f"{path}: {holds + ', ' if holds else ''}{free / 1e9:.1f} GB free"
    if free < LEAST_SPACE:
        return Check("caches", name, "warn", text, f"free some space, or set {variable} to a folder on another disk")
    return Check("caches", name, "ok", text)


def _pack(path: Path, named: bool) -> Check:
    name = f"pack {path.stem}"
    try:
        pack = Pack(path)
    except LaunchError as error:
        return Check("caches", name, "warn", str(error), "make it again with `tritensor precompile`, or remove it")
    about = pack.about
    text = f"{path}: {pack.count} kernels for {', '.join(f'sm_{a}' for a in about.get('archs', ()))}, Triton {about.get('triton')}"
    pack.close()
    if about.get("triton") != cubin_cache.version():
        fix = f"make it again with Triton {cubin_cache.version()}" if named else ""
        return Check("caches", name, "warn" if named else "note", f"{text}: not used by Triton {cubin_cache.version()}", fix)
    return Check("caches", name, "ok", text)


# The device: in a process of its own
def on_device() -> list[Check]:
    """What doctor_probe finds, in a process that may crash or hang without taking this one along."""
    command = [sys.executable, "-m", "tritensor.doctor", PROBE]
    path = os.pathsep.join([str(Path(__file__).resolve().parents[2]), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE, env=os.environ | {"PYTHONPATH": path})
    except subprocess.TimeoutExpired:
        fix = "nvidia-smi shows who holds it; dmesg may hold an Xid error; reboot or reset the GPU"
        return [Check("device", "kernel", "fail", f"no answer from the GPU in {PATIENCE} s", fix)]
    out = [Check(*json.loads(line)) for line in done.stdout.splitlines() if line.startswith("[")]  # a library may print in between
    if done.returncode:
        last = done.stderr.strip().splitlines()[-1:] or ["it said nothing"]
        value = f"the process that worked on the GPU died with exit code {done.returncode}: {last[0]}"
        fix = "run `python -m tritensor.doctor --probe` to see all of it; dmesg may hold an Xid error"
        out.append(Check("device", "kernel", "fail", value, fix))
    return out


def compiler() -> list[Check]:
    """Without a GPU: does the compiler work at all?"""
    start = time.perf_counter()
    before = active.use(VirtualGPU(90))  # compiling needs no GPU, only somebody who records the launch
    try:
        x = new_tensor(empty((16,), np.dtype(np.float32), gpu(0)))
        with at_once():
            ops.add(x, x)
        launches = list(active.runtime().launches)  # type: ignore[attr-defined]
        cubin_cache.find_cubin(launches[0], 90)
    except LaunchError as error:
        return [Check("compiler", "triton", "fail", str(error), "reinstall triton: pip install --force-reinstall triton")]
    finally:
        active.use(before)
    value = f"an add for sm_90 compiled in {time.perf_counter() - start:.2f} s; `tritensor precompile` works here"
    return [Check("compiler", "triton", "ok", value)]


def machine_code() -> list[Check]:
    """What computes long formulas on the CPU."""
    why = native.refusal()
    if why:
        return [Check("cpu", "machine-code", "note", f"none: {why}; numpy computes")]
    return [Check("cpu", "machine-code", "ok", f"formulas run as code for {native.processor()}")]


# The report
def examine() -> list[Check]:
    """All findings, in the order in which they are printed."""
    out = packages() + settings() + driver()
    if active.emulated():
        out = [c._replace(status="note", fix="") if c.group == "driver" and c.status == "fail" else c for c in out]
    device = on_device if active.emulated() or availability.found().gpus else compiler
    return out + machine_code() + caches() + device()


def works(checks: Sequence[Check]) -> bool:
    """True where a GPU can be used: nothing failed. (Under TRITON_INTERPRET=1 none is used.)"""
    return all(c.status != "fail" for c in checks)


def text(checks: Sequence[Check]) -> str:
    """The findings as aligned lines, the verdict last."""
    longest = max(len(c.name) for c in checks)
    marks = {"ok": "ok  ", "note": "    ", "warn": "warn", "fail": "FAIL"}
    lines: list[str] = []
    group = ""
    for c in checks:
        if c.group != group:
            group = c.group
            lines.append(f"\n{group}" if lines else group)
        lines.append(f"  {marks[c.status]}  {c.name:{longest}s}  {c.value}")
        if c.fix:
            lines.append(f"        {'':{longest}s}  -> {c.fix}")
    failed = [c for c in checks if c.status == "fail"]
    warned = sum(c.status == "warn" for c in checks)
    also = f" {warned} warning{'s' if warned > 1 else ''} above." if warned else ""
    if not failed:
        verdict = f"The GPU works.{also}"
    elif active.emulated():
        verdict = f"No GPU is used: device cuda is emulated (TRITON_INTERPRET).{also}"
    else:
        verdict = f"The GPU does not work: {', '.join(dict.fromkeys(f'{c.group} {c.name}' for c in failed))}.{also}"
    return "\n".join([*lines, "", verdict])


def main(argv: Sequence[str], parser: argparse.ArgumentParser) -> int:
    """`tritensor doctor`: examine, print, and return the exit code."""
    parser.add_argument("--json", action="store_true", help="print the findings as JSON: works (true, false) and checks")
    parser.add_argument(PROBE, action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args(argv)
    if args.probe:
        probe()
        return 0
    checks = examine()
    if args.json:
        print(json.dumps({"works": works(checks), "checks": [c._asdict() for c in checks]}, indent=2))
    else:
        print(text(checks))
    return 0 if works(checks) else 1
