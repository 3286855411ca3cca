"""A library's own test suite, run file by file under both environments, and the counts of what passes."""

from __future__ import annotations

import json
import subprocess
import tempfile
from pathlib import Path
from typing import NamedTuple

from tests.libraries.environments import Environment

SECONDS = 3600.0  # of one file
PLUGINS = Path(__file__).with_name("plugins")


class Suite(NamedTuple):
    """Where a library's tests are: the repository, the tag of a version, patterns of files (with a ! before it: of those that are left out);
    pytest's options, and packages that the tests import."""

    repository: str
    tag: str
    files: tuple[str, ...]
    options: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    every: int = 1  # of so many tests one is run, drawn by the name
    variables: tuple[tuple[str, str], ...] = ()  # of the surroundings, which the tests ask


class Outcome(NamedTuple):
    """{test: "passed", "failed" or "skipped"} of one environment, {test: its error} of what failed, and files that came to no end. A file that cannot
    be imported stands among them as a test that failed."""

    tests: dict[str, str]
    words: dict[str, str]
    unfinished: list[str]


class Counts(NamedTuple):
    """A suite's figures: tests that pass under torch, how many of those pass here, and the others with what they say here."""

    under_torch: int
    others: dict[str, str]

    @property
    def here(self) -> int:
        return self.under_torch - len(self.others)

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
    found: dict[Path, None] = {}
    for pattern in suite.files:
        matching = sorted(sources.glob(pattern.removeprefix("!")))
        if not matching:
            raise FileNotFoundError(f"{sources / pattern}: no such file; the suite has moved")
        for file in matching:
            if pattern.startswith("!"):
                found.pop(file, None)
            else:
                found[file] = None
    return list(found)


def run(suite: Suite, sources: Path, where: Environment, tell: bool = True) -> Outcome:
    """Run every file of a suite by itself: one that ends the process takes no other with it."""
    outcome = Outcome({}, {}, [])
    sources = sources.resolve()  # tests are called by their paths below it, which pytest follows through links
    for file in files_of(suite, sources):
        name = file.relative_to(sources).as_posix()
        before = len(outcome.tests)
        with tempfile.TemporaryDirectory() as folder:
            report = Path(folder) / "outcomes"
            words = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "outcomes", f"--rootdir={sources}", *suite.options, name]
            variables = {**dict(suite.variables), "OUTCOMES": str(report), "EVERY": str(suite.every)}
            try:
                done = where.run(words, SECONDS, sources, PLUGINS, variables)
                said = [x for x in (done.stderr + done.stdout).splitlines() if x.strip()]
                end = "the process ended early" + (f": {said[-1]}" if said else "")
            except subprocess.TimeoutExpired:
                end = f"no end after {SECONDS:.0f} s"
            if not _take(report, outcome):
                outcome.unfinished.append(f"{name}: {end}")
        if tell:
            states = list(outcome.tests.values())[before:]
            print(f"  {where.name:9} {name}: {states.count('passed')} of {len(states)} pass", flush=True)
    return outcome


def _take(report: Path, outcome: Outcome) -> bool:
    """Add what the plugin wrote to an outcome; whether pytest came to its end."""
    for line in report.read_text(encoding="utf-8").splitlines() if report.exists() else ():
        test, state, words = json.loads(line)
        if state == "end":
            return True
        if outcome.tests.get(test) != "failed":  # a test whose end fails has passed before
            outcome.tests[test] = state
        if words:
            outcome.words.setdefault(test, words)
    return False


def count(ours: Outcome, theirs: Outcome) -> Counts:
    """The figures of two runs of one suite."""
    passing = [test for test, state in theirs.tests.items() if state == "passed"]
    return Counts(len(passing), {t: _why(t, ours) for t in passing if ours.tests.get(t) != "passed"})


def _why(test: str, ours: Outcome) -> str:
    """What a test that does not pass says; of one that was not run what its file says."""
    file = test.partition("::")[0]
    end = next((x for x in ours.unfinished if x.startswith(f"{file}: ")), "not run: no test has its name")
    return ours.words.get(test) or ours.tests.get(test) or ours.words.get(file) or end
