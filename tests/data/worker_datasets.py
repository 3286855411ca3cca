"""Datasets and functions for tests of worker processes: they stand in a module, as spawned workers need it."""

from __future__ import annotations

import os
import random
import resource
import signal
import sys
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

import tritensor as tt
from tritensor.data import DataLoader, Dataset, IterableDataset, get_worker_info


class Rows(Dataset[Any]):
    """Sample i: a row of 5000 numbers i, and i."""

    def __init__(self, n: int = 24) -> None:
        self.n = n

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, i: int) -> Any:
        return np.full(5000, i, np.float32), i


class Draws(Rows):
    """Sample i: i, one number of each generator, and who read it."""

    def __getitem__(self, i: int) -> Any:
        w = get_worker_info()
        return i, random.random(), np.random.rand(), float(tt.rand(())), -1 if w is None else w.id


class Stream(IterableDataset[int]):
    """0 to n - 1, shared among the workers, or by each from the beginning."""

    def __init__(self, n: int, shared: bool = True) -> None:
        self.n, self.shared = n, shared

    def __iter__(self) -> Iterator[int]:
        w = get_worker_info()
        return iter(range(w.id, self.n, w.num_workers)) if w is not None and self.shared else iter(range(self.n))

    def __len__(self) -> int:
        return self.n


class OddError(Exception):
    """An error that is not made of a message alone."""

    def __init__(self, a: int, b: int) -> None:
        super().__init__(f"{a} and {b}")


class Faulty(Rows):
    """Rows, of which one goes wrong in the way that is named."""

    def __init__(self, way: str, at: int = 5) -> None:
        super().__init__()
        self.way, self.at = way, at

    def __getitem__(self, i: int) -> Any:
        if i == self.at:
            self.fail()
        return super().__getitem__(i)

    def fail(self) -> None:
        if self.way.startswith("SIG"):
            os.kill(os.getpid(), getattr(signal, self.way))
            time.sleep(60)
        elif self.way == "exit":
            sys.exit(3)
        elif self.way == "leave":
            os._exit(0)
        elif self.way == "hang":
            time.sleep(60)
        elif self.way == "odd":
            raise OddError(1, 2)
        elif self.way == "local":

            class HereError(LookupError):
                pass

            raise HereError("of this function")
        raise {"KeyError": KeyError, "StopIteration": StopIteration, "ValueError": ValueError}[self.way]("the fifth")


class Unread(Dataset[Any]):
    """Cannot be unpickled."""

    def __reduce__(self) -> Any:
        return _refuse, ()

    def __len__(self) -> int:
        return 4


def _refuse() -> None:
    raise OSError("the disk is gone")


class Structures(Dataset[Any]):
    """Batches of many kinds, uncollated."""

    def __len__(self) -> int:
        return 2

    def __getitem__(self, i: int) -> Any:
        x = tt.arange(40_000.0)
        small = tt.arange(6.0)
        grid = np.arange(40_000.0).reshape(200, 200)
        return {
            "views": (x, x[100:], x.reshape(200, 200).T),
            "small views": (small, small[2:]),
            "bfloat16": tt.ones(20_000, dtype=tt.bfloat16),
            "float8": tt.ones(20_000).to(tt.float8_e4m3fn),
            "row of many": tt.zeros(1000, 5000)[3],
            "numpy": (grid, grid[::2, ::3], grid.T, np.array("text")),
            "parameter": tt.nn.Parameter(tt.ones(5000)),
            "leaf": tt.ones(3, requires_grad=True),
            "none": (tt.zeros(0, 4), None, "text", Pair(1, tt.ones(2))),
            "channels last": tt.ones(2, 3, 40, 40).to(memory_format=tt.channels_last),
        }


class Pair(NamedTuple):
    a: Any
    b: Any


class OfAGraph(Rows):
    """Samples that require grad."""

    def __getitem__(self, i: int) -> Any:
        return tt.ones(3, requires_grad=True) * i


class Ragged(Rows):
    """Sample 7 is longer."""

    def __getitem__(self, i: int) -> Any:
        return {"x": (np.zeros(4 if i == 7 else 3, np.float32), i)}


def same(sample: Any) -> Any:
    return sample


def fail_to_begin(worker: int) -> None:
    raise LookupError(f"worker {worker} finds no folder")


def little_room(worker: int) -> None:
    """From now on no file of this process may be larger than 64 KiB: as a full /dev/shm refuses it."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, 1 << 16))


def note_start(worker: int) -> None:
    w = get_worker_info()
    assert w is not None
    assert w.id == worker
    w.dataset.n -= 1  # its own copy


class Slow(Rows):
    """Each sample takes a while."""

    def __getitem__(self, i: int) -> Any:
        time.sleep(0.2)
        return i


class Long(Rows):
    """Numbers."""

    def __init__(self) -> None:
        super().__init__(100)

    def __getitem__(self, i: int) -> Any:
        return i


def many(samples: Any) -> Any:
    """450 arrays that are large, and 30,000 strings."""
    return [np.full(5000, samples[0], np.float32) for _ in range(450)], [str(i) for i in range(30_000)]


class Nested(Rows):
    """Each sample reads a loader of its own."""

    def __init__(self, workers: int) -> None:
        super().__init__(2)
        self.workers = workers

    def __getitem__(self, i: int) -> Any:
        return sum(
            int(x) for x in DataLoader(range(i + 3), num_workers=self.workers, multiprocessing_context="fork" if self.workers else None)
        )


class Growing(Rows):
    """Each sample is larger than the one before."""

    def __init__(self) -> None:
        super().__init__(40)

    def __getitem__(self, i: int) -> Any:
        return np.ones(int(500_000 * 1.0663**i), np.float32)
