"""The trial of public libraries: `python -m tests.libraries [NAME ...]` runs quick starts, `--own-tests NAME` a library's own suite, under both environments."""

from __future__ import annotations

import argparse
import fnmatch
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.libraries import own_tests, page, quick, reasons
from tests.libraries.catalogue import LIBRARIES, Library
from tests.libraries.environments import ROOT, Environment, made

USAGE = """Exit codes: 0 when every quick start agrees with torch (or its library's row says why not), or of a suite 97 of 100 tests that pass under torch
pass here; 1 when not; 2 when a library cannot be installed or is not known."""


def main() -> int:
    asked = _arguments()
    chosen = [x for x in LIBRARIES if not asked.names or any(fnmatch.fnmatch(x.name, n) for n in asked.names)]
    if not chosen:
        print(f"no library is called {' or '.join(asked.names)}; there are {', '.join(x.name for x in LIBRARIES)}", file=sys.stderr)
        return 2
    places = {x.name: _environments(asked, x) for x in chosen}
    if not asked.no_install:
        failed = [f"{x.name}: {said}" for x in chosen if x.distributions for e in places[x.name] if (said := e.install(x.distributions))]
        if failed:
            print("\n".join(failed), file=sys.stderr)
            return 2
    if asked.own_tests:
        return _run_suites([x for x in chosen if x.suite is not None], places, asked.sources)
    return _run_quick_starts(chosen, places, write=not asked.names)


def _arguments() -> Any:
    parser = argparse.ArgumentParser(prog="python -m tests.libraries", description=__doc__, epilog=USAGE)
    parser.add_argument("--own-tests", action="store_true", help="run the libraries' own test suites in place of the quick starts")
    parser.add_argument(
        "--environments", type=Path, default=ROOT / ".venv-libraries", metavar="FOLDER", help="where the two environments are made"
    )
    parser.add_argument("--python", type=Path, metavar="FILE", help="an environment that is there, with the stand-in and the libraries")
    parser.add_argument("--peer", type=Path, metavar="FILE", help="and one with torch")
    parser.add_argument("--no-install", action="store_true", help="install nothing: what is missing fails")
    parser.add_argument(
        "--sources", type=Path, metavar="FOLDER", help="where the libraries' sources stand, a folder each; fetched where they are not"
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="libraries by name or pattern (default: all)")
    return parser.parse_args()


Places = dict[str, tuple[Environment, Environment]]  # by library


def _environments(asked: Any, library: Library) -> tuple[Environment, Environment]:
    if asked.python and asked.peer:
        return Environment("tritensor", asked.python.absolute()), Environment("torch", asked.peer.absolute())
    folder = asked.environments.absolute()
    return made(folder / "alone" / library.name if library.alone else folder)


def _run_quick_starts(chosen: list[Library], places: Places, write: bool) -> int:
    """Run the scripts of libraries and compare; with all of them, write the page."""
    results = page.results()
    bad = 0
    for library in chosen:
        both = places[library.name]
        versions = both[0].installed([name.partition("<")[0] for name in library.distributions])
        said = {}
        for script in library.quick_starts:
            ours, theirs = (quick.run(script, e) for e in both)
            said[script] = quick.compare(ours, theirs)
            bad += bool(said[script]) and not library.cannot
            print(
                f"{library.name:24} {script:32} {ours.seconds:5.1f} s, torch {theirs.seconds:5.1f} s  {said[script] or 'agrees'}",
                flush=True,
            )
        page.note_quick_starts(results, library, versions, said)
    page.keep(results)
    if write:
        page.write(results)
    return 1 if bad else 0


def _run_suites(chosen: list[Library], places: Places, sources: Path | None) -> int:
    results = page.results()
    good = True
    for library in chosen:
        both = places[library.name]
        assert library.suite is not None
        version = both[0].installed(library.distributions)[library.distributions[0]]
        folder = (sources or ROOT / ".venv-libraries" / "sources") / library.name
        if not folder.exists():
            try:
                own_tests.fetch(library.suite, version, folder)
            except subprocess.CalledProcessError as error:
                print(f"{library.name}: {' '.join(error.cmd)} ended with exit code {error.returncode}", file=sys.stderr)
                return 2
        if library.suite.needs:
            for e in both:
                e.install(library.suite.needs)
        outcomes = [own_tests.run(library.suite, folder, e) for e in both]
        counts = own_tests.count(*outcomes)
        for test, why in counts.others.items():
            print(f"    {test}: {why} ({reasons.of(library.name, test, why)})")
        for e, outcome in zip(both, outcomes, strict=True):
            for line in outcome.unfinished:
                print(f"    {e.name}: {line}")
        print(
            f"{library.name} {version}: {counts.under_torch} tests pass under torch, {counts.here} of them here ({counts.share:.4f})",
            flush=True,
        )
        page.note_suite(results, library, version, counts)
        good = good and counts.share >= 0.97
    page.keep(results)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
