"""Test set-up: device cuda is emulated for the whole session, unless the GPU itself is asked for with `-m gpu`."""

from __future__ import annotations

import os
import re

import pytest


def pytest_configure(config: pytest.Config) -> None:
    # Before any test module is imported, because Triton reads the variable when a kernel is defined. Workers of xdist inherit it.
    wants_gpu = re.search(r"(?<!not )\bgpu\b", config.option.markexpr or "")
    if wants_gpu:
        os.environ.pop("TRITON_INTERPRET", None)
    else:
        os.environ.setdefault("TRITON_INTERPRET", "1")
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # two threads beside a busy neighbour are three times slower than one


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    # A test marked gpu needs a GPU and the compiler; everything else runs anywhere. Deselected, not skipped.
    if config.option.markexpr:
        return
    gone = [i for i in items if i.get_closest_marker("gpu")]
    if gone:
        config.hook.pytest_deselected(items=gone)
        items[:] = [i for i in items if not i.get_closest_marker("gpu")]
