"""torch.distributed.utils: what Lightning's strategies take from there, a module's values made the same on all processes."""

from __future__ import annotations

from collections.abc import Container

from tritensor.distributed.data_parallel.agreement import broadcast_all
from tritensor.distributed.process_group import ProcessGroup
from tritensor.nn.module import Module


def _sync_module_states(
    module: Module, process_group: ProcessGroup, broadcast_bucket_size: int, src: int, params_and_buffers_to_ignore: Container[str],
    broadcast_buffers: bool = True,
) -> None:  # fmt: skip
    """Give all processes `src`'s parameters and buffers, but for the names to ignore. Pieces are as large as DistributedDataParallel's."""
    named = [*module.named_parameters(), *(module.named_buffers() if broadcast_buffers else ())]
    broadcast_all([t.detach() for name, t in named if name not in params_and_buffers_to_ignore], process_group, src)
