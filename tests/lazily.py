"""Plugin of the suite under TRITENSOR_LAZY=1: what a call raises late is raised inside of `pytest.raises`, and tests of how eager calls run are left out."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from _pytest.raises import RaisesExc


def _settle() -> None:
    """Run what waits in this thread."""
    from tritensor.ground.thread_state import here

    if here.segment is not None:
        here.segment.settle(everything=True)


class Lazily:
    """A value is asked for at the end of each `pytest.raises`, and of each test, so that no error of one test comes up in the next."""

    def __init__(self) -> None:
        leave = RaisesExc.__exit__

        def leave_settled(self: Any, kind: Any, error: Any, trace: Any) -> Any:
            if error is None:
                try:
                    _settle()
                except BaseException as late:
                    late.__notes__ = []  # which say the op and the line; the message is asked for
                    return leave(self, type(late), late, late.__traceback__)
            return leave(self, kind, error, trace)

        RaisesExc.__exit__ = leave_settled  # type: ignore[method-assign]

    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Deselect what asks how eager calls run: plans, recordings, launches counted one by one, memory at a line."""
        gone = [i for i in items if i.get_closest_marker("eager")]
        config.hook.pytest_deselected(items=gone)
        items[:] = [i for i in items if not i.get_closest_marker("eager")]

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_teardown(self) -> None:
        """Nothing is left for the next test. What fails here the test did not ask for."""
        with contextlib.suppress(Exception):
            _settle()
