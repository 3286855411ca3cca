"""The ranks of one start as the launcher knows them: what each has told, and which of them failed first."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
from typing import Any


class Rank:
    """One rank: what it told when it started, failed and ended (None before), and when its failure came to be known."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.started: dict[str, Any] | None = None
        self.failed: dict[str, Any] | None = None
        self.ended: dict[str, Any] | None = None
        self.order: int | None = None  # the how manyeth failure it is
        self.stopped = False  # by the launcher

    @property
    def host(self) -> str:
        return self.started["host"] if self.started else "?"

    @property
    def here(self) -> bool:
        """True where it runs on this machine."""
        return self.host == socket.gethostname()  # pids of other machines mean nothing here

    @property
    def code(self) -> int:
        """Its exit code, 128 + the signal where one ended it."""
        return self.failed["code"] if self.failed else self.ended["code"] if self.ended else 0

    @property
    def signal(self) -> str | None:
        """The name of the signal that ended it."""
        number = self.ended["signal"] if self.ended and not self.failed else None
        return None if number is None else signal.Signals(number).name if number in set(signal.Signals) else f"signal {number}"

    def kill(self, number: int) -> None:
        """Send it a signal, and with SIGKILL its guard and what it has started; only where it is on this machine and has not ended."""
        if self.started is None or self.ended is not None or not self.here:
            return
        self.stopped = True
        for send, pid in ((os.kill, self.started["pid"]), (os.killpg, self.started["pid"]), (os.kill, self.started["guard"])):
            try:
                send(pid, number)
            except ProcessLookupError:
                continue  # it has ended, and its record is under way
            if number != signal.SIGKILL:
                return

    def release(self) -> None:
        """Let the guard of a failed rank of this machine go; it has been waiting for it."""
        if self.started is not None and self.ended is not None and self.ended["code"] and self.here:
            with contextlib.suppress(ProcessLookupError):  # mpiexec may have killed it
                os.kill(self.started["guard"], signal.SIGTERM)


class Group:
    """All ranks of one start, told record by record."""

    def __init__(self, size: int) -> None:
        self.ranks = [Rank(i) for i in range(size)]
        self._failures = 0

    def take(self, record: dict[str, Any]) -> None:
        """Note what a rank told."""
        rank = self.ranks[record["rank"]]
        setattr(rank, record["kind"], record)
        if rank.order is None and rank.code and not rank.stopped:
            rank.order, self._failures = self._failures, self._failures + 1

    @property
    def all_started(self) -> bool:
        return all(r.started for r in self.ranks)

    @property
    def all_ended(self) -> bool:
        return all(r.ended for r in self.ranks)

    def first_failure(self) -> Rank | None:
        """The rank that failed first; one that only reports another's failure (RankFailedError) only where no other failed."""
        failed = [r for r in self.ranks if r.order is not None]
        return min(failed, key=lambda r: (_reports_another(r), r.order), default=None)


def _reports_another(rank: Rank) -> bool:
    return rank.failed is not None and rank.failed["exception"] == "RankFailedError"
