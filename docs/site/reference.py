"""Writes docs/reference/: a page of reStructuredText for each entry of names.PAGES, from signatures and docstrings."""

from __future__ import annotations

import enum
import functools
import inspect
import re
import textwrap
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import tritensor as tt
from docs.site import docstrings, signatures
from docs.site.names import Entry, Listed, Page, listed

FOLDER = Path(__file__).resolve().parents[1] / "reference"
_PYTHON = frozenset(["bool", "int", "float", "complex", "str", "bytes", "list", "tuple", "dict", "set", "None", "True", "False"])
HEAD = ".. Written by docs/site/reference.py from the docstrings; do not edit.\n"
_BEGIN = """Every public name, from its docstring. Examples begin with seed 0 and with

.. code-block:: python

   import tritensor as tt
   import tritensor.nn.functional as F
   from tritensor import nn

.. toctree::
   :maxdepth: 1
"""


class Reference:
    """The pages as text, {file name: text}, and what the names in docstrings lead to."""

    def __init__(self) -> None:
        self.pages = listed()
        self.targets: dict[str, list[str]] = {}
        self.names = {"tritensor.Tensor"}  # functions and classes; targets holds their members as well
        self.classes = {"Tensor": "tritensor.Tensor", "DType": "tritensor.dtype", "Device": "tritensor.device"}
        self._modules_told: set[str] = set()
        for told in self.entries():
            self.names.add(told.full)
            if inspect.isclass(told.value) and (told.name not in self.classes or told.module == "tritensor"):
                self.classes[told.name] = told.full
            self._target(told.full)
            if inspect.isclass(told.value):
                for name, _ in members(told.value):
                    self._target(f"{told.full}.{name}")
        for name, _ in members(tt.Tensor):
            self._target(f"tritensor.Tensor.{name}")
        self._target("tritensor.Tensor")

    def entries(self) -> Iterator[Entry]:
        """Everything that is told somewhere."""
        for groups in self.pages.values():
            for group in groups:
                yield from group.told

    def _target(self, full: str) -> None:
        parts = full.split(".")
        for i in range(1, len(parts)):
            self.targets.setdefault(".".join(parts[i:]), []).append(full)

    def class_named(self, name: str) -> str | None:
        """The full name of a class of ours, by its last word."""
        return self.classes.get(name)

    def resolver(self, value: Any, near: str) -> docstrings.Resolve:
        """What the words of an object's docstring lead to: not its own parameters, nor Python's types."""
        try:
            own = set(inspect.signature(value).parameters)
        except (TypeError, ValueError):
            own = set()
        return lambda name: None if name in own or name in _PYTHON else self.resolve(name, near)

    def resolve(self, name: str, near: str = "") -> str | None:
        """The full name of what a word means: in the class or module where it is said or around it, at the front door last; else the only one."""
        first, dot, rest = name.removeprefix("tt.").removeprefix("torch.").removeprefix("tritensor.").partition(".")
        name = {"F": "nn.functional"}.get(first, first) + dot + rest
        found = self.targets.get(name, [])
        place = near or "tritensor"
        while place:
            if f"{place}.{name}" in found:
                return f"{place}.{name}"
            place = place.rpartition(".")[0]
        found = [f for f in found if dot or f in self.names]  # a method without its class is said in its class alone
        return found[0] if len(found) == 1 else None

    def text(self) -> dict[str, str]:
        """{file name: its text}, the index among them."""
        found = {f"{page.file}.rst": self._page(page, groups) for page, groups in self.pages.items()}
        pages = [f"   {page.file}" for page in self.pages]
        return {"index.rst": "\n".join([HEAD, *_titled("Reference", "="), _BEGIN, *pages, ""]), **found}

    def _page(self, page: Page, groups: list[Listed]) -> str:
        lines = [HEAD, *_titled(page.title, "="), _markdown_links(page.intro), ""]
        if page.file == "tensor":
            lines += self._tensor()
        several = len(groups) > 1
        for group in groups:
            if several and group.group.title:
                lines += _titled(group.group.title, "-")
            if group.group.example:
                lines += [group.group.example, ""]
            lines += self._group(group)
        return "\n".join(lines) + "\n"

    def _group(self, group: Listed) -> list[str]:
        module = group.group.module
        lines: list[str] = []
        if module not in self._modules_told:
            self._modules_told.add(module)
            lines += [f".. py:module:: {module}", ""]
        rows = [(e.full, e.name, self._summary(e)) for e in group.told]
        rows += [(where, e.name, f"another name of :py:obj:`{where}`") for e, where in group.elsewhere]
        lines += _table(sorted(rows, key=lambda r: group.group.place(r[1])))
        if group.in_place:
            lines += ["In place: " + ", ".join(f"``{e.name}``" for e in group.in_place) + ".", ""]
        for entry in group.told:
            lines += self._told(entry)
        return lines

    def _summary(self, entry: Entry) -> str:
        return docstrings.summary(inspect.getdoc(entry.value) or "", self.resolver(entry.value, entry.module))

    def _told(self, entry: Entry) -> list[str]:
        """An object: its directive, its text, the members of a class."""
        value = entry.value
        kind = "function" if not inspect.isclass(value) else "exception" if issubclass(value, BaseException) else "class"
        shown = "" if kind == "exception" else signatures.signature(value, self.class_named)
        lines = [f".. py:{kind}:: {entry.name}{shown}", f"   :module: {entry.module}", ""]
        body = docstrings.rst(_doc(value), self.resolver(value, entry.full if inspect.isclass(value) else entry.module))
        if inspect.isclass(value):
            body += self._bases(value)
            if issubclass(value, enum.Enum):
                body += ["Members: " + ", ".join(f"``{m}``" for m in value.__members__) + ".", ""]
            for name, member in members(value):
                body += self._member(entry, name, member)
        return lines + textwrap.indent("\n".join(body), "   ").splitlines() + [""]

    def _bases(self, cls: type) -> list[str]:
        """What a class derives from: public classes, and what an error is to `except`."""
        bases, left = [], list(cls.__bases__)
        while left:  # a base that is no public name stands for its own
            base = left.pop(0)
            if base in _public_classes():
                bases.append(base)
            elif base.__module__.startswith("tritensor"):
                left = [*base.__bases__, *left]
        found = [f":py:class:`{full}`" for b in dict.fromkeys(bases) if (full := self.class_named(b.__name__))]
        found += [f"``{b.__name__}``" for b in cls.__bases__ if issubclass(b, BaseException) and b.__module__ == "builtins"]
        return ["Bases: " + ", ".join(found), ""] if found else []

    def _member(self, entry: Entry, name: str, member: Any) -> list[str]:
        """A method or property of a class."""
        text = own_doc(member)
        if isinstance(member, property):
            lines = [f".. py:property:: {name}", ""]
        else:
            function = getattr(entry.value, name)
            kind = "staticmethod" if isinstance(member, staticmethod) else "classmethod" if isinstance(member, classmethod) else "method"
            lines = [f".. py:{kind}:: {name}{signatures.signature(function, self.class_named, method=kind == 'method')}", ""]
        body = docstrings.rst(text, self.resolver(member, entry.full))
        return lines + textwrap.indent("\n".join(body), "   ").splitlines() + [""]

    def _tensor(self) -> list[str]:
        """The class Tensor: attributes, methods of its own, and by one line those that are functions."""
        told = {id(inspect.unwrap(e.value)): e.full for e in self.entries() if not inspect.isclass(e.value)}
        own: list[tuple[str, Any]] = []
        functions: list[tuple[str, str]] = []
        in_place: list[str] = []
        for name, member in members(tt.Tensor):
            function = id(inspect.unwrap(getattr(tt.Tensor, name))) if not isinstance(member, property) else 0
            if function in told:
                functions.append((told[function], name))
            elif name.endswith("_") and hasattr(tt.Tensor, name[:-1]):
                in_place.append(name)
            else:
                own.append((name, member))
        lines = [".. py:currentmodule:: tritensor", "", f".. py:class:: Tensor{signatures.signature(tt.Tensor, self.class_named)}", ""]
        body = docstrings.rst(_doc(tt.Tensor), self.resolver(tt.Tensor, "tritensor.Tensor"))
        lines += textwrap.indent("\n".join(body), "   ").splitlines() + [""]
        for title, kept in (("Attributes", True), ("Methods", False)):
            entry = Entry("tritensor", "Tensor", tt.Tensor)
            found = [(n, m) for n, m in own if isinstance(m, property) is kept]
            lines += _titled(title, "-")
            rows = [(n, docstrings.summary(own_doc(m), self.resolver(m, "tritensor.Tensor"))) for n, m in found]
            lines += _table([(f"tritensor.Tensor.{n}", n, text) for n, text in rows])
            for n, m in found:
                head, *rest = self._member(entry, n, m)
                lines += [head.replace(":: ", ":: Tensor.", 1), *rest]
        lines += [*_titled("Methods that are functions", "-"), "``x.name(...)`` is ``tritensor.name(x, ...)``.", ""]
        lines += [", ".join(f":py:obj:`{name} <{full}>`" for full, name in functions) + ".", ""]
        lines += [*_titled("In place", "-"), "As without the underscore, written into the tensor itself: ", ""]
        return [*lines, ", ".join(f"``{n}``" for n in in_place) + ".", ""]


