"""torch.cuda.nccl: which NCCL is here. Collectives are those of tritensor.distributed."""

from __future__ import annotations

from collections.abc import Iterable

from tritensor.distributed.backends.nccl import library
from tritensor.tensor.core import Tensor


def version() -> tuple[int, int, int]:
    """(2, 28, 9). Raises ModuleNotFoundError where nccl4py is not installed, DistBackendError where it finds no NCCL."""
    found = int(library.nccl("cuda.nccl.version").get_version())  # 21809 is 2.18.9
    return found // 10000, found // 100 % 100, found % 100


def is_available(tensors: Iterable[Tensor]) -> bool:
    """Whether NCCL is here and could carry these tensors: contiguous ones on GPUs, each on its own."""
    given = list(tensors)
    apart = len({t.device for t in given}) == len(given)
    return apart and all(t.is_cuda and t.is_contiguous() for t in given) and library.works()
