"""A library's own test suite, run file by file under both environments, and the counts of what passes."""

from __future__ import annotations

import subprocess
import tempfile
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.libraries.environments import Environment

SECONDS = 1800.0  # of one file


class Suite(NamedTuple):
    """Where a library's tests are: the repository, the tag of a version, patterns of files; pytest's options, and packages that the tests import."""

    repository: str
    tag: str
    files: tuple[str, ...]
    options: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    package: str = ""  # the library's own sources within the checkout, which would be imported in place of what is installed


class Outcome(NamedTuple):
    """{test: "passed", "failed" or "skipped"} of one environment, {test: its last words} of what failed, and files that came to no end."""

    tests: dict[str, str]
    words: dict[str, str]
    unfinished: list[str]


class Counts(NamedTuple):
    """A suite's figures: tests that pass under torch, how many of those pass here, and the others with what they say here."""

    under_torch: int
    here: int
    others: dict[str, str]

    @property
    def share(self) -> float:
        return self.here / self.under_torch if self.under_torch else 0.0


def fetch(suite: Suite, version: str, folder: Path) -> None:
    """Clone the sources of a version into a folder. Raises CalledProcessError."""
    tag = suite.tag.format(version=version)
    words = ["git", "clone", "--quiet", "--depth", "1", "--branch", tag, f"https://github.com/{suite.repository}", str(folder)]
    subprocess.run(words, check=True)


def files_of(suite: Suite, sources: Path) -> list[Path]:
    """The suite's test files. Raises FileNotFoundError where a pattern finds none."""
    found: list[Path] = []
    for pattern in suite.files:
        matching = sorted(sources.glob(pattern))
        if not matching:
            raise FileNotFoundError(f"{sources / pattern}: no such file; the suite has moved")
        found += matching
    return list(dict.fromkeys(found))


def run(suite: Suite, sources: Path, where: Environment, tell: bool = True) -> Outcome:
    """Run every file of a suite by itself: one that ends the process takes no other with it."""
    outcome = Outcome({}, {}, [])
    for file in files_of(suite, sources):
        name = file.relative_to(sources).as_posix()
        before = len(outcome.tests)
        with tempfile.TemporaryDirectory() as folder:
            report = Path(folder) / "report.xml"
            words = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "ignore", f"--junitxml={report}", *suite.options, name]
            try:
                where.run(words, SECONDS, sources)
            except subprocess.TimeoutExpired:
                outcome.unfinished.append(f"{name}: no end after {SECONDS:.0f} s")
            if report.exists():
                for test, state, said in read(report):
                    outcome.tests[f"{name}::{test}"] = state
                    if said:
                        outcome.words[f"{name}::{test}"] = said
            else:
                outcome.unfinished.append(f"{name}: the process ended without a report")
        if tell:
            states = list(outcome.tests.values())[before:]
            print(f"  {where.name:9} {name}: {states.count('passed')} of {len(states)} pass", flush=True)
    return outcome


def read(report: Path) -> Iterator[tuple[str, str, str]]:
    """(test, state, last words) of pytest's report; a file that cannot be collected is a test that failed."""
    for case in ElementTree.parse(report).iter("testcase"):
        name = f"{case.get('classname', '').rpartition('.')[2]}::{case.get('name')}"
        failure = next((c for c in case if c.tag in ("failure", "error")), None)
        if failure is not None:
            yield name, "failed", (failure.get("message") or "").strip().splitlines()[0][:200] if failure.get("message") else "failed"
        else:
            yield name, "skipped" if case.find("skipped") is not None else "passed", ""


def count(ours: Outcome, theirs: Outcome) -> Counts:
    """The figures of two runs of one suite."""
    passing = [test for test, state in theirs.tests.items() if state == "passed"]
    others = {
        t: ours.words.get(t, ours.tests.get(t, "not run: its file does not come so far")) for t in passing if ours.tests.get(t) != "passed"
    }
    return Counts(len(passing), len(passing) - len(others), others)
