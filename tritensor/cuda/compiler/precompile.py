"""Compile launches that were recorded without a GPU into a pack, in several processes; one that dies costs one kernel."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Iterator, Sequence
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, NamedTuple

from tritensor.cuda.compiler import cubin_cache
from tritensor.cuda.compiler.arguments import Specialization
from tritensor.cuda.compiler.pack import Pack, write_pack
from tritensor.errors import LaunchError

# Compute capabilities that Triton's assembler knows, and the GPUs that have them.
ARCHS = {
    75: "T4, RTX 20",
    80: "A100, A30",
    86: "RTX 30, A10, A40",
    87: "Jetson Orin",
    89: "L4, L40, RTX 40",
    90: "H100, H200, GH200",
    100: "B200, GB200",
    103: "B300, GB300",
    120: "RTX 50",
    121: "DGX Spark",
}


class Done(NamedTuple):
    """One kernel's end: its row for the pack, or what went wrong."""

    row: tuple[bytes, bytes, bytes] | None
    failure: str


def archs(text: str) -> list[int]:
    """The capabilities in "sm_80,sm_90" (or "80,90"), each once. Raises ValueError for one that is not known."""
    found = []
    for part in text.split(","):
        name = part.strip().lower().removeprefix("sm_").removesuffix("a")
        if not name.isdigit() or int(name) not in ARCHS:
            known = ", ".join(f"sm_{a} ({gpus})" for a, gpus in ARCHS.items())
            raise ValueError(f"unknown architecture {part.strip()!r}; known are {known}")
        if int(name) not in found:
            found.append(int(name))
    return found


def warm(arch: int) -> None:
    """Let Triton hash its own sources and its assembler, half a second that each process forked from this one then has for nothing."""
    from triton.backends.compiler import GPUTarget
    from triton.compiler.compiler import make_backend

    try:
        from triton.runtime.cache import triton_key  # where it is from Triton 3.8 on
    except ImportError:
        from triton.compiler.compiler import triton_key
    triton_key()
    make_backend(GPUTarget("cuda", arch, 32)).hash()


def _work(specs: Sequence[Specialization], arch: int, pipe: Connection) -> None:
    """Answer each number that comes with the end of that kernel."""
    while True:
        try:
            n = pipe.recv()
            try:
                end = Done(cubin_cache.row(specs[n], arch), "")
            except LaunchError as error:
                end = Done(None, str(error))
            pipe.send(end)
        except (EOFError, ConnectionError):  # the parent is done, or gone
            return


class _Worker:
    """A process that compiles, one kernel at a time; `at` is the one it is at."""

    def __init__(self, specs: Sequence[Specialization], arch: int, others: Sequence[Connection]) -> None:
        fork = multiprocessing.get_context("fork")  # kernels and their constants need no pickling
        self.pipe, theirs = fork.Pipe()
        self.process = fork.Process(target=self._run, args=(specs, arch, theirs, others), daemon=True)
        self.process.start()
        theirs.close()
        self.at = -1

    def _run(self, specs: Sequence[Specialization], arch: int, pipe: Connection, others: Sequence[Connection]) -> None:
        for parents in (self.pipe, *others):  # inherited: while one is open here, its worker does not see that the parent is gone
            parents.close()
        _work(specs, arch, pipe)

    def give(self, n: int) -> None:
        self.at = n
        self.pipe.send(n)


def compile_all(specs: Sequence[Specialization], arch: int, processes: int) -> Iterator[tuple[int, Done]]:
    """(place, its end) for every specialization, in the order in which they end. A process that dies costs the kernel it was at.

    The caller must not have started the GPU's driver, which does not live through a fork.
    """
    from tritensor.cuda.compiler.compile import describe

    warm(arch)
    todo = list(reversed(range(len(specs))))
    running: dict[Any, _Worker] = {}
    try:
        while todo or running:
            while todo and len(running) < processes:
                worker = _Worker(specs, arch, list(running))
                running[worker.pipe] = worker
                worker.give(todo.pop())
            ready: Any
            for ready in wait(list(running)):
                worker = running[ready]
                n = worker.at
                try:
                    end = ready.recv()
                except (EOFError, ConnectionError):
                    worker.process.join()
                    del running[ready]
                    text = f"{describe(specs[n])} for sm_{arch}: the compiler's process died ({_cause(worker.process.exitcode)})"
                    yield n, Done(None, text)
                    continue
                if todo:
                    worker.give(todo.pop())
                else:
                    ready.close()
                    worker.process.join()
                    del running[ready]
                yield n, end
    finally:  # an interrupted run leaves nobody behind
        for worker in running.values():
            worker.process.terminate()


def _cause(code: int | None) -> str:
    if code is not None and code < 0:
        return f"killed by signal {-code}: is there memory enough? --jobs 1 needs least"
    return f"exit code {code}"


def check_writable(path: Path) -> Pack | None:
    """Make sure that a pack can be written to `path`, before anything is compiled; returns the pack that is there and is to be extended.

    Raises LaunchError naming what is in the way: a folder, a foreign file, a pack of another Triton, no right to write.
    """
    if path.is_dir():
        raise LaunchError(f"--out {path}: is a folder; give the name of a file in it, such as {path / 'kernels.ttpack'}")
    there = None
    if path.exists():
        try:
            there = Pack(path)
        except LaunchError as error:
            raise LaunchError(f"--out {path}: a file that is no whole pack stands there ({error})") from None
        if there.about.get("triton") != cubin_cache.version():
            made = there.about.get("triton")
            there.close()
            raise LaunchError(
                f"--out {path}: a pack of Triton {made} stands there and this is Triton {cubin_cache.version()}; remove it or give another name"
            )
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        probe = path.with_name(f".{path.name}.{os.getpid()}")
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise LaunchError(f"--out {path}: cannot be written: {error.strerror or error}; give a path in a folder of yours") from None
    return there


def save(path: Path, rows: dict[bytes, tuple[bytes, bytes, bytes]], archs: Sequence[int], there: Pack | None, made_by: str) -> int:
    """Write rows and what `there` holds of other kernels to a pack; returns its size in bytes.

    Kernels that were made anew from a changed source replace the old ones. Raises OSError.
    """
    all_archs = set(archs)
    rows = dict(rows)
    if there is not None:
        all_archs |= set(there.about.get("archs", ()))
        fresh = {meaning for _, meaning, _ in rows.values()}
        for key, meaning, blob in there.rows():
            if meaning not in fresh:
                rows.setdefault(key, (key, meaning, blob))
    about = {"triton": cubin_cache.version(), "tritensor": made_by, "archs": sorted(all_archs), "kernels": len(rows)}
    return write_pack(path, about, rows.values())
