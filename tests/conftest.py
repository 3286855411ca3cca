"""Test set-up: device cuda is emulated for the whole session, unless the GPU itself is asked for with `-m gpu`."""

from __future__ import annotations

import gc
import os
import re
from collections.abc import Generator
from pathlib import Path

import pytest

from tests.lazily import Lazily
from tests.tiers.marks import mark, of_other_ops
from tests.tiers.telling import Telling

# Only tests/sabotage/test_gpu_suite.py sets this, to "emulated": the GPU's tests then run, a few of them, on the emulated device.
STAND_IN = "TRITENSOR_GPU_TESTS"


def wants_gpu(config: pytest.Config) -> bool:
    """Whether the session's -m expression asks for the tests of the real device."""
    return bool(re.search(r"(?<!not )\bgpu\b", config.option.markexpr or ""))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--ops", default="", metavar="NAME,...", help="of the files that walk the op table, the items of these ops alone")
    parser.addoption("--tell", default="", metavar="TEXT", help="a line for the end of the session: what was left out, and why")


def pytest_configure(config: pytest.Config) -> None:
    # Before any test module is imported, because Triton reads the variable when a kernel is defined. Workers of xdist inherit it.
    if wants_gpu(config) and os.environ.get(STAND_IN) != "emulated":
        os.environ.pop("TRITON_INTERPRET", None)
    else:
        os.environ.setdefault("TRITON_INTERPRET", "1")
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # two threads beside a busy neighbour are three times slower than one
    if os.environ.get("TRITENSOR_LAZY", "0") != "0":
        config.pluginmanager.register(Lazily(), "lazily")
    if "not standard" in config.option.markexpr:
        config.pluginmanager.register(Telling(config), "telling")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    # The GPU's tests need pytest and numpy alone: a file without one is not even imported, so that what it needs may be missing.
    if wants_gpu(config) and collection_path.name.startswith("test_") and collection_path.suffix == ".py":
        return "mark.gpu" not in collection_path.read_text() or None
    return None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    mark(items)
    if telling := config.pluginmanager.get_plugin("telling"):
        telling.note(items)
    if config.option.ops:
        gone = of_other_ops(items, config.option.ops.split(","))
        config.hook.pytest_deselected(items=gone)
        items[:] = [i for i in items if i not in set(gone)]
    # A test marked gpu needs a GPU and the compiler; everything else runs anywhere. Deselected, not skipped.
    if config.option.markexpr:
        return
    gone = [i for i in items if i.get_closest_marker("gpu")]
    if gone:
        config.hook.pytest_deselected(items=gone)
        items[:] = [i for i in items if not i.get_closest_marker("gpu")]


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    """Tens of thousands of items live to the end: no collection of garbage looks at them, neither while they are made nor in the tests that
    collect (capturing a graph does, and asking who keeps a tensor), which cost a second each where they did."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.collect()
        gc.freeze()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if config.option.tell:
        terminalreporter.write_line(config.option.tell)


def pytest_unconfigure() -> None:
    gc.unfreeze()  # extension modules tell of what is not collected at the end


def pytest_collection_finish(session: pytest.Session) -> None:
    # One line where there is no GPU, in place of hundreds of failures that say the same.
    if not wants_gpu(session.config) or session.config.option.collectonly or not session.items:
        return
    from tritensor import cuda

    if not cuda.is_available():
        pytest.exit(f"-m gpu asks for the real device: {cuda.why()}", returncode=1)
