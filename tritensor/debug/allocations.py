"""Memory trace of a block: what ops and gradients allocate, by module, op and line; how much was there at the peak and is left at the end."""

from __future__ import annotations

import functools
import threading
import time
import weakref
from collections.abc import Callable
from types import CodeType
from typing import Any, NamedTuple

import numpy as np

from tritensor.autograd import engine
from tritensor.autograd import walk as walk_module
from tritensor.autograd.node import Branch
from tritensor.cuda.memory.report import size
from tritensor.ground.call_site import file_and_line, line_of, user_instruction, wrapper
from tritensor.ground.process import locks
from tritensor.nn.module import Module
from tritensor.ops.array import CudaArray
from tritensor.profiler.probes.forward import forward_probe
from tritensor.profiler.recording import Options, Patches, Recording, held

_ROWS = 20  # rows of a report


class Site(NamedTuple):
    """Where memory was asked for: the module's path ("" outside of any), the op or node, the user's line."""

    module: str
    op: str
    line: str


class Use(NamedTuple):
    """What one place did with memory, in bytes: what was there at the peak of its device, what is there at the end, all that it made, in how many pieces."""

    site: Site
    device: str
    at_peak: int
    at_end: int
    made: int
    times: int


class Change(NamedTuple):
    """One allocation (nbytes > 0) or the end of one (below 0)."""

    nbytes: int
    device: str
    key: tuple[str, str, CodeType, int]
    number: int
    address: int
    time: int  # nanoseconds since 1970


class _Modules(threading.local):
    """The modules that run in a thread, with their paths, the innermost last."""

    def __init__(self) -> None:
        self.running: list[tuple[Any, str]] = []


