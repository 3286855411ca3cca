"""A script for the launcher's tests: each rank writes what it sees to FOLDER/rank.json, then does what the second argument says."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

folder, does, rank = Path(sys.argv[1]), sys.argv[2], int(os.environ["RANK"])
seen = {
    "environment": dict(os.environ), "pids": [os.getpid(), os.getppid()], "argv": sys.argv, "path": sys.path[0], "name": __name__,
    "cores": sorted(os.sched_getaffinity(0)), "modules": sorted({m.partition(".")[0] for m in sys.modules}),
    "agent": int(Path(f"/proc/{os.getppid()}/stat").read_text().rpartition(")")[2].split()[1]),
}  # fmt: skip
(folder / f"{rank}.part").write_text(json.dumps(seen))
(folder / f"{rank}.part").rename(folder / f"{rank}.json")


class RankFailedError(Exception):
    """Stands for tritensor's, which a rank raises when another has failed."""


def all_are_here() -> None:
    while len(list(folder.glob("*.json"))) < int(os.environ["WORLD_SIZE"]):
        time.sleep(0.01)


def fail() -> None:
    raise ValueError(f"no such weight ({rank})")


def write() -> None:
    """Much text, half lines between, on two streams, records of other ranks among it."""
    for i in range(400):
        sys.stderr.write(f"<{rank}.{i}")
        sys.stderr.flush()
        sys.stderr.write("x" * 300 + f".{i}.{rank}>\n")
        print(f"[{rank}.{i}]")


all_are_here()
if does == "write":
    write()
    sys.stderr.write(f"half of rank {rank}")
    sys.exit(5 if rank == 1 else 0)
if does == "train":
    file = folder / f"step{rank}"
    done = int(file.read_text()) if file.exists() else 0
    for step in range(done, 4):
        if step == 2 and rank == 1 and os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
            fail()
        file.write_text(str(step + 1))
    (folder / f"starts{rank}").open("a").write(f"{done}\n")
if rank == 1:
    if does in ("raise", "hang", "exit"):
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
        (folder / "child").write_text(str(child.pid))
        sys.exit(7) if does == "exit" else fail()
    if does == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if does == "segfault":
        os.kill(os.getpid(), signal.SIGSEGV)
    if does == "leave":
        os._exit(9)
if does in ("raise", "kill", "exit", "segfault", "leave"):
    time.sleep(0.3)
    raise RankFailedError("barrier: rank 1 has ended")
if does == "hang":
    if rank == 0:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    threading.Event().wait(60)
if does == "wait":
    threading.Event().wait(60)
