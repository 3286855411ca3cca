"""Tests that a changed file may turn: its own, those of who imports it, those that name what stands in it; of a kernel the walks of its ops."""

from __future__ import annotations

import functools
import re
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from tests.tiers.ops import ROOT, WALKS, ops_of

WINGS = ("kernels", "autograd", "nn", "optim")  # stand at the top, linked into the package
ROOMS = (*WINGS, "tritensor", "tests", "bench", "examples", "docs")
# What everything goes through: a change of it is asked by the whole standard tier.
ALL = ("tritensor/ground/", "tritensor/cuda/", "tritensor/ops/", "tritensor/dispatch/", "tritensor/testing/", "autograd/", "kernels/parts/", "tests/conftest.py",
       "tests/tiers/", "tests/loops.py", "pyproject.toml", "Makefile", ".ci/")  # fmt: skip
FAR = 60  # modules above one, through which a change may show; of one with more it is not known where
NAMED = 30  # test files that may name a function; one that more of them name is everybody's tool
ANSWERS = ("tests/expressions/test_expressions.py", "tests/signatures")  # PyTorch's, recorded: what any change of the package may turn
ALWAYS = ("tests/test_house.py", "tests/pages", "tests/tools/test_stubs.py")  # what any change may make stale


class Touched(NamedTuple):
    """What one file asks: tests, the ops whose walks are asked, and why; `everything` where it is not known what it reaches."""

    why: str
    tests: tuple[str, ...] = ()
    ops: tuple[str, ...] = ()
    everything: bool = False


def touched(path: str) -> Touched:
    """What a change of one file, given by its path from the root, asks."""
    if path.startswith(ALL):
        return Touched("everything goes through it", everything=True)
    if not path.endswith(".py"):
        return _of_text(path)
    if not (ROOT / path).exists():
        return Touched("a test that is gone") if _is_test(path) else Touched("it is gone, and nobody says who used it", everything=True)
    if _is_test(path):
        return Touched("a test", (path,))
    above = importers(path)
    if len(above) > FAR:
        return Touched(f"{len(above)} modules build on it", everything=True)
    reached = [path, *above]
    importing = [t for t in graph().tests if graph().imports[t] & set(reached)]
    if path.startswith("tests/"):
        found = importing or ([f"{room}"] if (room := path.rpartition("/")[0]) != "tests" else [])
        return Touched(f"{len(importing)} test files import it", tuple(found)) if found else Touched("no test imports it", everything=True)
    naming = _naming(path) if path.startswith(("tritensor/", *WINGS)) else []
    found = dict.fromkeys([*_mirrored(path), *importing, *naming, *(t for p in reached for t in _own(p))])
    ops = tuple(dict.fromkeys(op for p in reached for op in ops_of(p))) if path.startswith("kernels/") else ()
    if not found and not ops:
        return Touched("no test is known to ask it", everything=True)
    why = f"{len(above)} modules build on it, {len(importing)} test files import one of them, {len(naming)} name what stands in it"
    package = ANSWERS if path.startswith(("tritensor/", *WINGS)) else ()
    return Touched(why + (f"; ops: {' '.join(ops)}" if ops else ""), (*found, *(WALKS if ops else ()), *package), ops)


def _is_test(path: str) -> bool:
    return path.startswith("tests/") and path.rpartition("/")[2].startswith("test_") and path.endswith(".py")


def _of_text(path: str) -> Touched:
    """A page, a stub, a table: the tests that name the file, the room that mirrors its folder, and of pages those of the site."""
    name = path.rpartition("/")[2]
    naming = [t for t, text in texts().items() if name in text]
    if path.endswith(".pyi"):
        return Touched("a stub", ("tests/tools/test_stubs.py",))
    if path.startswith("docs/") or path.endswith(".md"):
        return Touched("a page", (*naming, "tests/pages", "tests/site", "tests/packaging"))
    room = path.rpartition("/")[0] if path.startswith("tests/") else ""
    found = dict.fromkeys([*naming, *([room] if room.count("/") else []), *([] if room else _mirrored(path))])
    return Touched("a table or a text", tuple(found)) if found else Touched("no test names it", everything=True)


