"""`python -m bench checkpoint`: a checkpoint of 1 GB saved and loaded in every format, beside plain reading and writing of its bytes and beside torch.

Each is timed in a process of its own, from a file that is in the page cache, so that what is measured is the work and not the disk; a load counts
until one byte of every page has been looked at. The peak is that of the process's memory above what it had before, as a share of the bytes.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
TENSORS = 64


def _looked_at(memory: np.ndarray) -> None:
    """One byte of every page."""
    memory.reshape(-1).view(np.uint8)[::4096].sum()


def _state(t: Any, nbytes: int) -> dict[str, Any]:
    """Parameters of that many bytes, all pages there."""
    each = nbytes // TENSORS // 4
    return {f"layer{i}.weight": t.from_numpy(np.full(each, i, np.float32)) for i in range(TENSORS)}


def _plain_write(path: Path, nbytes: int) -> Callable[[], Any]:
    arrays = [np.full(nbytes // TENSORS, i, np.uint8) for i in range(TENSORS)]

    def write() -> None:
        with open(path, "wb") as file:
            for a in arrays:
                file.write(a.data)
            file.flush()
            os.fsync(file.fileno())

    return write


def _plain_read(path: Path, nbytes: int) -> Callable[[], Any]:
    def read() -> Any:
        memory = np.empty(path.stat().st_size, np.uint8)
        with open(path, "rb", buffering=0) as file:
            at = 0
            while at < len(memory):
                at += file.readinto(memory[at:]) or 0
        _looked_at(memory)
        return memory

    return read


def _save(path: Path, nbytes: int, format: str) -> Callable[[], Any]:
    import tritensor as tt

    state = _state(tt, nbytes)
    tt.save({"x": tt.ones(2)}, path, format=format)  # what is imported for it is there
    return lambda: tt.save(state, path, format=format)


def _load(library: str, path: Path, **how: Any) -> Callable[[], Any]:
    t = importlib.import_module(library)

    def load() -> Any:
        found = t.load(path, **how)
        for x in found.values():
            _looked_at(x.numpy())
        return found

    return load


def _torch_save(path: Path, nbytes: int, zipped: bool) -> Callable[[], Any]:
    import torch

    state = _state(torch, nbytes)

    def save() -> None:
        torch.save(state, path, _use_new_zipfile_serialization=zipped)
        with open(path, "rb") as file:
            os.fsync(file.fileno())

    return save


# What is measured: name: (the file, whether it writes, what makes the call).
CASES: dict[str, tuple[str, bool, Callable[[Path, int], Callable[[], Any]]]] = {
    "plain write": ("plain", True, _plain_write),
    "save safetensors": ("x.safetensors", True, lambda p, n: _save(p, n, "safetensors")),
    "save torch": ("x.pt", True, lambda p, n: _save(p, n, "torch")),
    "save torch-legacy": ("legacy.pt", True, lambda p, n: _save(p, n, "torch-legacy")),
    "torch.save": ("theirs.pt", True, lambda p, n: _torch_save(p, n, True)),
    "torch.save legacy": ("theirs-legacy.pt", True, lambda p, n: _torch_save(p, n, False)),
    "plain read": ("plain", False, _plain_read),
    "load safetensors": ("x.safetensors", False, lambda p, n: _load("tritensor", p)),
    "load safetensors mmap=False": ("x.safetensors", False, lambda p, n: _load("tritensor", p, mmap=False)),
    "load torch": ("x.pt", False, lambda p, n: _load("tritensor", p)),
    "load torch mmap=False": ("x.pt", False, lambda p, n: _load("tritensor", p, mmap=False)),
    "load torch-legacy": ("legacy.pt", False, lambda p, n: _load("tritensor", p)),
    "torch.load": ("x.pt", False, lambda p, n: _load("torch", p, weights_only=True)),
    "torch.load mmap=True": ("x.pt", False, lambda p, n: _load("torch", p, weights_only=True, mmap=True)),
    "torch.load legacy": ("legacy.pt", False, lambda p, n: _load("torch", p, weights_only=True)),
}


def _peak() -> int:
    """The most memory that this process has had, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _warm(path: Path) -> None:
    """Bring a file into the page cache, and what others have written to the disk."""
    os.sync()
    with open(path, "rb", buffering=0) as file:
        while file.read(1 << 20):
            pass


def _child(name: str, folder: Path, nbytes: int) -> None:
    """Run one case and say how long it took, and what its peak is beside what it began with."""
    file, writes, make = CASES[name]
    call = make(folder / file, nbytes)
    if not writes:
        _warm(folder / file)
    before = _peak()
    start = time.perf_counter()
    kept = call()
    seconds = time.perf_counter() - start
    print(json.dumps({"seconds": seconds, "peak": (_peak() - before) / nbytes, "kept": kept is not None}))


def measure(name: str, folder: Path, nbytes: int) -> dict[str, float]:
    """Seconds and peak of one case, in a process of its own."""
    command = [sys.executable, "-m", "bench.cpu.checkpoint", "--child", name, "--folder", str(folder), "--bytes", str(nbytes)]
    env = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"} | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, env=env, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{name}: exit code {done.returncode}\n{done.stderr[-2000:]}")
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def names(peer: bool) -> list[str]:
    """The cases, those of torch where it is installed; what writes comes before what reads."""
    return [n for n in CASES if peer or not n.startswith("torch")]


def line(name: str, found: list[dict[str, float]], plain: list[dict[str, float]], nbytes: int) -> str:
    """What is printed of a case: GB/s, its time beside that of plain reading or writing in the same round, its peak. Of a save the model itself is
    there already, so that the peak is what comes on top of it."""
    seconds = statistics.median(f["seconds"] for f in found)
    ratio = statistics.median(f["seconds"] / p["seconds"] for f, p in zip(found, plain, strict=True))
    peak = max(f["peak"] for f in found) + (1.0 if CASES[name][1] else 0.0)
    return f"{name:28} {seconds:7.3f} s {nbytes / seconds / 1e9:6.2f} GB/s   {ratio:5.2f} x plain   peak {peak:4.2f} x the bytes"


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench checkpoint", description=__doc__.splitlines()[0])
    parser.add_argument("--bytes", type=int, default=10**9, help="of tensors in a checkpoint (default 1e9)")
    parser.add_argument("--rounds", type=int, default=5, help="how often each is timed; medians are told")
    parser.add_argument("--folder", default=None, help="where the files go (default: a temporary folder)")
    parser.add_argument("--child", default=None, help=argparse.SUPPRESS)
    args = parser.parse_args(argv)
    nbytes = args.bytes // (TENSORS * 4) * TENSORS * 4
    if args.child:
        _child(args.child, Path(args.folder), nbytes)
        return 0
    wanted = names(importlib.util.find_spec("torch") is not None)
    with tempfile.TemporaryDirectory(dir=args.folder) as folder:
        rounds = [{n: measure(n, Path(folder), nbytes) for n in wanted} for _ in range(args.rounds)]
    for name in wanted:
        plain = "plain write" if CASES[name][1] else "plain read"
        print(line(name, [r[name] for r in rounds], [r[plain] for r in rounds], nbytes))
    return 0


if __name__ == "__main__":
    sys.exit(main())
