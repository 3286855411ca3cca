"""The other processes of a group: who they are, whether they live, and what each of them is doing when something is wrong."""

from __future__ import annotations

import json
import os
import socket
import time
import weakref
from collections.abc import Sequence
from typing import Any, NamedTuple, NoReturn

from tritensor.distributed.backends.mpi.library import call_before_end, is_lost, mark_lost
from tritensor.distributed.calls import Call
from tritensor.ground.errors import RankFailedError

LOOK = 0.25  # seconds between two looks at the others while one waits
GRACE = 2.0  # seconds that the others have to say what they are doing, once one has given up
_TAG = 1
LEFT = "the end of its program"


class Process(NamedTuple):
    """A process of the world: its number, machine, process id, when it started (clock ticks since the machine did), and the cores it may use."""

    rank: int
    host: str
    pid: int
    started: str
    cores: Sequence[int]


def read_stat(pid: int) -> tuple[str, str] | None:
    """(state, start) of a process of this machine, None where it is gone. The name in the middle may hold spaces and brackets."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            fields = file.read().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        # The second is raised where the process ends between open and read.
        return None
    return fields[0], fields[19]


def describe_process(rank: int) -> Process:
    """The facts that the others need of this process."""
    found = read_stat(os.getpid())
    return Process(rank, socket.gethostname(), os.getpid(), found[1] if found else "", sorted(os.sched_getaffinity(0)))


def has_spare_core(here: Process, members: Sequence[Process]) -> bool:
    """Whether the processes that may use a core of this one's are fewer than its cores."""
    own = set(here.cores)
    return len(own) > sum(p.host == here.host and not own.isdisjoint(p.cores) for p in members)


class Peers:
    """Watches the processes of one group over a communicator of its own, on which nothing else is received.

    A process that waits too long (`seconds`, where a call does not say otherwise), or finds another dead, tells all others what it is doing;
    each of them answers so, unless it hangs; and all of them raise, with the same names in the message.
    """

    def __init__(self, MPI: Any, comm: Any, members: Sequence[Process], seconds: float) -> None:
        self.MPI, self.comm, self.members, self.seconds = MPI, comm, tuple(members), seconds
        self.rank: int = comm.Get_rank()
        here = self.members[self.rank]
        self._near = [p for p in self.members if p.host == here.host and p is not here]
        self.failure: str | None = None  # why the group is of no more use
        self.failed: tuple[int, ...] = ()
        self._told = False
        if not _watching:
            call_before_end(_leave)
        _watching.add(self)

    def find_dead(self) -> list[Process]:
        """The processes of this machine that have ended."""
        found = [(p, read_stat(p.pid)) for p in self._near]
        # With the start time, since a pid is given to a new process once its own has gone.
        return [p for p, stat in found if stat is None or stat[0] in "ZX" or stat[1] != p.started]

    def look(self, call: Call, until: float, seconds: float) -> None:
        """Raise RankFailedError where something is wrong: another has given up, is dead, or it is past `until` (time.monotonic()), the end of
        the `seconds` that the call waits."""
        if self.failure is not None:
            raise RankFailedError(f"{call}: {self.failure}", self.failed)
        dead = self.find_dead()
        if dead:
            self._give_up(call, dead, "")
        if self.comm.Iprobe(source=self.MPI.ANY_SOURCE, tag=_TAG):
            self._give_up(call, [], "")
        if time.monotonic() > until:
            self._give_up(call, [], f" within {seconds:g} s")

    def raise_if_failed(self, call: str) -> None:
        """Raise RankFailedError where the group has failed before."""
        if self.failure is not None:
            raise RankFailedError(f"{call}: the group is of no more use since {self.failure}", self.failed)

    def _give_up(self, call: Call, dead: list[Process], within: str) -> NoReturn:
        self._tell({"call": call.name, "number": call.number, "line": call.line, "group": call.group, "what": call.what})
        said = self._collect_answers({p.rank for p in dead})
        silent = [p for i, p in enumerate(self.members) if i not in said and i != self.rank and p not in dead]
        left = [self.members[i] for i, s in said.items() if s["call"] == LEFT]
        elsewhere = {i: s for i, s in said.items() if (s["call"], s["number"]) != (call.name, call.number) and s["call"] != LEFT}
        parts = [f"rank {p.rank} (pid {p.pid} on {p.host}) has ended" for p in dead]
        parts += [f"rank {p.rank} (pid {p.pid} on {p.host}) has come to the end of its program" for p in left]
        parts += [f"rank {p.rank} (pid {p.pid} on {p.host}) did not come" + within for p in silent]
        parts += [
            f"rank {self.members[i].rank} is in {s['call']} (call {s['number']} of {s['group']}, {s['line']})"
            for i, s in sorted(elsewhere.items())
        ]
        # Everybody answered from inside of this very call: the fault is the speed, or the network.
        if not parts:
            parts = [
                f"all ranks are in it, and it did not end{within}: the machines are too slow for the timeout, or the connection is lost"
            ]
        blamed = [p.rank for p in (dead or left or silent)] or [self.members[i].rank for i in sorted(elsewhere)]
        self.fail("; ".join(parts), tuple(blamed))
        raise RankFailedError(f"{call}: {self.failure}", self.failed)

    def announce_end(self) -> None:
        """This process comes to its end: whoever waits for it need not."""
        self._tell({"call": LEFT, "number": 0})

    def close(self) -> None:
        """All processes of the group are through with it."""
        _watching.discard(self)
        self.comm.Free()

    def fail(self, why: str, ranks: tuple[int, ...] = ()) -> None:
        """The group is of no more use, and MPI cannot be left in order."""
        self.failure, self.failed = why, ranks
        mark_lost()

    def _tell(self, status: dict[str, Any]) -> None:
        """Send the others, without waiting for them, what this process does."""
        # Each process tells once: the others count one message from each.
        if self._told:
            return
        self._told = True
        text = json.dumps(status).encode()
        # The buffers and requests stay for good: whether they are ever received is not known.
        self._sent = [self.comm.Isend([text, self.MPI.BYTE], dest=i, tag=_TAG) for i in range(len(self.members)) if i != self.rank]

    def _collect_answers(self, dead: set[int]) -> dict[int, dict[str, Any]]:
        """The answers of the others, by its number in the group, as far as it comes within GRACE."""
        said: dict[int, dict[str, Any]] = {}
        until, status = time.monotonic() + min(GRACE, max(self.seconds, 0.2)), self.MPI.Status()
        while time.monotonic() < until and len(said) < len(self.members) - 1 - len(dead):
            if not self.comm.Iprobe(source=self.MPI.ANY_SOURCE, tag=_TAG, status=status):
                time.sleep(0.001)
                continue
            text = bytearray(status.Get_count(self.MPI.BYTE))
            self.comm.Recv([text, self.MPI.BYTE], source=status.Get_source(), tag=_TAG)
            said[status.Get_source()] = json.loads(bytes(text))
        return said


_watching: weakref.WeakSet[Peers] = weakref.WeakSet()  # of groups that were not destroyed


def _leave() -> None:
    if not is_lost():
        for peers in tuple(_watching):
            peers.announce_end()
