"""The garbage collector during an import: it walks over nothing, is on again afterwards, and finds what dies."""

from __future__ import annotations

import gc
import subprocess
import sys
import weakref
from collections.abc import Iterator

import pytest

from tritensor.ground.process.collector import settling

IMPORT = """
import gc
{before}
import tritensor
print(gc.isenabled(), gc.get_freeze_count() > 0)
"""


@pytest.fixture
def thawed() -> Iterator[None]:
    """Nothing frozen, as in most programs: tests/conftest.py freezes what it has imported."""
    frozen = gc.get_freeze_count() > 0
    gc.unfreeze()
    yield
    if frozen:
        gc.freeze()


class Ring:
    def __init__(self) -> None:
        self.self = self


def imported(before: str) -> list[str]:
    return subprocess.run([sys.executable, "-c", IMPORT.format(before=before)], capture_output=True, text=True, check=True).stdout.split()


def test_an_import_leaves_the_collector_as_it_was() -> None:
    assert imported("") == ["True", "False"]
    assert imported("gc.disable()") == ["False", "False"]
    assert imported("gc.freeze()") == ["True", "True"]


@pytest.mark.usefixtures("thawed")
def test_nothing_is_collected_within_and_what_dies_is_found_later() -> None:
    runs: list[str] = []
    gc.collect()
    gc.callbacks.append(lambda phase, info: runs.append(phase))
    try:
        with settling():
            ring = Ring()
            kept = [[] for _ in range(10 * gc.get_threshold()[0])]
            inside = len(runs)
    finally:
        gc.callbacks.pop()
    assert inside == 0
    assert any(o is kept for o in gc.get_objects(generation=2))
    dead = weakref.ref(ring)
    del ring
    gc.collect()
    assert dead() is None


@pytest.mark.usefixtures("thawed")
def test_an_error_within_leaves_the_collector_on() -> None:
    with pytest.raises(AssertionError), settling():
        assert gc.isenabled()
    assert gc.isenabled()


@pytest.mark.usefixtures("thawed")
def test_a_program_that_has_frozen_objects_keeps_them() -> None:
    gc.freeze()
    try:
        with settling():
            assert gc.isenabled()
        assert gc.get_freeze_count() > 0
    finally:
        gc.unfreeze()
