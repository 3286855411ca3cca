"""The page that tells which libraries run: docs/libraries.md, written from results.json."""

from __future__ import annotations

import datetime
import json
from typing import Any

from tests.libraries import reasons
from tests.libraries.catalogue import CANNOT, LIBRARIES, Library
from tests.libraries.environments import ROOT
from tests.libraries.own_tests import Counts

RESULTS = ROOT / "tests" / "libraries" / "results.json"
PAGE = ROOT / "docs" / "libraries.md"

_HEAD = """# Libraries on top

Written by `make libraries` ({date}). Each library is installed by pip beside [the stand-in](scripts.md), which answers its `import torch`; nothing of it is
changed.

- **quick start**: a small script of our own words (`tests/libraries/quick_starts/`) that uses the library as its first page does. It runs here and under
  PyTorch 2.13, and its printed figures are compared, to 1 in 1000.
- **own tests**: of the library's own test suite the tests that pass under PyTorch, and how many of those pass here
  (`python -m tests.libraries --own-tests NAME` prints each of the others with its words).

{good} of {all} libraries' quick starts agree.

| library | version | quick start | own tests | |
|---|---|---|---|---|
"""
_OTHERS = """
## Tests of libraries that do not pass

| library | tests | why |
|---|---|---|
"""
_FOOT = """
## What cannot run, and what to use in its place

| package | why | in its place |
|---|---|---|
"""


def results() -> dict[str, Any]:
    """What is noted so far, by library."""
    return dict(json.loads(RESULTS.read_text())) if RESULTS.exists() else {}


def keep(found: dict[str, Any]) -> None:
    """Write the notes; what is in the catalogue no more is dropped."""
    known = {x.name for x in LIBRARIES}
    RESULTS.write_text(json.dumps({k: found[k] for k in sorted(found) if k in known}, indent=1) + "\n")


def note_quick_starts(found: dict[str, Any], library: Library, versions: dict[str, str], said: dict[str, str]) -> None:
    """Note how a library's scripts ended."""
    entry = found.setdefault(library.name, {})
    entry["date"] = datetime.date.today().isoformat()
    entry["version"] = versions.get(library.distributions[0], "") if library.distributions else ""
    entry["quick"] = said


def note_suite(found: dict[str, Any], library: Library, version: str, counts: Counts) -> None:
    """Note the figures of a library's own suite."""
    assert library.suite is not None
    found.setdefault(library.name, {})["suite"] = {
        "date": datetime.date.today().isoformat(), "version": version, "under_torch": counts.under_torch, "here": counts.here,
        "every": library.suite.every, "others": reasons.counted(library.name, counts.others),
    }  # fmt: skip


def write(found: dict[str, Any]) -> None:
    """Write the page."""
    PAGE.write_text(written(found))


def written(found: dict[str, Any]) -> str:
    """The page, in Markdown."""
    tried = [x for x in LIBRARIES if x.quick_starts and x.name in found]
    good = sum(not any(found[x.name]["quick"].values()) for x in tried)
    date = max((found[x.name]["date"] for x in tried), default="")
    text = _HEAD.format(date=date, good=good, all=len(tried))
    for library in tried:
        text += _row(library, found[library.name])
    others = [f"| {x.name} | {count} | {why} |\n" for x in tried for why, count in found[x.name].get("suite", {}).get("others", {}).items()]
    if others:
        text += _OTHERS + "".join(others)
    return text + _FOOT + "".join(f"| {name} | {why} | {instead} |\n" for name, why, instead in CANNOT)


def _row(library: Library, entry: dict[str, Any]) -> str:
    wrong = [f"`{script}`: {' '.join(said.split())[:160]}" for script, said in entry["quick"].items() if said]
    suite = entry.get("suite")
    drawn = f", 1 test in {suite['every']} drawn" if suite and suite["every"] > 1 else ""
    own = f"{suite['here']} of {suite['under_torch']}{drawn}" if suite else ""
    cells = (library.name, entry["version"], "; ".join(wrong) if wrong else "agrees", own, library.note or library.cannot)
    return "| " + " | ".join(c.replace("|", "\\|") for c in cells) + " |\n"
