"""ReplicaJoin: a replica without batches contributes zeros to the others' steps, and ends with their values."""

from __future__ import annotations

from typing import Any

from tritensor.distributed.algorithms.join import JoinHook
from tritensor.distributed.data_parallel.agreement import broadcast_all, get_synced


class ReplicaJoin(JoinHook):
    """The part of a DistributedDataParallel whose process is through."""

    def __init__(self, replica: Any) -> None:
        self.replica = replica  # the DistributedDataParallel

    def main_hook(self) -> None:
        """A step of the others: their buffers, and zeros for the averages of their gradients."""
        replica = self.replica
        step = replica.join_step
        assert step is not None
        if replica.will_sync_module_buffers():
            broadcast_all(get_synced(replica.module, "buffers"), replica.process_group, step.root)
        replica.require_forward_param_sync = step.syncs
        # Within no_sync the others communicate no gradients, and an extra all_reduce here would have no partner.
        if step.syncs:
            replica.reducer.shadow()

    def post_hook(self, is_last_joiner: bool) -> None:
        """All are through: one that was so last gives its parameters and buffers to all."""
        replica = self.replica
        replica.reducer.divide = replica.process_group.size()
        root = replica.join_step.root if replica.join_step is not None else 0
        module = replica.module
        broadcast_all([*get_synced(module, "parameters"), *get_synced(module, "buffers")], replica.process_group, root)
        replica.__dict__["join_step"] = None
