"""Plugin of pytest that writes each outcome when it is known, so that a suite that is cut off tells what it came to; and that runs of so many tests one."""

from __future__ import annotations

import json
import os
import zlib
from typing import Any

import pytest


def _tell(test: str, state: str, words: str = "") -> None:
    with open(os.environ["OUTCOMES"], "a", encoding="utf-8") as file:
        file.write(json.dumps([test, state, words]) + "\n")


def _words(report: Any) -> str:
    """The error of a report: its first line."""
    crash = getattr(report.longrepr, "reprcrash", None)
    lines = [x for x in (crash.message if crash else str(report.longrepr)).splitlines() if x.strip()]
    errors = [x.removeprefix("E ").strip() for x in lines if x.startswith("E ")]  # of a file that cannot be imported, behind its traceback
    return (errors or lines or ["failed"])[0][:300]


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    # by the name: a test is drawn in both environments or in none
    every = int(os.environ["EVERY"])
    items[:] = [x for x in items if zlib.crc32(x.nodeid.encode()) % every == 0]


def pytest_collectreport(report: pytest.CollectReport) -> None:
    if report.failed:
        _tell(report.nodeid, "failed", _words(report))


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.failed:
        _tell(report.nodeid, "failed", _words(report))
    elif report.skipped:
        _tell(report.nodeid, "skipped")
    elif report.when == "call":
        _tell(report.nodeid, "passed")


def pytest_sessionfinish() -> None:
    _tell("", "end")
