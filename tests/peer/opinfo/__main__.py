"""`python -m tests.peer.opinfo`: totals of the table; `--record` walks and writes it, `--only NAME` walks one operation and prints what fails in full."""

from __future__ import annotations

import argparse
import fnmatch
import multiprocessing
import os
import sys
import time
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import torch
from torch.testing._internal.common_methods_invocations import op_db

from tests.peer.opinfo import table
from tests.peer.opinfo.resolve import key
from tests.peer.opinfo.walk import Found, walked


def _one(index: int) -> tuple[str, Found, float]:
    torch.set_num_threads(1)
    begun = time.perf_counter()
    return key(op_db[index]), walked(op_db[index]), time.perf_counter() - begun


def _all(indices: list[int], jobs: int) -> Any:
    if jobs == 1:
        yield from map(_one, indices)
        return
    with multiprocessing.get_context("fork").Pool(jobs) as pool:
        yield from pool.imap_unordered(_one, indices)


def _shown(name: str, found: Found) -> str:
    made = table.line(found)
    parts = [f"{name}: " + ", ".join(f"{k} {v}" for k, v in made.items() if k != "failing")]
    for f in found.failures:
        parts.append(f"  {f.where} sample {f.index}: {f.kind}: {f.detail}\n      {f.sample}")
    return "\n".join(parts)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.peer.opinfo", description=__doc__)
    parser.add_argument("--record", action="store_true", help="walk, and write table.json (of --only NAME those lines alone)")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="operations, as 'linalg.svd', 'norm/nuc' or 'special.*'")
    parser.add_argument("--slowest", type=int, default=0, metavar="N", help="print the N operations whose walk took longest")
    parser.add_argument("-j", type=int, default=1, metavar="N", help="processes")
    given = parser.parse_args()
    if not given.record and not given.only:
        print(table.totals(table.read()))
        return
    wanted = [
        i for i, op in enumerate(op_db)
        if not given.only or any(fnmatch.fnmatchcase(n, p) for p in given.only for n in (op.name, key(op)))
    ]  # fmt: skip
    if not wanted:
        sys.exit(f"no operation of PyTorch's database is called {' or '.join(given.only)}")
    lines = table.read() if given.only else {}
    times = []
    for name, found, seconds in _all(wanted, given.j):
        lines[name] = table.line(found)
        times.append((seconds, name))
        if given.only:
            print(_shown(name, found))
    if given.record:
        table.write(lines)
        print(table.totals(lines))
    for seconds, name in sorted(times, reverse=True)[: given.slowest]:
        print(f"{seconds:6.1f} s  {name}")


if __name__ == "__main__":
    main()
