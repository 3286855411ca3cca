"""Processes that no mpiexec has started meet at an address: multiprocessing.spawn, a shell with torchrun's variables."""

from __future__ import annotations

import hashlib
import json
import os
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.distributed.ranks import PROGRAMS, ROOT, environment
from tritensor.distributed.backends.mpi import adoption
from tritensor.ground.errors import DistError

SPAWNED = ROOT / "tests" / "distributed" / "scripts" / "spawned.py"
PORT = str(20000 + os.getpid() % 20000)  # of this test process alone


def holders() -> list[str]:
    """The command lines of place holders that run for this address."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found.append(entry.read_bytes().decode(errors="replace"))
        except (FileNotFoundError, ProcessLookupError):
            continue
    return [line for line in found if "place_holder.py" in line and "\0" in line]


def start(rank: int, size: int, **more: str) -> subprocess.Popen[str]:
    variables = {"RANK": str(rank), "WORLD_SIZE": str(size), "MASTER_ADDR": "localhost", "MASTER_PORT": PORT}
    command = [sys.executable, str(PROGRAMS / "every_collective.py"), "odd"]
    env = environment() | variables | more
    return subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_spawned_processes(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tritensor.run", str(SPAWNED), PORT], env=environment(SAID=str(tmp_path)), capture_output=True, text=True,
        timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    for rank in range(2):
        assert (tmp_path / f"{rank}.txt").read_text() == f"{rank} 2 [[0.125, 0.125, 0.125, 0.125, 0.125, 0.125], [-0.225, -0.225]]\n"


def test_mpi_that_began_alone_cannot_grow() -> None:
    """Lightning imports mpi4py to see whether mpiexec has started the program, before it starts other ranks itself."""
    code = "import mpi4py.MPI, tritensor.distributed as dist; dist.init_process_group('mpi')"
    variables = {"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "localhost", "MASTER_PORT": PORT}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment() | variables, capture_output=True, text=True, timeout=60, check=False
    )
    assert (
        "world_size is 2, and MPI has started 1 process (this one alone, when the program or a library imported mpi4py.MPI" in done.stderr
    )
    assert "python -m tritensor.launch -n 2" in done.stderr


def test_torchruns_variables_from_a_shell() -> None:
    before = set(holders())
    ranks = [start(rank, 3) for rank in (2, 0, 1)]
    for process in ranks:
        said, errors = process.communicate(timeout=120)
        assert process.returncode == 0, errors
        assert said.endswith("done\n")
    until = time.monotonic() + 30
    while set(holders()) - before:
        assert time.monotonic() < until, "place holders outlive their ranks"
        time.sleep(0.1)


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        (
            {"MASTER_ADDR": "192.0.2.1"},
            "MASTER_ADDR 192.0.2.1 is another machine; on several machines start them together by python -m tritensor.launch",
        ),
        ({"PATH": "/nowhere", "NO_MPIEXEC": "1"}, "there is no mpiexec to bring 2 processes together: pip install 'tritensor[mpi]'"),
    ],
)
def test_who_cannot_meet(variables: dict[str, str], said: str, tmp_path: Path) -> None:
    if variables.pop("NO_MPIEXEC", None):  # a Python beside which there is none
        code = f"import sys; sys.executable = {str(tmp_path / 'python')!r}; import runpy; sys.argv = ['x', 'odd']; "
        command = [sys.executable, "-c", code + f"runpy.run_path({str(PROGRAMS / 'every_collective.py')!r}, run_name='__main__')"]
    else:
        command = [sys.executable, str(PROGRAMS / "every_collective.py"), "odd"]
    env = environment() | {"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "localhost", "MASTER_PORT": PORT} | variables
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert said in done.stderr


def test_without_an_address() -> None:
    env = environment() | {"RANK": "0", "WORLD_SIZE": "2"}
    for name in ("MASTER_ADDR", "MASTER_PORT"):
        env.pop(name, None)
    command = [sys.executable, str(PROGRAMS / "every_collective.py"), "odd"]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60, check=False)
    assert "world_size is 2, and this process was started alone; start them together by python -m tritensor.launch -n 2" in done.stderr


# -- another user of the machine knows the folder's name as well
def offered(folder: Path, **environment: str) -> None:
    (folder / "1.json").write_text(json.dumps({"holder": os.getpid(), "environment": environment}))


def test_a_rank_takes_what_mpi_asks_for_and_no_other_variable(tmp_path: Path) -> None:
    place = adoption.Meeting(tmp_path / "here")
    assert place.read_offer(1) is None, "nobody is there yet"
    place.make()
    offered(place.folder, PMI_ID="1", PMI_PORT="here:1", MPI_LOCALRANKID="1", LD_PRELOAD="/tmp/evil.so", PATH="/tmp", PYTHONPATH="/tmp")
    assert place.read_offer(1) == {"PMI_ID": "1", "PMI_PORT": "here:1", "MPI_LOCALRANKID": "1"}
    assert stat.S_IMODE(place.folder.stat().st_mode) == 0o700
    place.write_taken(1)
    assert (place.folder / "1.taken").read_text() == str(os.getpid())
    place.make()
    assert not list(place.folder.iterdir()), "what an earlier program of this user left is gone"


def planted_folder(folder: Path) -> None:
    folder.mkdir(mode=0o777)
    folder.chmod(0o777)


def planted_link(folder: Path) -> None:
    beside = folder.with_name("beside")
    beside.mkdir(mode=0o700)
    offered(beside, PMI_ID="1")
    folder.symlink_to(beside)


def planted_file(folder: Path) -> None:
    folder.write_text("")


def planted_by_another(folder: Path) -> None:
    folder.mkdir(mode=0o700)
    os.chown(folder, 65534, 65534)


PLANTED = [planted_folder, planted_link, planted_file, *([planted_by_another] if os.getuid() == 0 else [])]


@pytest.mark.parametrize("plant", PLANTED)
def test_what_another_has_put_there_is_neither_trusted_nor_written_to(
    plant: Callable[[Path], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "here"
    plant(folder)
    if folder.is_dir():
        offered(folder, PMI_ID="1", LD_PRELOAD="/tmp/evil.so")
    before = sorted(str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*"))
    place = adoption.Meeting(folder)
    for act in (place.make, lambda: place.read_offer(1), lambda: place.write_taken(1)):
        with pytest.raises(
            DistError,
            match=r"^init_process_group: the folder where the ranks meet, .*here, is .*; somebody else has put it there: remove it",
        ):
            act()
    assert sorted(str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*")) == before
    variables = dict(os.environ)
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(tmp_path))
    folder.rename(tmp_path / meeting_name("localhost:1"))
    with pytest.raises(DistError, match="somebody else"):
        adoption.adopt("localhost:1", 1, 2, 5.0)
    assert dict(os.environ) == variables


def meeting_name(meeting: str) -> str:
    return f"tritensor-mpi-{os.getuid()}-{hashlib.sha256(meeting.encode()).hexdigest()[:16]}"
