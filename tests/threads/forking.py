"""A program that forks at random moments while four threads load ops: `python -m tests.threads.forking FIRST_SEED ROUNDS`. Its children must compute."""

from __future__ import annotations

import os
import random
import signal
import sys
import threading
import time
import traceback
import warnings
from typing import Any

import numpy as np

import tritensor as tt
from tritensor.llvm import threads
from tritensor.ops.table import registry

PATIENCE = 60  # seconds for a child: one that hangs is ended by SIGALRM


def in_child(names: list[str]) -> None:
    """Ops that the threads were about to load, an answer with its gradient, machine code, products on several threads, all the rest of the table."""
    for name in names:
        assert registry[name].name == name
    x = tt.tensor([0.0, 1.0, 2.0], requires_grad=True)
    (tt.softmax(x, 0) * tt.tensor([1.0, 2.0, 4.0])).sum().backward()
    p = np.exp([0.0, 1.0, 2.0]) / np.exp([0.0, 1.0, 2.0]).sum()
    w = np.array([1.0, 2.0, 4.0])
    np.testing.assert_allclose(x.grad.numpy(), p * (w - (p * w).sum()), rtol=1e-5)
    assert float((tt.ones(300, 300) @ tt.ones(300, 300)).sum()) == 300.0**3
    seen: list[int] = []
    threads.share(lambda low, high: seen.extend(range(low, high)), 7)
    assert sorted(seen) == list(range(7))
    assert threading.active_count() <= 1 + threads.count(), "a thread of the parent"


def child_of(seed: int, work: Any) -> int:
    """The exit status of a forked child that does `work()`."""
    pid = os.fork()
    if pid:
        return os.waitpid(pid, 0)[1]
    try:
        signal.alarm(PATIENCE)
        work()
    except BaseException:
        traceback.print_exc()
        os._exit(seed % 100 + 1)
    os._exit(0)


def while_loading(seed: int) -> None:
    """One round, in a process that has loaded no op."""
    draw = random.Random(seed)
    names = registry.names()
    draw.shuffle(names)
    failed: list[BaseException] = []

    def load(part: list[str]) -> None:
        try:
            for name in part:
                assert registry[name].name == name
        except BaseException as error:
            failed.append(error)
            traceback.print_exc()

    sys.setswitchinterval(1e-5)
    loading = [threading.Thread(target=load, args=(names[k::4],)) for k in range(4)]
    for thread in loading:
        thread.start()
    statuses = []
    for turn in range(3):
        time.sleep(draw.random() * 0.1)
        statuses.append(child_of(seed, lambda turn=turn: in_child(names[turn * 9 : turn * 9 + 20] + names[-5:])))
    for thread in loading:
        thread.join()
    assert not failed
    assert not any(statuses), f"children of seed {seed} ended with {statuses}"
    assert len(registry) == len(names)


if __name__ == "__main__":
    warnings.simplefilter("ignore", DeprecationWarning)  # Python's own word on forks beside threads
    first, rounds = map(int, sys.argv[1:])
    bad = [seed for seed in range(first, first + rounds) if child_of(seed, lambda seed=seed: while_loading(seed))]
    print("bad seeds:", bad)
