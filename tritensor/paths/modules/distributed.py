"""torch.distributed: one process, and no group of them."""

from __future__ import annotations

import os


def is_available() -> bool:
    """False: there is no distributed training here yet."""
    return False


def is_initialized() -> bool:
    """False: there is no process group."""
    return False


def is_nccl_available() -> bool:
    """False."""
    return False


def is_gloo_available() -> bool:
    """False."""
    return False


def is_mpi_available() -> bool:
    """False."""
    return False


def is_backend_available(backend: str) -> bool:
    """False, for every backend."""
    return False


def is_torchelastic_launched() -> bool:
    """Whether torchrun started this process."""
    return os.environ.get("TORCHELASTIC_RUN_ID") is not None


def get_rank(group: object = None) -> int:
    """Raises ValueError, as PyTorch does where no process group was made; ask is_initialized() first."""
    raise ValueError("get_rank: no process group has been initialised, and none can be; ask is_initialized() first")


def get_world_size(group: object = None) -> int:
    """Raises ValueError, as PyTorch does where no process group was made; ask is_initialized() first."""
    raise ValueError("get_world_size: no process group has been initialised, and none can be; ask is_initialized() first")
