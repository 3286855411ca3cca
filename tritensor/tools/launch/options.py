"""The launcher's command line: torchrun's options where they mean something here, and a reason where they do not."""

from __future__ import annotations

import argparse
import importlib.machinery
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, NoReturn

# torchrun's options by which its agents on several machines meet. On one machine there is nobody to meet, and they may stand as they do in
# a command line that was written for torchrun; for several machines one launcher is started, on one of them, and told the others' names.
_MEETING = ("rdzv-backend", "rdzv-endpoint", "rdzv-id", "rdzv-conf", "node-rank", "master-addr", "master-port", "local-addr")
# torchrun's options that mean nothing here, and what stands in their place.
_REFUSED = {
    "start-method": "mpiexec starts the ranks; leave it out",
    "log-dir": "ranks write to the launcher's stdout and stderr; send those to a file",
    "redirects": "ranks write to the launcher's stdout and stderr; send those to a file",
    "tee": "ranks write to the launcher's stdout and stderr; send those to a file",
    "role": "all ranks run one script; leave it out",
    "run-path": "a script is run as __main__ in any case; leave it out",
    "no-python": "ranks are Python programs; for others use mpiexec itself",
    "monitor-interval": "the end of a rank is told at once; leave it out",
}


class Options(NamedTuple):
    """What a command line says, checked: `per_host` is None where mpiexec or the hosts' own numbers decide."""

    ranks: int
    per_host: int | None
    hosts: tuple[str, ...]
    hostfile: str | None
    max_restarts: int
    bind: str | None
    threads: int
    grace: float
    module: bool
    script: str
    arguments: tuple[str, ...]

    def master(self) -> str:
        """The machine of rank 0."""
        return self.hosts[0].partition(":")[0] if self.hosts else "127.0.0.1"


class _Refused(argparse.Action):
    """An option of torchrun's that gets its reason for an answer."""

    def __call__(self, parser: argparse.ArgumentParser, namespace: object, values: object, option: str | None = None) -> NoReturn:
        parser.error(f"{option} is torchrun's and has no meaning here: {_REFUSED[self.dest]}")


def _spell_both(name: str) -> list[str]:
    """torchrun's two spellings."""
    return list(dict.fromkeys([f"--{name}", "--" + name.replace("-", "_")]))


def _add_arguments(made: argparse.ArgumentParser) -> None:
    """The options; what argparse cannot check, `parse` does."""
    made.allow_abbrev = False  # what is mistyped is not guessed: it may be one of torchrun's
    number = made.add_mutually_exclusive_group()
    number.add_argument("-n", "--nproc", dest="ranks", metavar="N", help="ranks in all (default: the cores this process may use)")
    number.add_argument(
        *_spell_both("nproc-per-node"), dest="per_host", metavar="N", help="ranks on each machine; on one machine the same as -n"
    )
    where = made.add_mutually_exclusive_group()
    where.add_argument("--hosts", metavar="A,B", help="the machines, as mpiexec takes them: a,b or a:4,b:8 (default: this one)")
    where.add_argument("--hostfile", metavar="FILE", help="a file that names the machines, as mpiexec takes it")
    made.add_argument("--nnodes", metavar="N", help="torchrun's number of machines; must be that of --hosts")
    for name in _MEETING:
        made.add_argument(*_spell_both(name), dest=name, help=argparse.SUPPRESS)
    made.add_argument("--standalone", action="store_true", help="as torchrun has it; the launcher is so without --hosts in any case")
    made.add_argument(
        *_spell_both("max-restarts"), type=int, default=0, metavar="K", help="start all ranks anew after a failure, up to K times"
    )
    made.add_argument("--bind", choices=("core", "none"), help="core: each rank keeps to its share of cores (default if there are enough)")
    made.add_argument("--threads", type=int, default=1, metavar="T", help="BLAS threads of each rank (default: 1)")
    made.add_argument(
        "--grace", type=float, default=10.0, metavar="S", help="seconds that ranks have to end after another fails (default: 10)"
    )
    made.add_argument("-m", "--module", action="store_true", help="the script is a module's name, as in python -m")
    for name in _REFUSED:
        made.add_argument(*_spell_both(name), dest=name, action=_Refused, nargs="?", help=argparse.SUPPRESS)
    made.add_argument("script", help="the script, or with -m the module")
    made.add_argument("arguments", nargs=argparse.REMAINDER, metavar="...", help="what the script gets")


