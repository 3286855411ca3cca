"""A step's process is ended whole: deaf ones, those that hang, fork away, print without end or crash."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.gpu.lease.child import KEPT, Child, end_family, family
from tests.lease.fake_steps import command, soon

pytestmark = pytest.mark.standard  # they wait for seconds that no processor is asked for


def started(*flags: object) -> Child:
    return Child(command(*flags), os.environ)


def test_words_and_the_exit_code() -> None:
    child = started("--print", 0, "--code", 4)
    assert soon(lambda: child.code is not None)
    child.end()
    assert child.code == 4


def test_a_crash_is_its_signal() -> None:
    child = Child([sys.executable, "-S", "-c", "import os; os.kill(os.getpid(), 11)"], os.environ)
    assert soon(lambda: child.code is not None)
    child.end()
    assert child.code == -signal.SIGSEGV


def test_a_hundred_megabytes_cost_no_memory() -> None:
    child = started("--print", 100)
    assert soon(lambda: child.code is not None, 60)
    child.end()
    assert 0 < len(child.words()) <= KEPT


def test_one_that_hangs_ends_as_after_ctrl_c() -> None:
    child = Child([sys.executable, "-S", "-uc", "import time\ntry:\n print('up')\n time.sleep(99)\nfinally: print('tidied')"], os.environ)
    assert soon(lambda: "up" in child.words())
    assert child.end(10.0)
    assert "tidied" in child.words()


def test_a_deaf_one_is_killed_in_time() -> None:
    child = started("--deaf", "--hang")
    assert soon(lambda: "deaf" in child.words())
    start = time.monotonic()
    assert child.end(0.2)
    assert child.code == -signal.SIGKILL
    assert time.monotonic() - start < 4


def test_grandchildren_go_too() -> None:
    child = started("--fork", "--hang")
    assert soon(lambda: len(family(child.process.pid)) >= 2)
    root = child.process.pid
    assert child.end(0.0)
    assert not family(root)


ADOPTING = """
import os, sys, time
from tests.gpu.lease.child import Child, adopt, processes
adopt()
child = Child(sys.argv[1:], os.environ)
until = time.monotonic() + 20
while not [p for p in processes() if p.parent == os.getpid() and p.pid != child.process.pid and p.session != child.process.pid]:
    assert time.monotonic() < until
    time.sleep(0.02)
assert child.end(0.0)
left = [p for p in processes() if p.parent == os.getpid()]
assert not left, left
print("alone")
"""


def test_one_that_left_its_session_and_its_parent_is_found() -> None:
    done = subprocess.run(
        [sys.executable, "-c", ADOPTING, *command("--fork", "--hang")], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.stdout == "alone\n", done.stderr


def test_the_guard_ends_the_step_of_a_lease_that_was_killed(tmp_path: Path) -> None:
    code = (
        "import os, sys, time\nfrom tests.gpu.lease.child import Child\nfrom tests.gpu.lease.guard import Guard\n"
        "guard = Guard(); child = Child(sys.argv[1:], os.environ); guard.watch(child.process.pid); print(child.process.pid, flush=True); time.sleep(99)"
    )
    lease = subprocess.Popen([sys.executable, "-c", code, *command("--deaf", "--fork", "--hang")], stdout=subprocess.PIPE, text=True)
    assert lease.stdout is not None
    pid = int(lease.stdout.readline())
    try:
        assert soon(lambda: len(family(pid)) >= 2)
        lease.kill()
        lease.wait()
        assert soon(lambda: not family(pid)), "it lives on"
    finally:
        end_family(pid)
        lease.stdout.close()


@pytest.mark.parametrize("text", [b"\xff\xfe broken \x80", b"a\nb\n"])
def test_any_bytes_are_words(text: bytes) -> None:
    child = Child([sys.executable, "-S", "-c", f"import os; os.write(1, {text!r})"], os.environ)
    assert soon(lambda: child.code is not None)
    child.end()
    assert child.words() == text.decode(errors="replace")
