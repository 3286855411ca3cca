"""Mutated checkpoint files by the thousand: `python -m tests.io.fuzz --count 100000 --seed 1`. Exit code 1 when one crashes, runs code or takes memory.

Each file is loaded in a worker that may use little more memory than it has, and in which a hook of Python's own audit forbids what no load does: to
import, compile or execute, to start a process, to open a file for writing. A load gives a value or a CheckpointError; anything else is a failure,
and the file is kept for it (--keep).
"""

from __future__ import annotations

import argparse
import io
import multiprocessing
import os
import random
import resource
import signal
import sys
import time
import traceback
import tracemalloc
from collections import Counter
from pathlib import Path
from queue import Empty
from typing import Any

from tests.io.mutations import mutated

SLACK = 300 << 20  # bytes of address space that a worker may take beside what it has
WORTH, LEAST = 256, 2_000_000  # bytes that one byte of a file may become as Python's objects, and what a load takes anyway
SECONDS = 20  # for one file
FORBIDDEN = (
    "import", "exec", "compile", "os.system", "os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn", "os.remove", "os.rename", "os.mkdir",
    "os.truncate", "subprocess.Popen", "socket.connect", "ctypes.dlopen", "pickle.find_class", "shutil.rmtree", "code.__new__", "marshal.loads",
)  # fmt: skip


class RanCode(BaseException):
    """A load did what none does; no `except Exception` holds it up."""


def seeds() -> list[tuple[str, bytes]]:
    """Valid files of every format, small ones, by kind."""
    import tritensor as tt

    layer = tt.nn.Linear(3, 2)
    optimizer = tt.optim.Adam(layer.parameters())
    layer(tt.ones(1, 3)).sum().backward()
    optimizer.step()
    base = tt.arange(12.0)
    objects: list[Any] = [
        {"a": tt.arange(4.0), "b": tt.arange(3, dtype=tt.int8), "none": tt.zeros(0, 3)},
        {"model": layer.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 3, "betas": (0.9, 0.99)},
        {"base": base, "part": base[3:6], "t": base.reshape(3, 4).T, "h": base.half(), "p": tt.nn.Parameter(base[:2].clone())},
    ]
    found = []
    for obj in objects:
        for format, kind in (("safetensors", "safetensors"), ("torch", "zip"), ("torch-legacy", "legacy")):
            file = io.BytesIO()
            tt.save(obj, file, format=format)
            found.append((kind, file.getvalue()))
    for path in sorted((Path(__file__).parent / "torch_files").glob("*.pt")):
        found.append(("legacy" if "legacy" in path.name else "zip", path.read_bytes()))
    return found


def touched(x: Any, found: set[int]) -> None:
    """Read all that was loaded, as far as it is not endless (a view may repeat an element as often as it likes)."""
    import tritensor as tt

    todo = [x]
    while todo:
        x = todo.pop()
        if id(x) in found:
            continue
        found.add(id(x))
        if isinstance(x, tt.Tensor):
            array = x._array
            if array.size:
                array[(0,) * array.ndim], array[(-1,) * array.ndim]
            if array.nbytes < 1_000_000:
                array.tobytes()
        elif isinstance(x, dict):
            todo += [*x.keys(), *x.values()]
        elif isinstance(x, list | tuple | set | frozenset):
            todo += x


def loaded(content: bytes, path: Path | None) -> str:
    """What comes of a file: "loaded", or how it was refused."""
    import tritensor as tt
    from tritensor.ground.errors import CheckpointError

    try:
        touched(tt.load(io.BytesIO(content) if path is None else path), set())
    except CheckpointError as error:
        if not str(error).startswith(("BytesIO: ", f"{path}: ")):
            raise AssertionError(f"the message does not name the file: {error}") from error
        return type(error).__name__
    return "loaded"


def judged(content: bytes, path: Path | None, measured: bool) -> str:
    """`loaded`, with its memory measured where that is asked."""
    if not measured:
        return loaded(content, path)
    tracemalloc.start()
    try:
        return loaded(content, path)
    finally:
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        if peak > WORTH * len(content) + LEAST:
            raise AssertionError(f"{len(content)} bytes made load take {peak}")


