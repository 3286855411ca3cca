"""Debugging: what was compiled and why, which slower variants ran, hidden waits for the GPU, who takes memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from tritensor.cuda.compiler import compile_log
from tritensor.cuda.compiler.compile_log import Compile as Compile
from tritensor.cuda.streams import hidden_waits
from tritensor.ground.process import locks

if TYPE_CHECKING:  # what looks at memory is imported when it is asked for
    from tritensor.debug.allocations import MemoryTrace
    from tritensor.debug.slower_variants import Variants


def compiles() -> list[Compile]:
    """Every kernel this process compiled or loaded so far, oldest first.

    Each is a named tuple (kernel, op, types, arch, seconds, source, reason, line) that prints as a line:
    `_add(x: *bf16:16, n: i32) sm_90 for add: compiled in 0.12 s: x: *fp32 -> *bf16 (train.py:42)`. `source` is "compiled",
    "triton" (Triton's own disk cache), "disk" (tritensor's) or "pack".
    """
    return compile_log.entries()


def print_compiles(on: bool = True) -> None:
    """Print each of them to stderr as it happens (on=False: stop), through the logger `tritensor.compiles`.

    The environment variable TRITENSOR_LOG=compiles does the same from the start.
    """
    compile_log.printing(on)


def variants() -> Variants:
    """Which ops took a named slower variant in this process, how often, why, and how to mend it; the most frequent first.

        print(tt.debug.variants())   # "12 x  attention  composed  float64 has no flash kernel; to mend it: cast to bfloat16 ..."
        tt.debug.variants().clear()  # count anew

    A tuple of named tuples (op, variant, times, why, mend); its repr is a table. An op that always takes its fast kernel is not in it.
    """
    from tritensor.debug import slower_variants

    return slower_variants.list_variants()


class Wait(NamedTuple):
    """A line of the user's program that waited for the GPU: what kind of wait, where, how often."""

    kind: str
    line: str
    times: int


class SyncTrace:
    """The waits that a `sync_trace()` block saw, so far or in all. Printing it gives a table, the most frequent first."""

    def __init__(self) -> None:
        self._seen: Counter[tuple[str, str]] = Counter()
        self._lock = locks.lock()

    def _note(self, kind: str, line: str) -> None:
        # Waits are reported from every thread that uses the GPU.
        with self._lock:
            self._seen[kind, line] += 1

    @property
    def waits(self) -> list[Wait]:
        """One entry per kind and line, the most frequent first."""
        return [Wait(kind, line, n) for (kind, line), n in self._seen.most_common()]

    @property
    def count(self) -> int:
        """All waits together."""
        return self._seen.total()

    def __repr__(self) -> str:
        if not self._seen:
            return "no waits for the GPU"
        rows = [f"{self.count} waits for the GPU"]
        return "\n".join(rows + [f"{w.times:6d} x  {w.kind:20s} {w.line}" for w in self.waits])


@contextmanager
def sync_trace() -> Iterator[SyncTrace]:
    """Count the places where the host waits for the GPU, on all threads: `.item()`, `.cpu()`, `synchronize()`, waits for events.

        with tt.debug.sync_trace() as trace:
            train_step()
        print(trace)

    Blocks may be nested: the outer one sees the inner one's waits as well.
    """
    trace = SyncTrace()
    # One listener slot: nested blocks chain.
    outer = hidden_waits.listener

    def listen(kind: str, line: str) -> None:
        trace._note(kind, line)
        if outer is not None:
            outer(kind, line)

    hidden_waits.listener = listen
    try:
        yield trace
    finally:
        hidden_waits.listener = outer


def memory_report() -> str:
    """What is in memory now, as text: tensors by device and what they are for (parameters, gradients, saved for backward, others) and by shape, what the C
    library has handed out, the lines that numpy's arrays come from where tracemalloc runs, and for each GPU that is used its memory_summary.

    It walks over all Python objects, so it takes from a hundredth of a second to several.
    """
    # Loads nn and optim, whose classes say what a tensor is for.
    from tritensor.debug import tensors_alive

    return tensors_alive.report()


def memory_trace() -> MemoryTrace:
    """Who takes memory, on the CPU and on GPUs, on all threads: by module, op and line; what of it was there at the peak, and what is left.

        with tt.debug.memory_trace() as trace:
            train_step()
        print(trace)            # a table, the largest part of the peak first
        print(trace.leaks())    # what is still there, and who holds it

    Ops are a few times slower meanwhile.
    """
    from tritensor.debug.allocations import MemoryTrace

    return MemoryTrace()
