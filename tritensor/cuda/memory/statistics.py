"""PyTorch's names for a GPU's memory: what is held, reserved and free, peaks, reports, the cache, a limit, who keeps a tensor alive."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from tritensor.cuda import availability
from tritensor.cuda.devices import index_of
from tritensor.cuda.memory import pinned
from tritensor.cuda.runtime.active import runtime
from tritensor.ground.thread_state import here

if TYPE_CHECKING:  # the reports are imported when one is asked for: a program that asks for none starts sooner
    from tritensor.cuda.memory.report import Accounts


def _accounts(device: Any) -> Accounts:
    """The books of the GPU meant by None (the current one), a number, a name or a device. Raises DeviceError."""
    index = index_of(device)
    return runtime().allocator(index)


def memory_allocated(device: Any = None) -> int:
    """Bytes of a GPU's memory that live tensors hold; each counts as the block it lies in (see size_classes.py for the sizes)."""
    return _accounts(device).live


def max_memory_allocated(device: Any = None) -> int:
    """The most bytes that tensors have held since the start, or since `reset_peak_memory_stats`."""
    return _accounts(device).peak


def memory_reserved(device: Any = None) -> int:
    """Bytes of a GPU that this process has taken from the driver: held by tensors, or cached."""
    return _accounts(device).reserved


def max_memory_reserved(device: Any = None) -> int:
    """The most bytes reserved since the start, or since `reset_peak_memory_stats`."""
    return _accounts(device).peak_reserved


def reset_peak_memory_stats(device: Any = None) -> None:
    """Let both peaks start anew from what is held and reserved now."""
    _accounts(device).reset_peaks()


def reset_max_memory_allocated(device: Any = None) -> None:
    """reset_peak_memory_stats by an older name, which says so by a FutureWarning: both peaks start anew, not one."""
    warnings.warn(
        "torch.cuda.reset_max_memory_allocated now calls torch.cuda.reset_peak_memory_stats, which resets /all/ peak memory stats.",
        FutureWarning, stacklevel=2,
    )  # fmt: skip
    reset_peak_memory_stats(device)


def memory_stats(device: Any = None) -> dict[str, int]:
    """Counters of a GPU's memory under PyTorch's names; see `report.stats` for each. A counter that is not kept has no key."""
    from tritensor.cuda.memory import report

    return report.stats(_accounts(device))


def memory_summary(device: Any = None, abbreviated: bool = False) -> str:
    """A table to print: the numbers, blocks by size class, and the lines of the program whose allocations live.

    On a GPU allocations of 1 MiB and more know their line; on the emulated device all do.
    """
    from tritensor.cuda.memory import report

    return report.summary(_accounts(device), abbreviated)


def memory_snapshot(device: Any = None) -> list[dict[str, Any]]:
    """Live allocations whose line is known, one dict each: device, address, size (bytes), frames."""
    from tritensor.cuda.memory import report

    return report.snapshot(_accounts(device))


def mem_get_info(device: Any = None) -> tuple[int, int]:
    """(free, total) bytes of a GPU, all processes counted, as its driver says. What this process caches is not free there."""
    return _accounts(device).info()


def empty_cache() -> None:
    """Give cached memory back to the system: of all GPUs that this process uses, and pinned host memory.

    Only other processes gain by it: a request that finds the device full does the same by itself. Nothing happens while a graph is
    captured, nor where there is no GPU.
    """
    if not availability.gpus():
        return
    runtime().empty_cache()
    # unpinning waits for the GPU, which would break the capture off
    if here.capture is None:
        pinned.empty_cache()


def host_memory_stats() -> dict[str, int]:
    """Counters of pinned host memory (bytes): held by tensors, reserved, their peaks; how often the driver pinned and unpinned."""
    return pinned.stats()


def set_per_process_memory_fraction(fraction: float, device: Any = None) -> None:
    """Let this process reserve at most this part (0 to 1) of a GPU's memory; beyond it OutOfMemoryError is raised.

    What is reserved already stays. Raises ValueError for a fraction out of range.
    """
    if not isinstance(fraction, int | float) or not 0 <= fraction <= 1:
        raise ValueError(f"set_per_process_memory_fraction: {fraction!r} is no part of the memory; give a number from 0 to 1")
    accounts = _accounts(device)
    # 1 is no limit: what other processes hold is for the driver to refuse
    accounts.limit = None if fraction == 1 else int(accounts.info()[1] * fraction)


def get_per_process_memory_fraction(device: Any = None) -> float:
    """The part of a GPU's memory that this process may reserve; 1 where no limit was set."""
    accounts = _accounts(device)
    return 1.0 if accounts.limit is None else accounts.limit / accounts.info()[1]


def why_alive(tensor: Any = None, device: Any = None, most: int = 10) -> str:
    """Who keeps a tensor alive, in words: variables, attributes, containers, closures, graphs, tracebacks, reference cycles.

    Args:
        tensor: any tensor, also one on the CPU; None: the largest on a GPU.
        device: the GPU meant where no tensor is given.
        most: how many of the largest to explain.

    It walks over all Python objects, so it takes from a tenth of a second to several; nothing is changed or kept.
    """
    from tritensor.cuda.memory import leak_search

    if tensor is not None:
        return leak_search.of_tensor(tensor, _accounts(tensor.device) if tensor.is_cuda else None)
    accounts = _accounts(device)
    return leak_search.of_largest(accounts, most)
