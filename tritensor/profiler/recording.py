"""Recording of a stretch of the program: its records, and the probes that write them, in place from `begin` to `end`, by patches that are taken back."""

from __future__ import annotations

import ctypes
import functools
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from types import CodeType
from typing import Any

from tritensor.cuda.runtime import active
from tritensor.ground.call_site import INSIDE
from tritensor.ground.process import locks
from tritensor.profiler.records import DeviceWork, Record, clock

_MISSING: Any = object()
changing = locks.lock()  # two threads that begin or end a profile at once
_active: list[Patches] = []


class Patches:
    """Attributes that were replaced, to be put back in reverse order."""

    # Where other patches lie over one of these, they are told what will be below them; where another program's work does, it stays, with
    # the patch below it, which is off.

    def __init__(self) -> None:
        self._done: list[tuple[Any, str, Any, Any]] = []  # owner, name, value before, value now
        self._undo: list[Callable[[], None]] = []

    def put(self, owner: Any, name: str, value: Any) -> None:
        """Set an attribute of a class, module or object; restore() puts back what its own dictionary held."""
        if self not in _active:  # only those with something in place are asked by others
            _active.append(self)
        before = vars(owner).get(name, _MISSING)  # not getattr: an inherited attribute is to be inherited again
        setattr(owner, name, value)
        self._done.append((owner, name, before, vars(owner)[name]))

    def replace_everywhere(self, replaced: dict[Any, Any]) -> None:
        """Replace functions in every module of the library that holds them by name."""
        by_id = {id(old): new for old, new in replaced.items()}
        for module_name, module in tuple(sys.modules.items()):  # `from x import f` has copied the function into the importer
            if module is None or not module_name.startswith("tritensor"):
                continue
            for name, value in tuple(vars(module).items()):
                if id(value) in by_id:
                    self.put(module, name, by_id[id(value)])

    def at_end(self, undo: Callable[[], None]) -> None:
        """Call this once everything is put back."""
        self._undo.append(undo)

    def restore(self) -> None:
        """Put everything back."""
        while self._done:
            owner, name, before, mine = self._done.pop()
            if vars(owner).get(name, _MISSING) is not mine:
                for other in _active:
                    other._uncover(owner, name, mine, before)
                continue
            if before is _MISSING:
                delattr(owner, name)
            else:
                setattr(owner, name, before)
        while self._undo:
            self._undo.pop()()
        if self in _active:
            _active.remove(self)

    def _uncover(self, owner: Any, name: str, gone: Any, before: Any) -> None:
        """Note that the value below one of these patches is gone: below is what that one covered."""
        self._done = [(o, n, before if o is owner and n == name and b is gone else b, v) for o, n, b, v in self._done]


DEEPEST = 64  # frames of a stack that are kept


@dataclass(frozen=True, slots=True)
class Options:
    """The options of a recording. `inputs`: keep shapes of inputs; `flops`: count work by them; the others as in `profile`."""

    cpu: bool = True
    device: bool = False
    inputs: bool = False
    flops: bool = False
    memory: bool = False
    stack: bool = False
    modules: bool = False

    @property
    def detailed(self) -> bool:
        """Whether a record has more than its times."""
        return self.inputs or self.memory or self.stack


@dataclass(slots=True, eq=False)
class Recording:
    """Records of all threads, in the order in which calls ended. `on`: whether probes write; else those that are left anywhere pass calls on."""

    options: Options
    records: list[Record] = field(default_factory=list)
    fired: list[DeviceWork] = field(default_factory=list)
    unpacked: list[tuple[int, int, int]] = field(default_factory=list)  # (thread, start, end) of hooks that gave back what a node had saved
    on: bool = False
    started: int = 0
    stopped: int = 0
    epoch: int = 0  # nanoseconds since 1970 at `started`
    threads: dict[int, str] = field(default_factory=dict)
    driver: Any = None  # the events of a real device's work (see probes/driver_events.py)
    emulated: bool = False
    # Wraps an op's call in place of the timed wrapper.
    around: Callable[[Recording, Any, Callable[..., Any]], Callable[..., Any]] | None = None
    notes: list[str] = field(default_factory=list)
    _patches: Patches = field(default_factory=Patches)

    def begin(self, *probes: Callable[[Recording, Patches], None]) -> None:
        """Put probes in place and write. Nothing is left in place where one of them raises."""
        with changing:
            try:
                for probe in probes:
                    probe(self, self._patches)
            except BaseException:
                self._patches.restore()
                raise
        self.clear()
        self.on = True

    def clear(self) -> None:
        """Forget all records: the recording begins now."""
        if self.driver is not None:
            self.driver.reuse(self.fired)
        self.records.clear()
        self.fired.clear()
        self.unpacked.clear()
        self.epoch, self.started = time.time_ns(), clock()

    def end(self) -> None:
        """Take the probes away."""
        self.stopped = clock()
        self.on = False
        with changing:
            self._patches.restore()
        self.threads = {t.ident: t.name for t in threading.enumerate() if t.ident is not None}  # now: a thread that ends loses its name


class _MallocInfo(ctypes.Structure):
    _fields_ = [
        (n, ctypes.c_size_t)
        for n in ("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost")
    ]


@functools.cache
def _mallinfo() -> Any:
    """glibc's function mallinfo2, which says how much malloc has handed out; None where the C library has none."""
    found = getattr(ctypes.CDLL(None), "mallinfo2", None)
    if found is not None:
        found.restype = _MallocInfo
    return found


def host_memory_known() -> bool:
    """Whether the C library says how much it has handed out, numpy's arrays included (glibc 2.33 and later)."""
    return _mallinfo() is not None


def held() -> tuple[int, int]:
    """Bytes that are handed out now: by the C library (numpy's arrays, each rounded up to its granule of 16 bytes), and on all GPUs."""
    ask = _mallinfo()
    host = 0
    if ask is not None:
        info = ask()
        host = info.uordblks + info.hblkhd  # of the arenas, and of large blocks that are mapped by themselves
    return host, sum([a.live for a in active.runtime().allocators()]) if active.started() else 0


def stack(depth: int) -> tuple[tuple[CodeType, int], ...]:
    """(code, line) of the frames that called and are not of this library, the innermost first; `depth` frames up are left out."""
    frame = sys._getframe(depth)
    found: list[tuple[CodeType, int]] = []
    while frame is not None and len(found) < DEEPEST:
        if not frame.f_code.co_filename.startswith(INSIDE):  # strings are made of them when the profile is over
            found.append((frame.f_code, frame.f_lineno))
        frame = frame.f_back  # type: ignore[assignment]
    return tuple(found)
