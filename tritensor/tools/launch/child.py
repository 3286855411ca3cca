"""One rank: a guard, which mpiexec starts, and its child, which runs the script as __main__ and tells the launcher how it goes.

Run by its path, `python child.py SETTINGS script arguments...`, and imports only the standard library: numpy must not be loaded before the
numbers of BLAS threads are set, and a script that does not use tritensor does not wait for it. The guard sees how its child ends, also
where a signal ends it. After a failure it stays until the launcher sends it SIGTERM: as long as it is there mpiexec knows of no failure,
and does not kill the other ranks before they have said anything.
"""

from __future__ import annotations

import array
import contextlib
import ctypes
import faulthandler
import fcntl
import importlib.util
import json
import os
import signal
import socket
import sys
import termios
import time
import traceback
import types
from collections.abc import Mapping
from typing import Any, NoReturn

# Around each part of a record; JSON in between has no such bytes. Open MPI passes lines on.
OPEN, CLOSE = b"\x1e\x1dtritensor\x1d", b"\x1d\x1e\n"
PART = 900  # characters of a part: mpiexec passes so few bytes on in one piece
TEXT = 100_000  # characters of a traceback that are told
_RANK = ("PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID")
_LOCAL = (
    ("MPI_LOCALRANKID", "MPI_LOCALNRANKS"),
    ("OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"),
    ("SLURM_LOCALID", "SLURM_NTASKS_PER_NODE"),
)
_PASSED_ON = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
_PR_SET_PDEATHSIG = 1
_told = 0  # records of this process
_stream = 2  # a copy of stderr, which the script may close or turn elsewhere


def send(record: dict[str, Any]) -> None:
    """Tell the launcher: in parts on stderr, each written in one go once mpiexec has read what was there, so that none is torn."""
    global _told
    text, _told = json.dumps(record), _told + 1
    for at in range(0, len(text), PART):
        last = at + PART >= len(text)
        _drain()
        source = f"{record['rank']}.{os.getpid()}"
        os.write(_stream, OPEN + json.dumps([source, _told, last, text[at : at + PART]]).encode() + CLOSE)


def _drain() -> None:
    waiting, until = array.array("i", [1]), time.monotonic() + 1
    while waiting[0] and time.monotonic() < until:
        try:
            fcntl.ioctl(_stream, termios.FIONREAD, waiting)
        except OSError:
            return  # a file or a device: nobody reads it in pieces
        if waiting[0]:
            time.sleep(0.0005)


def rank_of(environment: Mapping[str, str]) -> int:
    """The number that mpiexec or Slurm gives this process. Raises RuntimeError where none does."""
    found = next((n for n in _RANK if n in environment), None)
    if found is None:
        raise RuntimeError(f"tritensor.launch: a rank finds none of {', '.join(_RANK)} in its environment; was it started by mpiexec?")
    return int(environment[found])


