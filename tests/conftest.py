"""Test set-up: device cuda is emulated for the whole session, unless the GPU itself is asked for with `-m gpu`."""

from __future__ import annotations

import gc
import os
import re
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

# Only tests/sabotage/test_gpu_suite.py sets this, to "emulated": the GPU's tests then run, a few of them, on the emulated device.
STAND_IN = "TRITENSOR_GPU_TESTS"


def wants_gpu(config: pytest.Config) -> bool:
    """Whether the session's -m expression asks for the tests of the real device."""
    return bool(re.search(r"(?<!not )\bgpu\b", config.option.markexpr or ""))


def pytest_configure(config: pytest.Config) -> None:
    # Before any test module is imported, because Triton reads the variable when a kernel is defined. Workers of xdist inherit it.
    if wants_gpu(config) and os.environ.get(STAND_IN) != "emulated":
        os.environ.pop("TRITON_INTERPRET", None)
    else:
        os.environ.setdefault("TRITON_INTERPRET", "1")
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # two threads beside a busy neighbour are three times slower than one


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    # The GPU's tests need pytest and numpy alone: a file without one is not even imported, so that what it needs may be missing.
    if wants_gpu(config) and collection_path.name.startswith("test_") and collection_path.suffix == ".py":
        return "mark.gpu" not in collection_path.read_text() or None
    return None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    _leave_the_diagonal(items)
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


def pytest_unconfigure() -> None:
    gc.unfreeze()  # extension modules tell of what is not collected at the end


def _leave_the_diagonal(items: list[pytest.Item]) -> None:
    """Mark what the quick suite leaves out of tests marked crossed: all but the first value of each `parametrize` together, the second of each, and
    so on until the longest has ended, shorter ones again and again, each time from one further on."""
    crossed: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("crossed"):
            crossed.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for cases in crossed.values():
        axes = [(mark.args[0],) if isinstance(mark.args[0], str) else mark.args[0] for mark in cases[0].iter_markers("parametrize")]
        seen: list[dict[Any, int]] = [{} for _ in axes]  # of each axis the values, by identity, in their order
        places = []
        for item in cases:
            values = [tuple(id(item.callspec.params[name]) for name in names) for names in axes]  # type: ignore[attr-defined]
            places.append(tuple(known.setdefault(value, len(known)) for value, known in zip(values, seen, strict=True)))
        diagonal = {tuple((n + n // len(known)) % len(known) for known in seen) for n in range(max(map(len, seen)))}
        for item, place in zip(cases, places, strict=True):
            if place not in diagonal:
                item.add_marker(pytest.mark.slow)
                item.add_marker(pytest.mark.full)


def pytest_collection_finish(session: pytest.Session) -> None:
    # One line where there is no GPU, in place of hundreds of failures that say the same.
    if not wants_gpu(session.config) or session.config.option.collectonly or not session.items:
        return
    from tritensor import cuda

    if not cuda.is_available():
        pytest.exit(f"-m gpu asks for the real device: {cuda.why()}", returncode=1)
