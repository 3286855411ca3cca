"""The last line of a quick run, which says what was left out: told by the worker that ends first, since all collect the same."""

from __future__ import annotations

from typing import Any

import pytest

NEVER = ("slow", "static", "gpu", "peer")  # what the standard tier asks neither


class Telling:
    """A plug-in for sessions that choose the quick tier by -m."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.counts = (0, 0)  # items of the standard tier, of them those that are left out

    def note(self, items: list[pytest.Item]) -> None:
        """Count before pytest deselects."""
        marks = [{m.name for m in item.iter_markers()} for item in items]
        standard = [m for m in marks if not m.intersection(NEVER)]
        self.counts = (len(standard), sum("standard" in m for m in standard))

    def pytest_sessionfinish(self) -> None:
        output: dict[str, Any] | None = getattr(self.config, "workeroutput", None)
        if output is not None:
            output["left_out"] = self.counts

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        self.counts = tuple(getattr(node, "workeroutput", {}).get("left_out", self.counts))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        whole, left = self.counts
        if left:
            terminalreporter.write_line(
                f"the quick tier: {left} of {whole} items of the standard tier were left out (more samples, tiles and types of what was asked, and "
                "items of seconds); make test TIER=standard asks them, make test-all also the full tier"
            )
