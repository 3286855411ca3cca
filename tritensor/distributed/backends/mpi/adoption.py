"""Ranks that multiprocessing.spawn, torchrun or a shell has started: mpiexec starts a place holder beside each, which passes MPI's settings on.

MPICH's mpiexec serves ranks over a socket if asked to (-pmi-port); a rank needs nothing of it but the socket's address and its number. So the
first rank starts it with place holders for all ranks, each of which writes down what it was told, and each rank takes that over.

They meet in a folder whose name others can tell, below one where anybody may write: it is used only where it is this user's own (see `Meeting`), and
of what stands in it a rank takes what MPI asks for, and no other variable.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tritensor.distributed.backends.mpi.place_holder import is_alive
from tritensor.ground.errors import DistError, RankFailedError

_STARTED = ("PMI_RANK", "PMI_ID", "PMIX_RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID", "MPI_LOCALRANKID")
_HOLDER = Path(__file__).with_name("place_holder.py")
_PAUSE = 0.02
_WANTED = ("PMI_", "MPI_LOCAL")  # what the variables are called that mpiexec gives a rank; place_holder.py hands over these
_LARGEST = 1 << 16  # bytes of an offer


class Meeting:
    """The folder where ranks meet: of this user, for him alone, and no link to another. Raises DistError where somebody else has put something there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def make(self) -> None:
        """Make it, in the place of what an earlier program of this user left."""
        with contextlib.suppress(FileNotFoundError):  # the first program at this address
            os.close(self._open_folder())
            shutil.rmtree(self.folder)
        try:
            self.folder.mkdir(mode=0o700)
        except FileExistsError:
            raise self._foreign_folder_error("came there between two looks") from None

    def _open_folder(self) -> int:
        """A descriptor of the folder, which was looked at through it: nobody can exchange it any more."""
        try:
            found = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except FileNotFoundError:
            raise
        except OSError as error:  # a link (ELOOP), a file (ENOTDIR), another user's folder (EACCES)
            raise self._foreign_folder_error(f"is none that this user may use ({error.strerror})") from error
        seen = os.fstat(found)
        if seen.st_uid != os.getuid() or stat.S_IMODE(seen.st_mode) & 0o077:
            os.close(found)
            raise self._foreign_folder_error(
                f"is of user {seen.st_uid} with mode {stat.S_IMODE(seen.st_mode):o}, and not of user {os.getuid()} with 700"
            )
        return found

    def _foreign_folder_error(self, what: str) -> DistError:
        return DistError(
            f"init_process_group: the folder where the ranks meet, {self.folder}, {what}; somebody else has put it there: remove it, or let TMPDIR name a "
            "folder of your own for all ranks"
        )

    def read_offer(self, rank: int) -> dict[str, str] | None:
        """The settings that mpiexec gave this rank's place holder; None while there is none that lives (one of an earlier program does not)."""
        try:
            folder = self._open_folder()
        except FileNotFoundError:
            return None
        try:
            file = os.open(f"{rank}.json", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
        except FileNotFoundError:
            return None
        finally:
            os.close(folder)
        try:
            offer = json.loads(os.read(file, _LARGEST))
        finally:
            os.close(file)
        told = {k: v for k, v in offer["environment"].items() if k.startswith(_WANTED)}
        return told if is_alive(str(offer["holder"])) else None

    def write_taken(self, rank: int) -> None:
        """Say that this process has what it was offered."""
        folder = self._open_folder()
        try:
            new = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
            file = os.open(f"{rank}.unfinished", new, 0o600, dir_fd=folder)
            try:
                os.write(file, str(os.getpid()).encode())
            finally:
                os.close(file)
            os.rename(f"{rank}.unfinished", f"{rank}.taken", src_dir_fd=folder, dst_dir_fd=folder)
        finally:
            os.close(folder)


def is_started(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether mpiexec or Slurm has started this process."""
    return any(name in environment for name in _STARTED)


def adopt(meeting: str | None, rank: int, size: int, seconds: float) -> None:
    """Give this process what mpiexec gives its ranks, so that MPI can start. `meeting` is what all ranks know: an address, or a file.

    Raises DistError where there is no meeting point, no MPICH, or it is on another machine; RankFailedError where rank 0 does not come.
    """
    how = f"start them together by python -m tritensor.launch -n {size} train.py, mpiexec -n {size} or srun -n {size}"
    # Nothing is known that other ranks know, too, so there is nowhere to meet them.
    if meeting is None:
        raise DistError(
            f"init_process_group: world_size is {size}, and this process was started alone; {how}, or set MASTER_ADDR and MASTER_PORT alike for all ranks"
        )
    _check_same_machine(meeting, how)
    place = Meeting(Path(tempfile.gettempdir()) / f"tritensor-mpi-{os.getuid()}-{hashlib.sha256(meeting.encode()).hexdigest()[:16]}")
    # One mpiexec for all: rank 0 starts it, the others wait for its offers.
    if rank == 0:
        _start_mpiexec(place, size, seconds, how)
    until = time.monotonic() + seconds
    while (found := place.read_offer(rank)) is None:
        # Rank 0 may have failed before it came here, and nobody else would end the wait.
        if time.monotonic() > until:
            raise RankFailedError(
                f"init_process_group: rank 0 has not met rank {rank} at {meeting} within {seconds:g} s; does it call init_process_group, with the same "
                "address?",
                (0,),
            )
        time.sleep(_PAUSE)
    place.write_taken(rank)
    os.environ.update(found)


def _check_same_machine(meeting: str, how: str) -> None:
    host = meeting.partition(":")[0]
    # Without a look-up, which may be slow or fail on machines that are not in DNS.
    if meeting.startswith("/") or host in ("localhost", "127.0.0.1", "::1", socket.gethostname(), socket.getfqdn()):
        return
    try:
        here = {str(entry[4][0]) for entry in socket.getaddrinfo(socket.gethostname(), None)}
        there = {str(entry[4][0]) for entry in socket.getaddrinfo(host, None)}
    except OSError as error:
        raise DistError(f"init_process_group: {host} is no machine that can be found ({error}); {how}") from error
    if not here & there and not any(a.startswith("127.") for a in there):
        raise DistError(f"init_process_group: MASTER_ADDR {host} is another machine; on several machines {how}")


def _start_mpiexec(place: Meeting, size: int, seconds: float, how: str) -> None:
    """Start mpiexec with place holders. It ends when they do, each of which ends with its rank."""
    beside = Path(sys.executable).parent / "mpiexec"
    mpiexec = str(beside) if beside.exists() else shutil.which("mpiexec")
    if mpiexec is None:
        raise DistError(
            f"init_process_group: there is no mpiexec to bring {size} processes together: pip install 'tritensor[mpi]', or {how}"
        )
    version = subprocess.run([mpiexec, "--version"], capture_output=True, text=True, check=False).stdout
    # Open MPI's mpiexec has no -pmi-port.
    if "HYDRA" not in version.upper():
        raise DistError(f"init_process_group: {mpiexec} is not MPICH's, which alone takes up processes that it has not started; {how}")
    place.make()
    command: list[Any] = [mpiexec, "-pmi-port", "-n", str(size), sys.executable, str(_HOLDER), str(place.folder), str(seconds)]
    # A session of its own: Ctrl-C is for the ranks. What it says at an unclean end is said better by the ranks.
    subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
