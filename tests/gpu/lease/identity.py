"""Identity of a run: the tree's files, its commit, the GPU and what drives it. `python -m tests.gpu.lease.identity` asks the GPU, as JSON."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from tests.gpu.workers import ROOT

FOLDERS = ("tritensor", "kernels", "autograd", "nn", "optim", "tests", "bench", "examples")
SUFFIXES = (".py", ".json", ".txt", ".c", ".h", ".toml")
APART = ("bench/results/", "tests/mutate/", "tests/peer/")  # what no step reads


def tree(root: Path = ROOT) -> str:
    """A digest of the files that a run depends on: the same in a checkout and in a copy of it without its history."""
    state = hashlib.sha256()
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            name = path.relative_to(root).as_posix()
            if path.suffix in SUFFIXES and path.is_file() and "__pycache__" not in name and not name.startswith(APART):
                state.update(f"{name}\0{hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return state.hexdigest()[:20]


def commit() -> str:
    """The checkout's commit, with a + where files differ from it; "" where there is no history."""

    def git(*words: str) -> str:
        try:
            done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False, timeout=20)
        except (OSError, subprocess.SubprocessError):
            return ""
        return done.stdout.strip() if done.returncode == 0 else ""

    found = git("rev-parse", "HEAD")
    return found + ("+" if found and git("status", "--porcelain", "--untracked-files=no") else "")


def installed(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


def asked(environment: Mapping[str, str], seconds: float = 60.0) -> dict[str, Any]:
    """What a process of its own finds out about the GPU; "why" says why there is none."""
    command = [sys.executable, "-m", "tests.gpu.lease.identity"]
    try:
        done = subprocess.run(command, cwd=ROOT, env=dict(environment), capture_output=True, text=True, check=False, timeout=seconds)
        return json.loads(done.stdout.splitlines()[-1])
    except subprocess.TimeoutExpired:
        return {"gpu": "", "why": f"the GPU gave no answer in {seconds:.0f} s"}
    except (ValueError, IndexError):
        last = done.stderr.strip().splitlines()[-1:] or ["it said nothing"]
        return {"gpu": "", "why": f"the process that asked for the GPU ended with {done.returncode}: {last[0][:300]}"}


def of_the_gpu() -> dict[str, Any]:
    """The GPU of this process, and what drives it."""
    from tritensor import cuda
    from tritensor.cuda.runtime import active

    facts = {name: installed(name) for name in ("triton", "numpy", "torch")} | {"python": sys.version.split()[0]}
    if not cuda.is_available():
        return {"gpu": "", "why": cuda.why(), **facts}
    properties = cuda.get_device_properties(0)
    major, minor = properties.capability
    emulated = "emulated " if active.emulated() else ""
    return {"gpu": emulated + properties.name, "arch": 10 * major + minor, "driver": driver(properties.driver_version), **facts}


def driver(cuda_version: int) -> str:
    """The kernel module's version where Linux shows it, else the CUDA version that the driver speaks."""
    try:
        words = Path("/proc/driver/nvidia/version").read_text().split()
    except OSError:
        return str(cuda_version)
    return next((w for w in words if w.count(".") >= 1 and w.replace(".", "").isdigit()), str(cuda_version))


def environment(pack: Path | None = None, commit: str = "") -> dict[str, str]:
    """The environment of every step: the real device, unless tests ask for the emulated one; the pack; the commit, where a copy has no history."""
    made = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"}
    if made.get("TRITENSOR_GPU_TESTS") == "emulated":
        made["TRITON_INTERPRET"] = "1"
    made |= {"PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1", "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    if pack is not None:
        made["TRITENSOR_PACK"] = os.pathsep.join(filter(None, [str(pack), made.get("TRITENSOR_PACK", "")]))
    if commit:
        made["TRITENSOR_BENCH_COMMIT"] = commit
    return made


if __name__ == "__main__":
    print(json.dumps(of_the_gpu()))