def variables(rank: int, settings: Mapping[str, Any], environment: Mapping[str, str]) -> dict[str, str]:
    """torchrun's variables of a rank, and the launcher's own."""
    size = settings["size"]
    names = next((pair for pair in _LOCAL if all(n in environment for n in pair)), None)
    local, beside = (int(environment[names[0]]), int(environment[names[1]])) if names else (rank, size)
    return {
        "RANK": str(rank),
        "WORLD_SIZE": str(size),
        "LOCAL_RANK": str(local),
        "LOCAL_WORLD_SIZE": str(beside),
        "GROUP_RANK": str((rank - local) // beside),
        "MASTER_ADDR": settings["address"],
        "MASTER_PORT": str(settings["port"]),
        "TORCHELASTIC_RUN_ID": settings["run"],
        "TORCHELASTIC_RESTART_COUNT": str(settings["restart"]),
        "TORCHELASTIC_MAX_RESTARTS": str(settings["restarts"]),
        "TRITENSOR_RESTART": str(settings["restart"]),
        "TRITENSOR_LAUNCH": "1",
        **settings["threads"],
    }


def share(cpus: Mapping[int, tuple[int, int]], local: int, beside: int, bind: str | None) -> set[int] | None:
    """The processors that rank `local` of `beside` on one machine keeps to, None for all: neighbours by `cpus`, each one's (socket, core).

    More ranks than processors take turns where `bind` is "core", and are not bound where it is not said.
    """
    if bind == "none" or (bind is None and beside > len(cpus)):
        return None
    order = sorted(cpus, key=lambda c: (*cpus[c], c))  # hyperthreads of a core side by side, and cores of a socket
    if beside > len(order):
        return {order[local % len(order)]}
    return set(order[local * len(order) // beside : (local + 1) * len(order) // beside])


def _cpus() -> dict[int, tuple[int, int]]:
    found = {}
    for cpu in os.sched_getaffinity(0):
        place = [0, cpu]
        for i, name in enumerate(("physical_package_id", "core_id")):
            try:
                with open(f"/sys/devices/system/cpu/cpu{cpu}/topology/{name}") as file:
                    place[i] = int(file.read())
            except FileNotFoundError:
                continue  # not every machine says it: each processor then counts as a core of its own
        found[cpu] = (place[0], place[1])
    return found


def _end_with_parent(parent: int) -> None:
    """This process is killed when its parent ends, so that nothing outlives the launcher."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


def code_of(script: str, module: bool) -> tuple[types.CodeType, types.ModuleType, str]:
    """(code, an empty __main__, file) of a script or a module. Raises what reading, compiling, or importing the packages above it raises."""
    main = types.ModuleType("__main__")
    if not module:
        with open(script, "rb") as file:
            code = compile(file.read(), script, "exec", dont_inherit=True)
        vars(main).update(__file__=script, __builtins__=__builtins__, __cached__=None)
        return code, main, script
    spec = importlib.util.find_spec(script)
    if spec is not None and spec.submodule_search_locations is not None:
        spec = importlib.util.find_spec(f"{script}.__main__")
    get_code = (
        getattr(spec.loader, "get_code", None) if spec is not None else None
    )  # as runpy asks: a command's loader has it and is no InspectLoader
    loaded = get_code(spec.name) if spec is not None and get_code is not None else None
    if spec is None or loaded is None:
        raise ModuleNotFoundError(f"tritensor.launch -m {script}: there is no such module, or it is no program", name=script)
    vars(main).update(__file__=spec.origin, __builtins__=__builtins__, __cached__=spec.cached)
    vars(main).update(__spec__=spec, __loader__=spec.loader, __package__=spec.parent)
    return loaded, main, spec.origin or script


def run(script: str, arguments: list[str], module: bool) -> None:
    """Run a script or module as __main__, with its sys.argv and sys.path, as python itself does."""
    if not sys.flags.safe_path:
        sys.path[0] = os.getcwd() if module else os.path.dirname(os.path.realpath(script))
    sys.argv = [script, *arguments]
    code, main, sys.argv[0] = code_of(script, module)
    sys.modules["__main__"] = main
    exec(code, vars(main))


def failure(error: BaseException) -> dict[str, Any]:
    """What is told of an exception: its type's name, last line, traceback without the frames of the launcher, and the exit code."""
    trace = error.__traceback__
    while trace is not None and (trace.tb_frame.f_code.co_filename == __file__ or "importlib" in trace.tb_frame.f_code.co_filename):
        trace = trace.tb_next
    code = 1
    if isinstance(error, SystemExit):
        code = 0 if error.code is None else error.code & 0xFF if isinstance(error.code, int) else 1
    elif isinstance(error, KeyboardInterrupt):
        code = 130
    lines = traceback.TracebackException(type(error), error, trace, compact=True)
    text = "".join(lines.format())
    if len(text) > TEXT:
        # Of endless recursion both ends are worth having.
        text = f"{text[: TEXT // 2]}\n... {len(text) - TEXT} characters left out ...\n{text[-TEXT // 2 :]}"
    kind = type(error).__name__
    return {"kind": "failed", "exception": kind, "last": "".join(lines.format_exception_only()).strip(), "traceback": text, "code": code}


def _work(rank: int, settings: Mapping[str, Any], script: str, arguments: list[str]) -> None:
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(line_buffering=True)  # type: ignore[union-attr]  # whole lines, at once: ranks share one terminal
    pid, host, cores = os.getpid(), socket.gethostname(), sorted(os.sched_getaffinity(0))
    send({"kind": "started", "rank": rank, "pid": pid, "guard": os.getppid(), "host": host, "cores": cores})
    try:
        run(script, arguments, settings["module"])
    except BaseException as error:
        told = failure(error)
        if not told["code"] or os.getpid() != pid:  # sys.exit(0), or a process that the script forked
            raise
        for stream in (sys.stdout, sys.stderr):
            if stream is not None and not stream.closed:
                stream.flush()
        send({**told, "rank": rank})
        os._exit(told["code"])  # not through atexit: MPI_Finalize would wait for the others


def _guard(rank: int, child: int, fault: int) -> NoReturn:
    """Wait for the child, tell how it ended, and leave with its exit code, 128 + the signal where one ended it; not at once if it failed."""

    def pass_on(number: int, frame: types.FrameType | None) -> None:
        with contextlib.suppress(ProcessLookupError):  # it may just have ended
            os.kill(child, number)

    for number in _PASSED_ON:
        signal.signal(number, pass_on)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _PASSED_ON)
    status = os.waitpid(child, 0)[1]
    signal.pthread_sigmask(signal.SIG_BLOCK, _PASSED_ON)
    by = os.WTERMSIG(status) if os.WIFSIGNALED(status) else None
    code = 128 + by if by is not None else os.WEXITSTATUS(status)
    if code:
        with contextlib.suppress(ProcessLookupError):  # it may have left nothing behind; what it did would keep mpiexec waiting
            os.killpg(child, signal.SIGKILL)
    os.set_blocking(fault, False)  # a grandchild may still hold the other end
    try:
        lines = os.read(fault, 65536).decode(errors="replace").splitlines(keepends=True)
    except BlockingIOError:
        lines = []
    where = "".join(line for line in lines if __file__ not in line and not line.startswith("Extension modules:"))
    send({"kind": "ended", "rank": rank, "pid": child, "code": code, "signal": by, "traceback": where})
    if code:
        signal.sigwait((signal.SIGTERM, signal.SIGHUP))
    os._exit(code)


def main() -> None:
    """Become a rank: SETTINGS (JSON), the script and its arguments are sys.argv."""
    settings, script, *arguments = sys.argv[1:]
    told = json.loads(settings)
    global _stream
    _stream = os.dup(2)
    rank = rank_of(os.environ)
    os.environ.update(variables(rank, told, os.environ))
    cores = share(_cpus(), int(os.environ["LOCAL_RANK"]), int(os.environ["LOCAL_WORLD_SIZE"]), told["bind"])
    if cores is not None:
        os.sched_setaffinity(0, cores)
    _end_with_parent(os.getppid())
    guard = os.getpid()
    read, write = os.pipe()
    signal.pthread_sigmask(signal.SIG_BLOCK, _PASSED_ON)
    child = os.fork()
    if child:
        os.close(write)
        _guard(rank, child, read)
    os.close(read)
    os.setpgid(0, 0)  # the script and what it starts: the guard ends them together
    _end_with_parent(guard)
    for number in _PASSED_ON:
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _PASSED_ON)
    faulthandler.enable(write, all_threads=False)
    _work(rank, told, script, arguments)


if __name__ == "__main__":
    main()
