"""Ranks that fail, are killed or hang: one report, the right exit code, and nothing left running."""

from __future__ import annotations

import os
import re
import signal
import time
from pathlib import Path
from typing import Any

import pytest


def test_first_traceback_once(launcher: Any) -> None:
    code, _, err = launcher("-n", "3", does="raise")
    assert code == 1
    assert err.count("Traceback") == 1
    assert re.search(r'rank 1 on host \S+ failed:\nTraceback \(most recent call last\):\n  File ".*ranks.py", line \d+, in <module>\n', err)
    assert "ValueError: no such weight (1)" in err
    assert err.rstrip().endswith("because of it ended ranks 0, 2: RankFailedError: barrier: rank 1 has ended")
    assert "child.py" not in err
    assert launcher.left() == []


@pytest.mark.parametrize(
    ("does", "code", "said"),
    [
        ("kill", 137, r"rank 1 \(pid {pid}\) was killed by signal SIGKILL on host"),
        (
            "segfault",
            139,
            r"rank 1 \(pid {pid}\) was killed by signal SIGSEGV on host .*\n(.*\n)*  File .*ranks.py\", line \d+ in <module>",
        ),
        ("exit", 7, r"rank 1 on host \S+ failed:\n(.*\n)*SystemExit: 7"),
        ("leave", 9, r"rank 1 on host \S+ ended with exit code 9 and no exception"),
    ],
)
def test_each_kind_of_end(launcher: Any, does: str, code: int, said: str) -> None:
    got, _, err = launcher("-n", "2", does=does)
    assert got == code, err
    assert re.search(said.format(pid=launcher.seen()[1]["pids"][0]), err), err
    assert "because of it ended rank 0: RankFailedError: barrier: rank 1 has ended" in err
    assert launcher.left() == []


def test_a_hanging_rank_is_ended(launcher: Any) -> None:
    """Rank 0 ignores SIGTERM as well."""
    code, _, err = launcher("-n", "3", "--grace", "0.5", does="hang")
    assert code == 1
    assert "ValueError: no such weight (1)" in err
    assert err.rstrip().endswith("because of it ended ranks 0, 2: by the launcher, 0.5 s after the failure")
    assert launcher.left() == []


def test_restart_goes_on_from_a_checkpoint(launcher: Any) -> None:
    code, _, err = launcher("-n", "2", "--max-restarts", "2", "--grace", "1", does="train")
    assert code == 0, err
    assert (launcher.folder / "starts1").read_text() == "2\n"
    assert [(launcher.folder / f"step{r}").read_text() for r in (0, 1)] == ["4", "4"]
    assert err.count("ValueError: no such weight (1)") == 1
    assert "restart 1 of 2" in err
    assert "restart 2 of 2" not in err
    told = launcher.seen()[0]["environment"]
    assert (told["TORCHELASTIC_RESTART_COUNT"], told["TRITENSOR_RESTART"], told["TORCHELASTIC_MAX_RESTARTS"]) == ("1", "1", "2")


def test_restarts_come_to_an_end(launcher: Any) -> None:
    code, _, err = launcher("-n", "2", "--max-restarts", "1", does="leave")
    assert code == 9
    assert err.count("ended with exit code 9") == 2


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_all(launcher: Any, number: signal.Signals, code: int) -> None:
    started = launcher.start("-n", "2", "--max-restarts", "3", does="wait")
    launcher.wait_for(2)
    time.sleep(0.3)
    started.send_signal(number)
    _, err = started.communicate(timeout=30)
    assert started.returncode == code
    assert f"{number.name}: all ranks are ended" in err.decode()
    assert "Traceback" not in err.decode()
    assert launcher.left() == []


@pytest.mark.parametrize("who", ["launcher", "mpiexec", "agent", "guard"])
def test_nobody_outlives_the_others(launcher: Any, who: str) -> None:
    """SIGKILL of the launcher, mpiexec, its agent on the machine, or the guard of a rank."""
    started = launcher.start("-n", "2", "--grace", "0.5", does="wait")
    launcher.wait_for(2)
    seen = launcher.seen()[0]
    above = int(Path(f"/proc/{seen['agent']}/stat").read_text().rpartition(")")[2].split()[1])
    os.kill({"launcher": started.pid, "mpiexec": above, "agent": seen["agent"], "guard": seen["pids"][1]}[who], signal.SIGKILL)
    _, err = started.communicate(timeout=30)
    assert started.returncode != 0
    assert launcher.left(patience=10) == []
    if who != "launcher":
        assert "tritensor.launch: mpiexec ended with" in err.decode()
