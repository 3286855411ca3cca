"""Checks of a DataLoader's arguments, alone and together; the number of workers that num_workers="auto" means."""

from __future__ import annotations

import os
import warnings
from typing import Any

from tritensor.ground.device import as_device
from tritensor.ground.errors import ArgumentError

_MAX_AUTO_WORKERS = 8  # workers that "auto" takes
PREFETCH = 2  # batches that each worker makes ahead


def count_cores() -> int:
    """The processors that this process may use: its affinity, and its control group's share of time, rounded up."""
    found = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        with open("/sys/fs/cgroup/cpu.max") as file:
            quota, period = file.read().split()
    except (OSError, ValueError):  # no control group rules it
        return found
    return found if quota == "max" else max(1, min(found, -(-int(quota) // int(period))))


def count_workers(given: int | str) -> int:
    """The number of workers of a num_workers. Raises ArgumentError for what is no count; warns where there are more than processors."""
    if given == "auto":
        return max(1, min(count_cores() - 1, _MAX_AUTO_WORKERS))
    if not isinstance(given, int) or isinstance(given, bool) or given < 0:
        raise ArgumentError(
            f'DataLoader: num_workers {given!r} is not a count; give an integer from 0 (batches are made in this process), or "auto"'
        )
    if given > count_cores():
        warnings.warn(
            # PyTorch's first words, by which programs filter it
            f"This DataLoader will create {given} worker processes in total; there are {count_cores()} processors for this process: more workers than "
            'that mostly wait for one another, unless they wait for disks or networks; num_workers="auto" takes as many as pay',
            stacklevel=3,
        )
    return given


def check_workers(
    num_workers: int, timeout: float, prefetch_factor: int | None, persistent_workers: bool, multiprocessing_context: Any,
    pin_memory_device: str,
) -> int | None:  # fmt: skip
    """The prefetch_factor. Raises ArgumentError for what speaks of workers where there are none, and for numbers out of range."""
    if timeout < 0:
        raise ArgumentError(f"DataLoader: timeout {timeout} is negative; give seconds, 0 for none")
    for name, given in (
        ("prefetch_factor", prefetch_factor),
        ("multiprocessing_context", multiprocessing_context),
        ("persistent_workers", persistent_workers or None),
    ):
        if given is not None and not num_workers:
            raise ArgumentError(
                f"DataLoader: {name} is for worker processes, and there are none; leave it out, or give num_workers of 1 or more"
            )
    if prefetch_factor is not None and (not isinstance(prefetch_factor, int) or prefetch_factor < 1):
        raise ArgumentError(
            f"DataLoader: prefetch_factor {prefetch_factor!r} is not a count; give the batches that each worker makes ahead, 1 or more"
        )
    if multiprocessing_context is not None:
        _check_context(multiprocessing_context)
    if pin_memory_device and as_device(pin_memory_device).type != "cuda":
        raise ArgumentError(f"DataLoader: pin_memory_device {pin_memory_device!r} is no GPU; leave it out, or give 'cuda'")
    return PREFETCH if num_workers and prefetch_factor is None else prefetch_factor


def _check_context(given: Any) -> None:
    """Raise ArgumentError for an unknown word, TypeError for what is no context."""
    import multiprocessing
    from multiprocessing.context import BaseContext

    methods = multiprocessing.get_all_start_methods()
    if isinstance(given, str) and given not in methods:
        raise ArgumentError(f"DataLoader: multiprocessing_context {given!r} is no way to start processes here; give one of {methods}")
    if not isinstance(given, str | BaseContext):
        raise TypeError(
            f"DataLoader: multiprocessing_context is a {type(given).__name__}; give 'spawn', 'fork', 'forkserver' or a context of them"
        )


def check_batches(streams: bool, batch_size: Any, shuffle: Any, sampler: Any, batch_sampler: Any, drop_last: bool) -> None:
    """Raise ArgumentError where the options that make the batches contradict one another."""
    if batch_size is not None and (not isinstance(batch_size, int) or isinstance(batch_size, bool) or batch_size <= 0):
        raise ArgumentError(
            f"DataLoader: batch_size {batch_size!r} is not a positive integer (None hands out single samples); give 1 or more"
        )
    if streams and (shuffle or sampler is not None or batch_sampler is not None):
        raise ArgumentError(
            "DataLoader: an IterableDataset has no indices, so shuffle, sampler and batch_sampler cannot be given; shuffle inside it"
        )
    if sampler is not None and shuffle:
        raise ArgumentError("DataLoader: sampler and shuffle=True both set the order; give one")
    if batch_sampler is not None and (batch_size != 1 or shuffle or sampler is not None or drop_last):
        raise ArgumentError("DataLoader: batch_sampler makes whole batches; leave out batch_size, shuffle, sampler and drop_last")
    if batch_size is None and drop_last:
        raise ArgumentError("DataLoader: drop_last needs batches; give a batch_size")