def confined() -> None:
    """From now on this process has little memory, and may do nothing but load."""
    with open("/proc/self/statm") as file:
        pages = int(file.read().split()[0])
    limit = pages * resource.getpagesize() + SLACK
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    def watch(event: str, args: tuple[Any, ...]) -> None:
        written = event == "open" and isinstance(args[2], int) and args[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
        if watching[0] and (written or event in FORBIDDEN):
            raise RanCode(f"{event} {str(args)[:200]}")

    sys.addaudithook(watch)


watching = [False]


def _late(*_: Any) -> None:
    raise RanCode(f"a load takes more than {SECONDS} s")


def case(files: list[tuple[str, bytes]], seed: int, number: int) -> tuple[str, bytes]:
    """The file of a number, and of what kind it was."""
    rng = random.Random(f"{seed} {number}")
    kind, content = rng.choice(files)
    return kind, mutated(kind, content, rng, [c for _, c in files])


def work(seed: int, numbers: range, results: Any, folder: str) -> None:
    """Load the files of some numbers; what came of them is put into `results`, where it stands into a file."""
    files = seeds()
    path = Path(folder) / f"{numbers.start}.ckpt"
    at = os.open(path.with_suffix(".at"), os.O_WRONLY | os.O_CREAT)
    for _, content in files:  # whatever a load imports is imported now
        judged(content, None, True)
        path.write_bytes(content)
        judged(content, path, False)
    handle = os.open(path, os.O_WRONLY)
    signal.signal(signal.SIGALRM, _late)
    confined()
    counts: Counter[str] = Counter()
    for number in numbers:
        os.pwrite(at, number.to_bytes(8, "little"), 0)
        kind, content = case(files, seed, number)
        on_disk = number % 4 == 0 and len(content) > 0
        if on_disk:
            os.ftruncate(handle, 0)
            os.pwrite(handle, content, 0)
        signal.alarm(SECONDS)
        watching[0] = True
        try:
            outcome = judged(content, path if on_disk else None, number % 16 == 1)
        except BaseException:
            watching[0] = False
            counts["FAILED"] += 1
            results.put((number, kind, traceback.format_exc(limit=-6)))
        else:
            counts[f"{kind}: {outcome}"] += 1
        finally:
            watching[0] = False
            signal.alarm(0)
    results.put((None, "", counts))


def run(count: int, seed: int, jobs: int, folder: str) -> tuple[Counter[str], list[tuple[int, str, str]]]:
    """(what came of the files, the failures): the number of the file, its kind, what happened."""
    context = multiprocessing.get_context("spawn")
    total: Counter[str] = Counter()
    failures: list[tuple[int, str, str]] = []
    share = -(-count // jobs)
    waiting = [range(i * share, min((i + 1) * share, count)) for i in range(jobs) if i * share < count]
    while waiting:
        running = []
        for numbers in waiting:
            queue = context.Queue()
            process = context.Process(target=work, args=(seed, numbers, queue, folder))
            process.start()
            running.append((process, queue, numbers))
        waiting = []
        for process, queue, numbers in running:
            dead_at = _collected(process, queue, Path(folder) / f"{numbers.start}.at", total, failures)
            if dead_at is not None and dead_at + 1 < numbers.stop:
                waiting.append(range(dead_at + 1, numbers.stop))
    return total, failures


def _collected(process: Any, queue: Any, at: Path, total: Counter[str], failures: list[tuple[int, str, str]]) -> int | None:
    """Take what a worker tells until it is done; the number of the file that killed it, if one did."""
    while True:
        try:
            number, kind, told = queue.get(timeout=0.5)
        except Empty:
            if process.is_alive():
                continue
            crashed = int.from_bytes(at.read_bytes(), "little") if at.exists() else -1
            failures.append((crashed, "?", f"the process died with exit code {process.exitcode}"))
            return crashed if crashed >= 0 else sys.maxsize
        if number is None:
            total.update(told)
            process.join()
            return None
        failures.append((number, kind, told))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=100_000, help="how many files")
    parser.add_argument("--seed", type=int, default=0, help="which: the same seed gives the same files")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="worker processes")
    parser.add_argument("--keep", default=None, help="a folder for files that failed")
    parser.add_argument("--only", type=int, default=None, help="load the file of this number here, with its traceback")
    args = parser.parse_args()
    if args.only is not None:
        kind, content = case(seeds(), args.seed, args.only)
        print(f"{kind}, {len(content)} bytes: {judged(content, None, True)}")
        return 0
    import tempfile

    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        total, failures = run(args.count, args.seed, args.jobs, folder)
    for outcome, n in sorted(total.items()):
        print(f"{n:8} {outcome}")
    for number, kind, told in failures[:20]:
        print(f"--- file {number} ({kind}), seed {args.seed}:\n{told}")
        if args.keep:
            os.makedirs(args.keep, exist_ok=True)
            Path(args.keep, f"{args.seed}-{number}.ckpt").write_bytes(case(seeds(), args.seed, number)[1])
    print(f"{args.count} files, {len(failures)} failures, {time.perf_counter() - start:.0f} s")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
