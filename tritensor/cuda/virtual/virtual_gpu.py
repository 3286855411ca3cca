"""A GPU for programs to run on where there is none: launches are recorded, memory reads as zeros, streams and graphs do nothing."""

from __future__ import annotations

from typing import Any

import numpy as np

from tritensor.cuda.compiler.arguments import LaunchCall
from tritensor.cuda.emulator.streams import EmulatedStreams
from tritensor.cuda.memory.emulated_stats import Ledger
from tritensor.cuda.virtual.recording_runtime import MEMORY, RecordingRuntime
from tritensor.ground.thread_state import here


class VirtualGPU(RecordingRuntime, EmulatedStreams):
    """A recording runtime that programs take for a GPU of compute capability `arch` (90): `cuda.is_available()` says True.

    Nothing counts as allocated. What only a real device knows (its name, its clocks) is made up.
    """

    pretends = True

    def __init__(self, arch: int) -> None:
        RecordingRuntime.__init__(self, (arch // 10, arch % 10))
        EmulatedStreams.__init__(self)
        self._memory = {}
        self._ledger = Ledger(0, MEMORY)
        self._pinned: dict[int, np.ndarray] = {}

    def launch(self, call: LaunchCall) -> None:
        """Record the launch; a capture counts it."""
        RecordingRuntime.launch(self, call)
        self.recorded(here.index, "a kernel", lambda: None, ())

    # memory
    def allocator(self, index: int) -> Ledger:
        return self._ledger

    def allocators(self) -> list[Ledger]:
        return [self._ledger]

    def empty_cache(self) -> None:
        """Nothing is kept."""

    def pinned_allocate(self, nbytes: int) -> int:
        block = np.empty(max(nbytes, 1), np.uint8)
        self._pinned[block.ctypes.data] = block
        return block.ctypes.data

    def pinned_free(self, pointer: int) -> None:
        del self._pinned[pointer]

    def copy_on_device(self, target: Any, target_offset: int, source: Any, source_offset: int, nbytes: int) -> None:
        """There is no memory to copy."""
