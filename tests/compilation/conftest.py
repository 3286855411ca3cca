"""Fixture for tests of compilation: none leaves a region open for the next."""

from __future__ import annotations

from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def closed_regions() -> Iterator[None]:
    from tritensor.lazy_evaluation.modes import close_if_left_open  # not before the tests' settings of Triton are made

    close_if_left_open("a test before")
    yield
    close_if_left_open("the end of a test")