def _mirrored(path: str) -> list[str]:
    """The room of tests that mirrors the nearest folder above a file."""
    parts = path.removeprefix("tritensor/").split("/")[:-1]
    for k in range(len(parts), 0, -1):
        room = "/".join(["tests", *parts[:k]])
        if (ROOT / room).is_dir() and room != "tests/kernels":
            return [room]
    return []


def _own(path: str) -> list[str]:
    """Test files that are named for a file."""
    stem = path.rpartition("/")[2].removesuffix(".py")
    return [t for t in graph().tests if t.rpartition("/")[2] in (f"test_{stem}.py", f"test_{stem}s.py", f"test_{stem.rstrip('s')}.py")]


def _naming(path: str) -> list[str]:
    """Test files that say the name of a public function or class of a file, or of an op of it; a name that many say is not counted."""
    names = {*re.findall(r"^(?:def|class) ([a-zA-Z]\w*)", (ROOT / path).read_text(), re.MULTILINE), *ops_of(path)}
    found: set[str] = set()
    for name in names:
        said = {t for t, words in spoken().items() if name in words}
        found |= said if len(said) <= NAMED else set()
    return sorted(found)


def importers(path: str) -> list[str]:
    """Modules that import a file, and those that import these; not through a package's front door, which everybody imports."""
    seen, front = {path}, [path]
    while front:
        at = front.pop()
        for other in graph().importers[at] - seen:
            seen.add(other)
            if not other.endswith("__init__.py"):
                front.append(other)
    return sorted(p for p in seen - {path} if not p.startswith("tests/") and not p.endswith("__init__.py"))


class Graph(NamedTuple):
    """Which files import which, by path from the root; the test files among them."""

    imports: dict[str, set[str]]
    importers: dict[str, set[str]]
    tests: list[str]


@functools.cache
def texts() -> dict[str, str]:
    """Every test file that may run without a GPU and torch, but those that name files for the names' sake."""
    return {
        p.relative_to(ROOT).as_posix(): p.read_text()
        for p in sorted((ROOT / "tests").rglob("test_*.py"))
        if p.relative_to(ROOT).parts[1] not in ("peer", "gpu", "tiers")
    }


@functools.cache
def spoken() -> dict[str, frozenset[str]]:
    """The words of each test file."""
    return {t: frozenset(re.findall(r"\w+", text)) for t, text in texts().items()}


@functools.cache
def graph() -> Graph:
    files = {p.relative_to(ROOT).as_posix(): p for room in ROOMS for p in sorted((ROOT / room).rglob("*.py"))}
    modules = {_module(name): name for name in files}
    imports = {name: _imports(path, name, modules) for name, path in files.items()}
    importers: dict[str, set[str]] = defaultdict(set)
    for name, meant in imports.items():
        for other in meant:
            importers[other].add(name)
    # A test of a room asks what its own support files import.
    for name in texts():
        for other in [o for o in imports[name] if o.startswith("tests/") and not o.endswith("__init__.py")]:
            imports[name] |= imports[other]
    return Graph(imports, importers, list(texts()))


def _module(name: str) -> str:
    whole = f"tritensor/{name}" if name.startswith(WINGS) else name
    return whole.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def _imports(path: Path, name: str, modules: dict[str, str]) -> set[str]:
    """The files that a file imports, inside functions as well and where it names a module for a program that it starts."""
    text = path.read_text()
    lines: Iterable[tuple[str, str]] = re.findall(r"^[ \t]*from ([\w.]+) import ([^#\n]*(?:\([^)]*\))?)", text, re.MULTILINE)
    found = set(re.findall(r"^[ \t]*import ([\w.]+)", text, re.MULTILINE))
    found |= set(re.findall(r"[\"' ](?:-m )?((?:tritensor|tests|bench|examples|docs)(?:\.\w+)+)", text))
    for module, names in lines:
        found |= {module, *(f"{module}.{n}" for n in re.findall(r"\w+", names))}
    return {modules[m] for m in found if m in modules and modules[m] != name}