def members(cls: type) -> Iterator[tuple[str, Any]]:
    """The public methods and properties that a class says something about, itself or in bases that are no public names."""
    space: dict[str, Any] = {}
    for base in reversed((cls, *_silent_bases(cls))):
        space |= vars(base)
    for name in sorted(space, key=str.lower):
        member = space[name]
        if name.startswith("_") or not (isinstance(member, property | staticmethod | classmethod) or inspect.isfunction(member)):
            continue
        called = name == "forward" and issubclass(cls, tt.nn.Module)  # what a layer is given; the class says what becomes of it
        if (own_doc(member) or called) and not (cls is tt.Tensor and name == "wrap"):
            yield name, member


def _silent_bases(cls: type) -> list[type]:
    """The bases of a class that are no public names, and stand behind none: what they say is said nowhere else."""
    told = _public_classes() - {cls}
    behind = {b for base in cls.__mro__[1:] if base in told for b in base.__mro__}
    return [b for b in cls.__mro__[1:] if b not in behind and b.__module__.startswith("tritensor")]


@functools.cache
def _public_classes() -> frozenset[type]:
    """The classes that are told under a name of their own."""
    groups = [g for found in listed().values() for g in found]
    return frozenset({e.value for g in groups for e in g.told if inspect.isclass(e.value)} | {tt.Tensor})


