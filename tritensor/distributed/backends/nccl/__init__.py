"""NCCL, which carries tensors between GPUs: through nccl4py's low-level bindings, with raw pointers and streams of our own.

A process begins with `unique_id()` on rank 0, whose bytes the others are told (by MPI, say); where NCCL_COMM_ID=host:port is set alike for
all processes, NCCL makes the same bytes of it in each of them, and each calls `unique_id()` itself. `NcclBackend` then connects them.
"""

from tritensor.distributed.backends.nccl.backend import NcclBackend
from tritensor.distributed.backends.nccl.library import unique_id, works

__all__ = ["NcclBackend", "unique_id", "works"]
