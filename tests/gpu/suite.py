"""`pytest -m gpu` dealt to worker processes, in shards: `python -m tests.gpu.suite walk [--op softmax ...]`.

A test that kills or hangs its process costs itself. Shards whose tests compare numbers share the GPU among many processes, which compile as they
go; the core, which counts bytes and times, has the GPU for itself.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import queue
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple

import pytest

from tests.gpu import workers

CORE = ("doctor", "errors", "streams", "memory", "graphs", "training", "triton_kernels", "launch_features", "products", "profiler", "nccl")
FIRST = ("float32", "bfloat16", "float16", "float64")  # types in the order of their worth


class Shard(NamedTuple):
    """Files of tests, how many processes share the GPU (None: as many as are asked for), and how long one test may be silent."""

    files: tuple[str, ...]
    processes: int | None = None
    patience: float = 90.0


# In the order of their worth
SHARDS = {
    "core": Shard((*(f"tests/gpu/test_{name}.py" for name in CORE), "tests/tensor/test_exchange.py"), 1, 180.0),
    "accuracy": Shard(("tests/test_accuracy.py",), 4),
    "walk": Shard(("tests/gpu/test_walk.py",)),
    "races": Shard(("tests/gpu/test_races.py",)),
    "sizes": Shard(("tests/gpu/test_sizes.py",), patience=180.0),
    "sanitizer": Shard(("tests/gpu/test_sanitizer.py",), 1, 330.0),
}
# What only a whole run of pytest asks: that everything was compiled before the first test.
WHOLE_RUNS = ("test_every_kernel_compiles",)


def op_of(item: str) -> str:
    """The op of "file::test[op/type]" or "file::test[op]"; "" of a test that is of none."""
    return item.partition("[")[2].rstrip("]").partition("/")[0]


def chosen(items: Sequence[str], ops: Sequence[str]) -> list[str]:
    """The items to ask, the types that most programs use first."""
    kept = [i for i in items if not i.partition("[")[0].endswith(WHOLE_RUNS) and (not ops or op_of(i) in ops)]
    kinds = [i.rstrip("]").partition("/")[2].rpartition("/")[2] for i in kept]
    worth = [FIRST.index(k) if k in FIRST else len(FIRST) for k in kinds]
    return [kept[n] for n in sorted(range(len(kept)), key=lambda n: worth[n])]


# A worker: a session of pytest that is told which test is next
class Plugin:
    """Tells which tests there are, then runs those whose names come in, and answers each with how it went."""

    def __init__(self, questions: IO[str], answers: IO[str]) -> None:
        self._questions, self._answers = questions, answers
        self._reports: list[Any] = []
        self.device_gone = False

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        items = {item.nodeid: item for item in session.items}
        workers.write(self._answers, {"items": list(items)})
        for line in self._questions:
            item = items[line.strip()]
            self._reports.clear()
            item.ihook.pytest_runtest_protocol(item=item, nextitem=None)
            failed = [f"{r.when}: {told(r)}" for r in self._reports if r.failed]
            skipped = [str(r.longrepr[-1]) if isinstance(r.longrepr, tuple) else "skipped" for r in self._reports if r.skipped]
            workers.answer(self._answers, failed or skipped, **({"outcome": "skipped"} if skipped and not failed else {}))
            if not workers.device_lives():
                self.device_gone = True
                break
        return True

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._reports.append(report)


def told(report: Any) -> str:
    """A failure in some lines: what was raised, and where."""
    crash = getattr(report.longrepr, "reprcrash", None)
    if crash is None:
        return str(report.longrepr)[-1500:]
    return f"{crash.message[:1500]} ({Path(crash.path).name}:{crash.lineno})"


def work(shard: Shard, answers: int) -> int:
    """Run tests until standard input ends, or the device is gone."""
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    with os.fdopen(os.dup(0)) as questions, os.fdopen(answers, "w") as stream:  # pytest takes standard input from its tests
        plugin = Plugin(questions, stream)
        # A pack of an older checkout says so, once; the kernels that changed are compiled, and no test is the worse for it.
        flags = ["-m", "gpu", "-q", "-p", "no:cacheprovider", "-W", "ignore:pack :RuntimeWarning"]
        pytest.main([*flags, *shard.files], plugins=[plugin_named(plugin)])
        return workers.DEAD if plugin.device_gone else 0


def plugin_named(plugin: Plugin) -> Any:
    """A plugin that registers `plugin` as "dealt", the name that tests/gpu/conftest.py asks for."""

    class Registers:
        def pytest_configure(self, config: pytest.Config) -> None:
            config.pluginmanager.register(plugin, "dealt")

    return Registers()


class TestWorker(workers.Worker):
    """A session of pytest; `items` are its tests' names, none where it does not start."""

    __test__ = False

    def __init__(self, name: str) -> None:
        super().__init__(workers.python("tests.gpu.suite", name, "--work"), SHARDS[name].patience)
        self.items: list[str] = []
        with contextlib.suppress(EOFError, queue.Empty):
            self.items = self.next()["items"]


def run(name: str, given: argparse.Namespace) -> int:
    """One shard, dealt; the exit code."""
    start = time.monotonic()
    first = TestWorker(name)
    if not first.items:
        print(f"{name}: pytest does not start: {first.said()[-1500:]}", flush=True)
        first.close()
        return 1
    todo = workers.remaining(chosen(first.items, given.op), given.done)
    spare = [first]
    seconds = None if given.seconds is None else given.seconds - (time.monotonic() - start)
    processes = SHARDS[name].processes or given.processes
    with workers.reporting(given.report) as report:
        found = workers.deal(todo, lambda: spare.pop() if spare else TestWorker(name), processes, report, seconds)
        for worker in spare:
            worker.close()
        return workers.ended(found, f"tests of {name}", len(todo), start, report)


def main(argv: Sequence[str] | None = None) -> int:
    """Run a shard and print how it went; the exit code is 1 when a test failed, 4 when some are left."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.gpu.suite", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("shard", choices=list(SHARDS))
    parser.add_argument("--op", nargs="*", default=[], help="ops to ask; all when none is given")
    workers.add_arguments(parser)
    given = parser.parse_args(argv)
    if given.work:
        return work(SHARDS[given.shard], given.answers)
    return run(given.shard, given)


if __name__ == "__main__":
    sys.exit(main())