def own_doc(member: Any) -> str:
    """A member's docstring, not one that it inherits."""
    return inspect.cleandoc(getattr(member, "__func__", member).__doc__ or "")


def _doc(value: Any) -> str:
    """The docstring of an object itself; of a class also what bases without a public name say of their arguments."""
    if not inspect.isclass(value):
        return inspect.getdoc(value) or ""
    private = [b for b in value.__mro__[1:] if b.__name__.startswith("_") and b.__module__.startswith("tritensor")]
    return "\n\n".join(inspect.cleandoc(b.__doc__ or "") for b in (value, *[b for b in private if "\n" in (b.__doc__ or "")]))


def _titled(text: str, mark: str) -> list[str]:
    return [text, mark * len(text), ""]


def _table(rows: Iterable[tuple[str, str, str]]) -> list[str]:
    """(target, name, text) as a table of two columns."""
    lines = [".. list-table::", "   :widths: 28 72", "   :class: names", ""]
    found = [line for full, name, text in rows for line in (f"   * - :py:obj:`{name} <{full}>`", f"     - {text}")]
    return [*lines, *found, ""] if found else []


def _markdown_links(text: str) -> str:
    """`[words](../page.md)` of an intro as a role."""
    return re.sub(r"\[([^]]+)\]\(\.\./([\w/]+)\.md\)", r":doc:`\1 </\2>`", text)


def write(folder: Path = FOLDER) -> dict[str, int]:
    """Write the pages that have changed, and remove those that are no longer. Returns how many names stand on each."""
    reference = Reference()
    folder.mkdir(exist_ok=True)
    found = reference.text()
    for name, text in found.items():
        path = folder / name
        if not path.exists() or path.read_text() != text:
            path.write_text(text)
    for path in folder.glob("*.rst"):
        if path.name not in found:
            path.unlink()
    return {page.file: sum(len(g.told) for g in groups) for page, groups in reference.pages.items()}


if __name__ == "__main__":
    print(write())
