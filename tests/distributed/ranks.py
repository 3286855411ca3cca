"""Runs a program of tests/distributed/programs on several ranks of MPI."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

PROGRAMS = Path(__file__).resolve().parent / "programs"
ROOT = PROGRAMS.parent.parent.parent


def mpiexec() -> str:
    """The mpiexec of this environment, else that of the machine."""
    beside = Path(sys.executable).parent / "mpiexec"
    found = str(beside) if beside.exists() else shutil.which("mpiexec")
    assert found, "these tests start processes with mpiexec and find none: pip install 'tritensor[mpi]'"
    return found


def environment(**more: str) -> dict[str, str]:
    """What a program on several ranks runs in: this checkout, one BLAS thread, no word of another launcher's."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PMI_", "SLURM_")) and k not in ("RANK", "WORLD_SIZE", "LOCAL_RANK")}
    paths = os.pathsep.join(filter(None, [str(ROOT), kept.get("PYTHONPATH", "")]))
    return kept | {"PYTHONPATH": paths, "OPENBLAS_NUM_THREADS": "1"} | more


def run(
    program: str, ranks: int, *args: str, seconds: float = 240, options: tuple[str, ...] = (), **more: str
) -> subprocess.CompletedProcess[str]:
    """Run it to its end; what all ranks printed stands in stdout, errors in stderr."""
    # mpiexec ends all ranks where it sees one die of a signal: the shell between them turns that into an exit code. And it tells those that it
    # does not end by SIGUSR1, which would be the shell's end.
    ranked = ["bash", "-c", 'trap : USR1; "$0" "$@" || exit 3', sys.executable, str(PROGRAMS / program), *args]
    command = [mpiexec(), *options, "-n", str(ranks), *ranked]
    return subprocess.run(command, capture_output=True, text=True, timeout=seconds, env=environment(**more), check=False)


def succeed(program: str, ranks: int, *args: str, **more: str) -> str:
    """Run it; every rank says that it is done."""
    done = run(program, ranks, *args, **more)
    assert done.returncode == 0, f"{program} on {ranks} ranks ended with {done.returncode}:\n{done.stdout}\n{done.stderr}"
    for rank in range(ranks):
        assert f"rank {rank} done" in done.stdout, f"rank {rank} of {program} did not come to its end:\n{done.stdout}\n{done.stderr}"
    return done.stdout
