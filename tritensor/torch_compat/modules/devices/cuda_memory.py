"""torch.cuda.memory's history of allocations."""

from __future__ import annotations

from tritensor.debug.memory_history import _dump_snapshot as _dump_snapshot
from tritensor.debug.memory_history import _record_memory_history as _record_memory_history
from tritensor.debug.memory_history import _snapshot as _snapshot
