"""The failure that comes first, guards that are let go, and records that wait for text before them."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from typing import Any

import pytest

from tritensor.tools.launch import child
from tritensor.tools.launch.group import Group
from tritensor.tools.launch.records import Reader


def failed(rank: int, exception: str) -> dict[str, Any]:
    return {"kind": "failed", "rank": rank, "exception": exception, "last": exception, "traceback": exception, "code": 1}


def ended(rank: int, code: int, by: int | None = None) -> dict[str, Any]:
    return {"kind": "ended", "rank": rank, "pid": 1, "code": code, "signal": by, "traceback": ""}


def test_a_rank_that_reports_anothers_failure_is_not_the_first() -> None:
    group = Group(4)
    group.take(failed(3, "RankFailedError"))
    assert group.first_failure() is group.ranks[3]
    group.take(ended(1, 139, signal.SIGSEGV))
    group.take(failed(2, "ValueError"))
    assert group.first_failure() is group.ranks[1]
    assert (group.ranks[1].signal, group.ranks[1].code) == ("SIGSEGV", 139)
    assert not group.all_ended
    for rank in (0, 2, 3):
        group.take(ended(rank, 0))
    assert group.all_ended
    assert group.ranks[0].order is None


def test_a_guard_is_let_go() -> None:
    guards = [subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]) for _ in range(2)]
    group = Group(2)
    for rank, guard in enumerate(guards):
        group.take({"kind": "started", "rank": rank, "pid": guard.pid, "guard": guard.pid, "host": socket.gethostname(), "cores": [0]})
    group.take(ended(1, 1))
    for rank in group.ranks:
        rank.release()
    assert guards[1].wait(10) == -signal.SIGTERM
    assert guards[0].poll() is None, "that of a rank which still runs stays"
    guards[0].kill()
    guards[0].wait()


def test_a_record_waits_for_text_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    read, write = os.pipe()
    monkeypatch.setattr(child, "_stream", write)
    os.write(write, b"text")
    sender = threading.Thread(target=child.send, args=({"rank": 0, "kind": "started"},))
    sender.start()
    time.sleep(0.1)
    assert os.read(read, 65536) == b"text"
    sender.join()
    assert Reader().feed(os.read(read, 65536)) == (b"", [{"rank": 0, "kind": "started"}])
    os.close(read)
    os.close(write)


def test_a_failed_ranks_guard_stays_while_others_run(launcher: Any) -> None:
    """It is mpiexec that must not learn of the failure before the others have told theirs."""
    started = launcher.start("-n", "2", "--grace", "2", does="hang")
    launcher.wait_for(2)
    rank, guard = launcher.seen()[1]["pids"]
    until = time.monotonic() + 10
    while launcher.lives(rank) and time.monotonic() < until:
        time.sleep(0.01)
    time.sleep(0.3)
    assert not launcher.lives(rank)
    assert launcher.lives(guard)
    started.communicate(timeout=30)
    assert launcher.left() == []