def parse(arguments: Sequence[str], made: argparse.ArgumentParser | None = None) -> Options:
    """The options of a command line, added to the parser given. Leaves with exit code 2 and a message where they cannot be run."""
    made = made or argparse.ArgumentParser("tritensor launch")
    _add_arguments(made)
    given = made.parse_args(arguments)
    hosts = tuple(h.strip() for h in given.hosts.split(",")) if given.hosts is not None else ()
    if given.hosts is not None and not all(hosts):
        made.error(f"--hosts {given.hosts!r} has an empty name; separate names by one comma")
    if given.hostfile is not None:
        hosts = _read_hosts(made, given.hostfile)
    machines = len({h.partition(":")[0] for h in hosts}) or 1
    _check_meeting(made, {name: value for name in _MEETING if (value := getattr(given, name)) is not None}, machines)
    if given.nnodes is not None and given.nnodes not in (str(machines), f"{machines}:{machines}"):
        made.error(
            f"--nnodes {given.nnodes}: there {'is' if machines == 1 else 'are'} {machines} machine{'s' * (machines > 1)} here; "
            "name all by --hosts a,b or --hostfile, and leave --nnodes out"
        )
    per_host: int | None
    if given.per_host is not None:
        per_host = each = _count(made, "--nproc-per-node", given.per_host)
        ranks = each * machines
    else:
        ranks = _count(made, "-n", given.ranks)
        counted = any(":" in h for h in hosts)
        per_host = None if not hosts or counted else -(-ranks // machines)
    for what, value, least in (
        ("number of ranks", ranks, 1), ("--threads", given.threads, 1), ("--max-restarts", given.max_restarts, 0), ("--grace", given.grace, 0)
    ):  # fmt: skip
        if not value >= least:
            made.error(f"{what} is {value}, and must be at least {least}")
    if machines > ranks:
        made.error(f"{ranks} rank{'s' * (ranks > 1)} cannot run on {machines} machines; give -n {machines} or more, or fewer machines")
    _check_script(made, given.script, given.module)
    return Options(
        ranks, per_host, hosts, given.hostfile, given.max_restarts, given.bind, given.threads, given.grace, given.module, given.script,
        tuple(given.arguments),
    )  # fmt: skip


def _check_meeting(made: argparse.ArgumentParser, given: Mapping[str, str], machines: int) -> None:
    """Refuse what says that there are several launchers."""
    wanted = {"node-rank": ("0",), "rdzv-backend": ("c10d", "static", "etcd", "etcd-v2")}
    for name, value in given.items():
        if machines > 1:
            made.error(
                f"--{name} is how torchrun's agents meet; here one launcher starts the ranks of all machines, and MPI brings them together: leave it out"
            )
        if value not in wanted.get(name, (value,)):
            made.error(
                f"--{name} {value}: on one machine it can only be {' or '.join(wanted[name])}; for several machines start one launcher, on one of them, "
                "with --hosts a,b or --hostfile"
            )


def _count(made: argparse.ArgumentParser, option: str, text: str | None) -> int:
    if text in (None, "auto", "cpu"):
        return len(os.sched_getaffinity(0))
    try:
        return int(text or "")
    except ValueError:
        made.error(f"{option} {text}: expects a number, or auto for the number of cores")


def _read_hosts(made: argparse.ArgumentParser, name: str) -> tuple[str, ...]:
    try:
        lines = [line.partition("#")[0].split() for line in Path(name).read_text().splitlines()]
    except OSError as error:
        made.error(f"--hostfile {name}: {error.strerror}")
    if not any(lines):
        made.error(f"--hostfile {name} names no machine")
    # Open MPI writes `a slots=4`, MPICH `a:4`: each says that the machine has a number of its own.
    return tuple(line[0] + ":" * (":" not in line[0] and any("=" in word for word in line)) for line in lines if line)


def _check_script(made: argparse.ArgumentParser, script: str, module: bool) -> None:
    if module:
        top = script.partition(".")[0]
        find = importlib.machinery.PathFinder.find_spec
        if not top or (find(top, [os.getcwd()]) or find(top)) is None:
            made.error(f"-m {script}: there is no module {top}; is it installed, or in this folder?")
        return
    if not Path(script).exists():
        made.error(f"{script}: there is no such script; a module is given by -m")
    if not Path(script).is_file():
        made.error(f"{script} is no file; a package is run by -m")
