"""The examples of docstrings and of pages (`>>> ...`), run: `python -m docs.site.examples [NAME...]`."""

from __future__ import annotations

import doctest
import inspect
import io
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import tritensor as tt
from docs.site.names import listed
from docs.site.reference import members, own_doc

DOCS = Path(__file__).resolve().parents[1]
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL


def objects() -> Iterator[tuple[str, Any]]:
    """(full name, object) of everything that the reference tells, members of classes too."""
    for groups in listed().values():
        for group in groups:
            for entry in group.told:
                yield entry.full, entry.value
                if inspect.isclass(entry.value):
                    yield from ((f"{entry.full}.{name}", member) for name, member in members(entry.value))
    yield "tritensor.Tensor", tt.Tensor
    yield from ((f"tritensor.Tensor.{name}", member) for name, member in members(tt.Tensor))


def tests() -> Iterator[doctest.DocTest]:
    """The examples, one test for each docstring that has some; none twice."""
    seen = set()
    for name, value in objects():
        text = own_doc(value)
        if ">>>" not in text or text in seen:
            continue
        seen.add(text)
        yield _test(text, name)


def _test(text: str, name: str) -> doctest.DocTest:
    names = {"tt": tt, "nn": tt.nn, "F": tt.nn.functional, "tritensor": tt, "__name__": "examples"}
    return doctest.DocTestParser().get_doctest(text, names, name, None, 0)


def of_headings() -> Iterator[doctest.DocTest]:
    """The examples under headings of the reference."""
    for page, groups in listed().items():
        for group in groups:
            if group.group.example:
                yield _test(group.group.example, f"reference/{page.file}: {group.group.title}")


def of_pages() -> Iterator[doctest.DocTest]:
    """The examples of docs/*.md, one test for each page that has some."""
    for page in sorted(DOCS.glob("*.md")):
        blocks = re.findall(r"^```(?:pycon|python)\n(>>> .*?)^```", page.read_text(), re.DOTALL | re.MULTILINE)
        if blocks:
            yield doctest.DocTestParser().get_doctest("\n".join(blocks), {"__name__": "examples"}, f"docs/{page.name}", str(page), 0)


def run(test: doctest.DocTest) -> str:
    """What is wrong with the examples of one docstring, "" where nothing is. Each begins with seed 0, on the CPU."""
    told = io.StringIO()
    tt.manual_seed(0)
    doctest.DocTestRunner(optionflags=FLAGS, verbose=False).run(test, out=told.write)
    return told.getvalue()


def failures(only: tuple[str, ...] = ()) -> list[str]:
    """What is wrong with the examples, those of some names or all. They run in a folder of their own."""
    here = os.getcwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            wanted = [test for test in (*tests(), *of_headings(), *of_pages()) if not only or any(o in test.name for o in only)]
            return [said for test in wanted if (said := run(test))]
        finally:
            os.chdir(here)


if __name__ == "__main__":
    found = failures(tuple(sys.argv[1:]))
    print("\n".join(found) or f"the examples of {sum(1 for _ in tests())} docstrings and {sum(1 for _ in of_pages())} pages say what is so")
    sys.exit(bool(found))
