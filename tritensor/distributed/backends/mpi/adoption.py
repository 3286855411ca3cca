"""Ranks that no mpiexec has started, but multiprocessing.spawn, torchrun or a shell: one is started beside them, which tells them what MPI asks.

MPICH's mpiexec serves ranks over a socket if asked to (-pmi-port); a rank needs nothing of it but the socket's address and its number. So the
first rank starts it with place holders for all ranks, each of which writes down what it was told, and each rank takes that over.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tritensor.distributed.backends.mpi.place_holder import lives
from tritensor.errors import DistError, RankFailedError

_STARTED = ("PMI_RANK", "PMI_ID", "PMIX_RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID", "MPI_LOCALRANKID")
_HOLDER = Path(__file__).with_name("place_holder.py")
_PAUSE = 0.02


def is_started(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether mpiexec or Slurm has started this process."""
    return any(name in environment for name in _STARTED)


def adopt(meeting: str | None, rank: int, size: int, seconds: float) -> None:
    """Give this process what mpiexec gives its ranks, so that MPI can start. `meeting` is what all ranks know: an address, or a file.

    Raises DistError where there is no meeting point, no MPICH, or it is on another machine; RankFailedError where rank 0 does not come.
    """
    how = f"start them together by python -m tritensor.launch -n {size} train.py, mpiexec -n {size} or srun -n {size}"
    if meeting is None:
        raise DistError(
            f"init_process_group: world_size is {size}, and this process was started alone; {how}, or set MASTER_ADDR and MASTER_PORT alike for all ranks"
        )
    _check_here(meeting, how)
    folder = Path(tempfile.gettempdir()) / f"tritensor-mpi-{os.getuid()}-{hashlib.sha256(meeting.encode()).hexdigest()[:16]}"
    if rank == 0:
        _serve(folder, size, seconds, how)
    until = time.monotonic() + seconds
    while (found := _offer(folder, rank)) is None:
        if time.monotonic() > until:
            raise RankFailedError(
                f"init_process_group: rank 0 has not met rank {rank} at {meeting} within {seconds:g} s; does it call init_process_group, with the same "
                "address?",
                (0,),
            )
        time.sleep(_PAUSE)
    (folder / f"{rank}.unfinished").write_text(str(os.getpid()))
    (folder / f"{rank}.unfinished").rename(folder / f"{rank}.taken")
    os.environ.update(found)


def _check_here(meeting: str, how: str) -> None:
    host = meeting.partition(":")[0]
    if meeting.startswith("/") or host in ("localhost", "127.0.0.1", "::1", socket.gethostname(), socket.getfqdn()):
        return
    try:
        here = {str(entry[4][0]) for entry in socket.getaddrinfo(socket.gethostname(), None)}
        there = {str(entry[4][0]) for entry in socket.getaddrinfo(host, None)}
    except OSError as error:
        raise DistError(f"init_process_group: {host} is no machine that can be found ({error}); {how}") from error
    if not here & there and not any(a.startswith("127.") for a in there):
        raise DistError(f"init_process_group: MASTER_ADDR {host} is another machine; on several machines {how}")


def _serve(folder: Path, size: int, seconds: float, how: str) -> None:
    """Start mpiexec with place holders. It ends when they do, each of which ends with its rank."""
    beside = Path(sys.executable).parent / "mpiexec"
    mpiexec = str(beside) if beside.exists() else shutil.which("mpiexec")
    if mpiexec is None:
        raise DistError(
            f"init_process_group: there is no mpiexec to bring {size} processes together: pip install 'tritensor[mpi]', or {how}"
        )
    version = subprocess.run([mpiexec, "--version"], capture_output=True, text=True, check=False).stdout
    if "HYDRA" not in version.upper():
        raise DistError(f"init_process_group: {mpiexec} is not MPICH's, which alone takes up processes that it has not started; {how}")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o700)
    command: list[Any] = [mpiexec, "-pmi-port", "-n", str(size), sys.executable, str(_HOLDER), str(folder), str(seconds)]
    # A session of its own: Ctrl-C is for the ranks. What it says at an unclean end is said better by the ranks.
    subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)


def _offer(folder: Path, rank: int) -> dict[str, str] | None:
    """What this rank's place holder was told; None while there is none that lives (one of an earlier program does not)."""
    try:
        offer = json.loads((folder / f"{rank}.json").read_text())
    except FileNotFoundError:
        return None
    environment: dict[str, str] = offer["environment"]
    return environment if lives(str(offer["holder"])) else None
