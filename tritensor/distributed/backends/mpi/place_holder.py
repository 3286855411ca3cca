"""The program that mpiexec runs in place of a rank started by something else: it passes mpiexec's settings on, and stays until the rank ends.

Run by its path, `python place_holder.py FOLDER SECONDS`; standard library only.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

LOOK = 0.2  # seconds between two looks at the rank


def main() -> None:
    """Write FOLDER/<rank>.json, wait SECONDS for a process id in FOLDER/<rank>.taken, then until that process has ended."""
    folder, seconds = Path(sys.argv[1]), float(sys.argv[2])
    told = {k: v for k, v in os.environ.items() if k.startswith(("PMI_", "MPI_LOCAL"))}
    rank = told["PMI_ID"]
    unfinished = folder / f"{rank}.unfinished"
    unfinished.write_text(json.dumps({"holder": os.getpid(), "environment": told}))
    unfinished.rename(folder / f"{rank}.json")
    taken, until = folder / f"{rank}.taken", time.monotonic() + seconds
    while not taken.exists():
        if time.monotonic() > until:
            return
        time.sleep(LOOK)
    pid = taken.read_text()
    while is_alive(pid):
        time.sleep(LOOK)
    _clear(folder, rank)


def _clear(folder: Path, rank: str) -> None:
    """Remove what this place holder wrote, unless another program has begun at the same address since."""
    try:
        if json.loads((folder / f"{rank}.json").read_text())["holder"] != os.getpid():
            return
        for name in (f"{rank}.json", f"{rank}.taken"):
            (folder / name).unlink()
        folder.rmdir()
    except OSError:
        return  # others' files are there yet: the last one removes the folder


def is_alive(pid: str) -> bool:
    """Whether a process of this machine is there and is no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


if __name__ == "__main__":
    main()
