"""`python -m tests.peer.modules`: totals of the table; `--record` walks and writes it, `--only NAME` walks one module and prints what fails in full."""

from __future__ import annotations

import argparse
import fnmatch
import os
import sys

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import torch
from torch.testing._internal.common_modules import module_db

from tests.peer.modules import table
from tests.peer.modules.walk import Found, name_of, walked


def _shown(name: str, found: Found) -> str:
    made = table.line(found)
    parts = [f"{name}: " + ", ".join(f"{k} {v}" for k, v in made.items() if k != "failing")]
    for f in found.failures:
        parts.append(f"  {f.where} sample {f.index}: {f.kind}: {f.detail}\n      {f.sample}")
    return "\n".join(parts)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.peer.modules", description=__doc__)
    parser.add_argument("--record", action="store_true", help="walk, and write table.json (of --only NAME those lines alone)")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="modules, as 'nn.Linear' or 'nn.Conv*'")
    given = parser.parse_args()
    if not given.record and not given.only:
        print(table.totals(table.read()))
        return
    wanted = [i for i in module_db if not given.only or any(fnmatch.fnmatchcase(name_of(i), p) for p in given.only)]
    if not wanted:
        sys.exit(f"no entry of PyTorch's module database is called {' or '.join(given.only)}")
    torch.set_num_threads(1)
    lines = table.read() if given.only else {}
    for info in wanted:
        found = walked(info)
        lines[name_of(info)] = table.line(found)
        if given.only:
            print(_shown(name_of(info), found), flush=True)
    if given.record:
        table.write(lines)
        print(table.totals(lines))


if __name__ == "__main__":
    main()
