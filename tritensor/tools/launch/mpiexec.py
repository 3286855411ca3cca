"""mpiexec: where it is, whose it is, and the command line that starts ranks."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from tritensor.tools.launch.options import Options


class Mpiexec(NamedTuple):
    """An mpiexec: its path, and `maker`, "mpich" or "openmpi"."""

    path: str
    maker: str


def find(beside: str = sys.executable) -> Mpiexec:
    """The mpiexec beside this Python, or else that of PATH.

    Raises FileNotFoundError where there is none, ValueError where it is of a maker that the launcher does not know.
    """
    near = Path(beside).parent / "mpiexec"
    path = str(near) if near.is_file() else shutil.which("mpiexec")
    if path is None:
        raise FileNotFoundError(
            f"finds no mpiexec, neither in {near.parent} nor on PATH: pip install 'tritensor[mpi]' brings MPICH and mpi4py as wheels"
        )
    told = subprocess.run([path, "--version"], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    return Mpiexec(path, maker_of(path, told.stdout + told.stderr))


def maker_of(path: str, version: str) -> str:
    """Whose mpiexec says `version` of itself. Raises ValueError where it is neither MPICH's nor Open MPI's."""
    for words, maker in ((("Open MPI", "OpenRTE", "PRRTE", "prterun"), "openmpi"), (("HYDRA",), "mpich")):
        if any(w in version for w in words):
            return maker
    first = version.strip().partition("\n")[0]
    raise ValueError(f"{path} is neither MPICH's nor Open MPI's (it says {first!r}): pip install 'tritensor[mpi]' brings MPICH")


def command(mpiexec: Mpiexec, options: Options, rank_command: list[str]) -> list[str]:
    """The command line that runs `rank_command` as all ranks. Ranks bind themselves to cores (child.py), so mpiexec must not."""
    return [mpiexec.path, *(_openmpi(options) if mpiexec.maker == "openmpi" else _mpich(options)), *rank_command]


def _mpich(options: Options) -> list[str]:
    # No cleanup: the other ranks are to tell how they ended.
    words = ["-n", str(options.ranks), "-disable-auto-cleanup", "-bind-to", "none"]
    if options.hostfile is not None:
        words += ["-f", options.hostfile]
    elif options.hosts:
        words += ["-hosts", ",".join(options.hosts)]
    if options.hosts and options.per_host is not None:
        words += ["-ppn", str(options.per_host)]
    return words


def _openmpi(options: Options) -> list[str]:
    words = ["-n", str(options.ranks), "--bind-to", "none"]
    if options.hostfile is not None:
        words += ["--hostfile", options.hostfile]
    elif options.hosts:
        words += ["--host", ",".join(options.hosts)]
    place = "slot" if options.per_host is None or not options.hosts else f"ppr:{options.per_host}:node"
    return [*words, "--map-by", f"{place}:OVERSUBSCRIBE"]  # Open MPI refuses more ranks than cores otherwise
