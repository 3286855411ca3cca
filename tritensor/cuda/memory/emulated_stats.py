"""Memory statistics of the emulated device, whose memory is not cached: live bytes, peaks, a limit, owners of allocations."""

from __future__ import annotations

import gc
import os
from collections import Counter
from types import CodeType

from tritensor.cuda.memory.size_classes import Row, size_class
from tritensor.ground.call_site import user_instruction
from tritensor.ground.errors import OutOfMemoryError
from tritensor.ground.process import locks


class Ledger:
    """Answers what `CachingAllocator` answers, for memory where every allocation is a new one and goes at once when freed.

    Bytes are exact, not rounded to a class. `large` lists every live allocation, not only those of 1 MiB and more.
    """

    def __init__(self, index: int, total: int | None = None) -> None:
        self.index = index
        self.live = self.peak = 0
        self.retries = self.ooms = self.source_allocations = self.source_frees = self.limbo_bytes = 0
        self.limit: int | None = None
        self.large: dict[int, tuple[int, CodeType, int]] = {}
        self._total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") if total is None else total
        self._lock = locks.rlock()  # the collector may free while we hold it

    @property
    def reserved(self) -> int:
        return self.live

    @property
    def peak_reserved(self) -> int:
        return self.peak

    def reset_peaks(self) -> None:
        self.peak = self.live

    def admit(self, nbytes: int) -> None:
        """Raise OutOfMemoryError where `nbytes` more do not fit under the limit (or in the device's memory)."""
        most = self._total if self.limit is None else min(self.limit, self._total)
        if self.live + nbytes > most:
            self.retries += 1
            # tensors in cycles may be all that fills it, as on a GPU
            gc.collect()
        if self.live + nbytes > most:
            raise self.full(nbytes)

    def full(self, nbytes: int) -> OutOfMemoryError:
        """The error for a request that has no room, counted."""
        from tritensor.cuda.memory.report import out_of_memory

        self.ooms += 1
        return OutOfMemoryError(out_of_memory(self, nbytes))

    def add(self, pointer: int, nbytes: int) -> None:
        """An allocation has been made."""
        with self._lock:
            self.large[pointer] = (nbytes, *user_instruction())
            self.live += nbytes
            self.peak = max(self.peak, self.live)
            self.source_allocations += 1

    def remove(self, pointer: int) -> None:
        """An allocation has been freed."""
        with self._lock:
            self.live -= self.large.pop(pointer)[0]
            self.source_frees += 1

    def empty_cache(self) -> None:
        """Nothing is cached here."""

    def info(self) -> tuple[int, int]:
        """(free, total) bytes: the host's memory, of which only what this device's tensors hold counts as used."""
        return self._total - self.live, self._total

    def rows(self) -> list[Row]:
        """Live allocations by the size class they would have on a GPU."""
        made = Counter([size_class(n) for n, _, _ in tuple(self.large.values())])
        return [Row(size, 0, None, n, 0, 0) for size, n in made.items()]

    def uncut_bytes(self) -> int:
        return 0

    def mapped(self) -> list[tuple[int, int, int, int | None]]:
        return []