class MemoryTrace:
    """What `memory_trace()` gives: print it during the block or after. It keeps no tensor alive.

    Seen are results of ops and gradients that backward hands on, by the memory that they own; not what ops need for themselves while they run, nor arrays that
    numpy makes. `peak` and `now` count all, as the C library and the GPU's allocator do.
    """

    def __init__(self) -> None:
        self._recording = Recording(Options(), around=self._around)
        self._changes: list[Change] = []
        self._alive: dict[int, tuple[weakref.ref[Any], int]] = {}  # by id of what owns memory: a reference, the number of its change
        self._lock = locks.rlock()  # the collector may end an allocation while we hold it
        self._modules = _Modules()
        self._names: dict[int, dict[int, str]] = {}
        self._nodes: dict[int, str] = {}  # by number of a node, the path of the module that it was made in
        self._start = self._peak = (0, 0)

    def __enter__(self) -> MemoryTrace:
        self._start = self._peak = held()
        self._recording.begin(forward_probe, self._probe)
        return self

    def __exit__(self, *exc: object) -> None:
        self._look()
        self._recording.end()

    # -- recording
    def _probe(self, recording: Recording, patches: Patches) -> None:
        """Stand around calls of modules and the engine's steps."""
        call, walk, add = Module.__call__, walk_module.walk_arrays, engine.accumulate

        @wrapper
        @functools.wraps(call)
        def entered(module: Any, *args: Any, **kwargs: Any) -> Any:
            running = self._modules.running
            running.append((module, self._path(module)))
            try:
                return call(module, *args, **kwargs)
            finally:
                running.pop()

        # Node by node, so that each gradient is attributed to the node that made it.
        def walked(order: list[Any], pending: dict[Any, Any], result: dict[Any, Any], *rest: Any) -> None:
            for n in order:
                # A Branch only forwards one output of a node and makes nothing.
                op = "" if type(n) is Branch else n.name()
                walk([n], pending, result, *rest)
                if op:
                    there = [result.get(e, (None,))[0] if e in result else pending.get(e) for e in n.edges if e is not None]
                    self._note(op, self._nodes.get(n.sequence, ""), [g for x in there for g in (x if isinstance(x, list) else (x,))], ())

        def added(leaf: Any, g: Any, own: bool, create_graph: bool) -> None:
            add(leaf, g, own, create_graph)
            self._note("AccumulateGrad", "", [getattr(leaf._grad, "_array", None)], ())

        patches.put(Module, "__call__", entered)
        patches.put(walk_module, "walk_arrays", walked)
        patches.put(engine, "accumulate", added)

    def _around(self, recording: Recording, op: Any, call: Callable[..., Any]) -> Callable[..., Any]:
        @wrapper
        @functools.wraps(call)
        def watched(*args: Any, **attrs: Any) -> Any:
            # Ops keep the wrapper until the table is restored: outside the block it must cost nothing.
            if not recording.on:
                return call(*args, **attrs)
            out = call(*args, **attrs)
            outs = out if type(out) is tuple else (out,)
            module = self._modules.running[-1][1] if self._modules.running else ""
            self._note(op.name, module, [getattr(y, "_array", None) for y in outs], args)
            node = getattr(outs[0], "_node", None)
            if node is not None:
                self._nodes[(node.edges[0] if type(node) is Branch else node).sequence] = module
            return out

        return watched

    def _path(self, module: Any) -> str:
        """A module's path below the one that runs around it."""
        running = self._modules.running
        if not running:
            return type(module).__name__
        outer, path = running[-1]
        below = self._names.get(id(outer))
        # named_modules walks the whole tree: once for each outer module.
        if below is None:
            below = self._names[id(outer)] = {id(m): n for n, m in outer.named_modules() if n}
        return f"{path}.{below.get(id(module), type(module).__name__)}"

    def _note(self, op: str, module: str, arrays: list[Any], inputs: tuple[Any, ...]) -> None:
        """Write down the memory of arrays that nobody has owned before."""
        self._look()
        before = {
            id(memory_owner(x._array))
            for given in inputs
            for x in (given if isinstance(given, list | tuple) else (given,))
            if hasattr(x, "_array")
        }
        for array in arrays:
            owner = memory_owner(array)
            # Views and in-place results lie in memory of an input, which was counted when it was made.
            if owner is None or not owner.nbytes or id(owner) in before:
                continue
            with self._lock:
                # Two outputs of one op may share memory.
                if id(owner) in self._alive:
                    continue
                number = len(self._changes)
                device = str(owner.device) if not isinstance(owner, np.ndarray) else "cpu"
                address = owner.__array_interface__["data"][0] if device == "cpu" else owner.pointer
                change = Change(int(owner.nbytes), device, (module, op, *user_instruction()), number, address, time.time_ns())
                self._changes.append(change)
                self._alive[id(owner)] = weakref.ref(owner, functools.partial(self._ended, id(owner), change)), number

    def _ended(self, key: int, change: Change, gone: Any) -> None:
        with self._lock:
            found = self._alive.get(key)
            # ids are used again: a later allocation may have this one's.
            if found is not None and found[1] == change.number:
                del self._alive[key]
            self._changes.append(change._replace(nbytes=-change.nbytes, time=time.time_ns()))

    def _look(self) -> None:
        now = held()
        self._peak = max(self._peak[0], now[0]), max(self._peak[1], now[1])

    # -- results
    @property
    def changes(self) -> list[Change]:
        """All allocations and ends of such, in their order."""
        with self._lock:
            return list(self._changes)

    @property
    def peak(self) -> dict[str, int]:
        """The most bytes that were held more than at the beginning, seen between ops: of the C library ("cpu"), on all GPUs ("cuda")."""
        return {"cpu": self._peak[0] - self._start[0], "cuda": self._peak[1] - self._start[1]}

    @property
    def uses(self) -> list[Use]:
        """What each place did, the largest part of a peak first."""
        changes = self.changes
        found: dict[tuple[Site, str], list[int]] = {}
        peaks = _find_peaks(changes)
        live: dict[tuple[Site, str], int] = {}
        for i, c in enumerate(changes):
            key = _find_site(c.key), c.device
            row = found.setdefault(key, [0, 0, 0, 0])
            live[key] = live.get(key, 0) + c.nbytes
            if c.nbytes > 0:
                row[2] += c.nbytes
                row[3] += 1
            # Rows at the moment of the device's peak, not each row's own peak.
            if peaks.get(c.device) == i:
                for k in live:
                    if k[1] == c.device:
                        found[k][0] = live[k]
        for key, row in found.items():
            row[1] = live[key]
        uses = [Use(site, device, *row) for (site, device), row in found.items()]
        return sorted(uses, key=lambda u: (-u.at_peak, -u.made, u.site))

    def alive(self) -> list[Any]:
        """The tensors that the block has made and that are still there, the largest first."""
        import gc

        from tritensor.tensor.core import Tensor

        with self._lock:
            made_here = {key for key, (ref, _) in self._alive.items() if ref() is not None}
        seen: set[int] = set()
        out = []
        # A list first: the loop makes objects, which the collector's own list would show.
        for t in [o for o in gc.get_objects() if isinstance(o, Tensor)]:
            owner = memory_owner(getattr(t, "_array", None))  # a tensor that a known path is to hand out has none yet
            if id(owner) in made_here and id(owner) not in seen:
                seen.add(id(owner))
                out.append(t)
        return sorted(out, key=lambda t: -memory_owner(t._array).nbytes)

    def leaks(self, most: int = 3) -> str:
        """What the block has made and is still there, by place, and who holds the largest of it (see cuda.why_alive)."""
        from tritensor.cuda.memory.statistics import why_alive

        left = [u for u in self.uses if u.at_end]
        if not left:
            return "nothing that was made in the block is left"
        left.sort(key=lambda u: -u.at_end)
        lines = [f"{size(sum([u.at_end for u in left]))} that were made in the block are left:"]
        lines += [f"  {size(u.at_end):>12}  {_describe_use(u)}" for u in left[:_ROWS]]
        there = self.alive()[:most]
        while there:
            lines.append(why_alive(there.pop(0)))  # which no variable of ours holds meanwhile
        return "\n".join(lines)

    def __repr__(self) -> str:
        uses = self.uses
        out = []
        for device in sorted({u.device for u in uses}):
            rows = [u for u in uses if u.device == device]
            at_peak, at_end = sum([u.at_peak for u in rows]), sum([u.at_end for u in rows])
            whole = self.peak["cpu" if device == "cpu" else "cuda"]
            out.append(
                f"memory of {device} by where it was asked for: {size(at_peak)} at the peak, {size(at_end)} left; all together held at most "
                f"{size(max(whole, 0))} more than at the beginning"
            )
            out.append(f"  {'at the peak':>12}{'left':>12}{'made':>12}{'times':>8}  where")
            out += [f"  {size(u.at_peak):>12}{size(u.at_end):>12}{size(u.made):>12}{u.times:>8}  {_describe_use(u)}" for u in rows[:_ROWS]]
            if len(rows) > _ROWS:
                out.append(f"  {len(rows) - _ROWS} more places")
        return "\n".join(out) or "no memory was asked for by ops"


def memory_owner(array: Any) -> Any:
    """What owns an array's memory: a storage, or a numpy array; None for an array of something else."""
    if type(array) is CudaArray:
        return array.storage
    # numpy collapses chains of views, but not through memory that other libraries own.
    while isinstance(array, np.ndarray):
        if array.base is None:
            return array
        array = array.base
    return None


def _find_peaks(changes: list[Change]) -> dict[str, int]:
    """By device the number of the change after which most was held."""
    now: dict[str, int] = {}
    highest: dict[str, int] = {}
    at: dict[str, int] = {}
    for i, c in enumerate(changes):
        now[c.device] = now.get(c.device, 0) + c.nbytes
        if now[c.device] > highest.get(c.device, 0):
            highest[c.device], at[c.device] = now[c.device], i
    return at


@functools.lru_cache(4096)
def _find_site(key: tuple[str, str, CodeType, int]) -> Site:
    module, op, code, instruction = key
    return Site(module, op, file_and_line(*line_of(code, instruction)))


def _describe_use(u: Use) -> str:
    return "  ".join([part for part in (u.site.module, u.site.op, u.site.line) if part])
