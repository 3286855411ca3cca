"""Errors that authors make in kernels and ops, planted: `check_kernel` and `check` have to find each and name the line."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import pytest

from tests.sabotage.planted import calls, index_kernels, kernels, ops, row_kernels, tile_kernels  # noqa: F401  (they plant as well)
from tritensor.testing import check, check_kernel


def shows_a_line_of(function: Any, said: str) -> bool:
    """Whether a finding shows the file and a line of a kernel."""
    lines, first = inspect.getsourcelines(getattr(function, "fn", function))
    name = Path(inspect.getfile(getattr(function, "fn", function))).name
    return any(first <= int(n) < first + len(lines) for n in re.findall(rf"\b{re.escape(name)}:(\d+)", said))


def ask(called: kernels.Called) -> None:
    check_kernel(called.kernel, called.grid, called.args, called.expected, **called.more)


@pytest.mark.parametrize("kernel", kernels.SOUND)
def test_a_sound_kernel_passes(kernel: str) -> None:
    ask(kernels.SOUND[kernel]())


@pytest.mark.parametrize("error", kernels.PLANTED)
def test_an_error_in_a_kernel(error: str) -> None:
    called = kernels.PLANTED[error]()
    with pytest.raises(AssertionError) as caught:
        ask(called)
    assert shows_a_line_of(called.kernel, str(caught.value)), caught.value


@pytest.mark.slow
@pytest.mark.parametrize("op", ops.SOUND)
def test_a_sound_op_passes(op: str) -> None:
    check(ops.SOUND[op](), extremes=True)


@pytest.mark.slow
@pytest.mark.parametrize("error", ops.PLANTED)
def test_an_error_in_an_op(error: str) -> None:
    record, kernel = ops.PLANTED[error]()
    with pytest.raises(AssertionError) as caught:
        check(record, extremes=error in ops.WILD)
    assert kernel is None or shows_a_line_of(kernel, str(caught.value)), caught.value
