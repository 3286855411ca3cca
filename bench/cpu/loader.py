"""`python -m bench loader`: DataLoader workers: a dataset that waits, large batches by shared memory beside torch, the time to the first batch.

Every figure is a ratio of two loaders that take turns in one run, the best of several epochs each: start-up is told apart, since an epoch that
counts is that of workers that are there already.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
MIB = 1 << 20


class Sleeping:
    """Items that take a millisecond each and no processor, as from a disk or a network."""

    def __init__(self, items: int) -> None:
        self.items = items

    def __len__(self) -> int:
        return self.items

    def __getitem__(self, i: int) -> int:
        time.sleep(1e-3)
        return i


class Images:
    """Items of 1 MiB that lie in memory as numpy arrays; a batch of 16 is 16 MiB."""

    def __init__(self, batches: int) -> None:
        self.images = [np.full(MIB // 4, i, np.float32) for i in range(4)]
        self.items = 16 * batches

    def __len__(self) -> int:
        return self.items

    def __getitem__(self, i: int) -> Any:
        return self.images[i % 4]


def epoch(loader: Any, look: Callable[[Any], Any] | None = None) -> float:
    """Seconds of an epoch from its second batch on, for each batch."""
    batches = iter(loader)
    next(batches)
    began, count = time.perf_counter(), 0
    for batch in batches:
        if look is not None:
            look(batch)
        count += 1
    return (time.perf_counter() - began) / count


def first_batch(make: Callable[[], Any]) -> float:
    """Seconds from the loader to its first batch."""
    began = time.perf_counter()
    next(iter(make()))
    return time.perf_counter() - began


def in_turns(loaders: dict[str, Any], rounds: int, look: Callable[[Any], Any] | None = None) -> dict[str, float]:
    """The best seconds of a batch for each loader, all of them timed in turn."""
    best = dict.fromkeys(loaders, float("inf"))
    for _ in range(rounds):
        for name, loader in loaders.items():
            best[name] = min(best[name], epoch(loader, look))
    return best


def sleeping(items: int, rounds: int) -> dict[str, float]:
    """Items a second by one process and by two workers."""
    from tritensor.data import DataLoader

    loaders = {
        "one process": DataLoader(Sleeping(items), batch_size=10),
        "two workers": DataLoader(Sleeping(items), batch_size=10, num_workers=2, persistent_workers=True),
    }
    return {name: 10 / seconds for name, seconds in in_turns(loaders, rounds).items()}


def _pages(batch: Any) -> None:
    """Reads a number of every page, as whoever uses the batch does."""
    batch.numpy().reshape(-1)[::1024].sum()


def large(batches: int, rounds: int, peer: bool) -> dict[str, float]:
    """Batches of 16 MiB a second by two workers of each library."""
    from tritensor.data import DataLoader

    loaders: dict[str, Any] = {"tritensor": DataLoader(Images(batches), batch_size=16, num_workers=2, persistent_workers=True)}
    if peer:
        import torch.utils.data

        loaders["torch"] = torch.utils.data.DataLoader(Images(batches), batch_size=16, num_workers=2, persistent_workers=True)
    return {name: 1 / seconds for name, seconds in in_turns(loaders, rounds, _pages).items()}


_START = """
import json, sys
from bench.cpu.loader import Sleeping, first_batch
if __name__ == "__main__":
    library, method = sys.argv[1:]
    import importlib
    data = importlib.import_module(library + ".utils.data")
    print(first_batch(lambda: data.DataLoader(Sleeping(8), batch_size=2, num_workers=2, multiprocessing_context=method)))
"""


def starts(peer: bool, rounds: int) -> dict[str, float]:
    """Milliseconds from the loader to its first batch, two workers, each in a fresh program."""
    found: dict[str, float] = {}
    for _ in range(rounds):
        for library in ["tritensor"] + ["torch"] * peer:
            for method in ("spawn", "fork", "forkserver"):
                # A script of its own: a worker that is spawned imports it where the dataset stands in it, which is not so here.
                done = subprocess.run([sys.executable, "-c", _START, library, method], cwd=ROOT, capture_output=True, text=True, check=True)
                name = f"{library} {method}"
                found[name] = min(found.get(name, float("inf")), 1000 * float(done.stdout))
    return found


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench loader", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="short epochs, fewer rounds")
    parser.add_argument("--json", type=Path, help="also write the figures there")
    args = parser.parse_args(argv)
    peer = importlib.util.find_spec("torch") is not None
    rounds = 2 if args.quick else 5
    report = {
        "items_per_second": sleeping(400 if args.quick else 2000, rounds),
        "batches_of_16_mib_per_second": large(30 if args.quick else 150, rounds, peer),
        "first_batch_ms": starts(peer, rounds),
    }
    for title, figures in report.items():
        print(title.replace("_", " "))
        for name, figure in figures.items():
            print(f"  {name:22} {figure:10.1f}")
    items = report["items_per_second"]
    print(f"two workers: {items['two workers'] / items['one process']:.2f} x one process, a dataset that sleeps 1 ms an item")
    if peer:
        both = report["batches_of_16_mib_per_second"]
        print(f"batches of 16 MiB: {both['tritensor'] / both['torch']:.2f} x torch")
    if args.json:
        args.json.write_text(json.dumps(report, indent=1))
    return 0
