"""Survey of installed libraries: the names under `torch` that their sources write out, counted, and of those what PyTorch has and tritensor has not.

    python -m tests.libraries.survey --torch PYTHON SITE_PACKAGES...      # PYTHON: an interpreter that has torch; this one has tritensor

One line a name: files that write it, libraries, files that ask for it when they are imported and without a net, the name, some of the libraries.
The second part counts names that are here and raise when they are used (torch_compat/placeholders.py); the last one methods of Tensor: of those a
source does not say whose they are, so that each is a suspicion and no more."""

from __future__ import annotations

import argparse
import ast
import collections
import importlib
import json
import subprocess
import sys
import types
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

OWN = {"torch", "tritensor", "triton", "torchgen", "functorch", "caffe2"}  # PyTorch itself, and what stands for it


class Use(NamedTuple):
    """A name under torch, and whether a file asks for it as soon as it is imported, outside of functions and of `try`."""

    name: str
    at_import: bool


class Reader(ast.NodeVisitor):
    """The names below torch that one file writes out, and the attributes of whatever else it writes."""

    def __init__(self) -> None:
        self.uses: set[Use] = set()
        self.attributes: set[str] = set()
        self._bound: dict[str, str] = {}
        self._sheltered = 0

    def _sheltered_visit(self, nodes: Iterable[ast.AST]) -> None:
        self._sheltered += 1
        for node in nodes:
            self.visit(node)
        self._sheltered -= 1

    def _note(self, name: str) -> None:
        self.uses.add(Use(name, not self._sheltered))

    def visit_Import(self, node: ast.Import) -> None:
        for a in node.names:
            if a.name.partition(".")[0] == "torch":
                self._note(a.name)
                self._bound[a.asname or "torch"] = a.name if a.asname else "torch"  # `import torch.nn` binds torch alone

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        module = node.module or ""
        if node.level == 0 and module.partition(".")[0] == "torch":
            for a in node.names:
                name = module if a.name == "*" else f"{module}.{a.name}"
                self._note(name)
                if a.name != "*":
                    self._bound[a.asname or a.name] = name

    def visit_Attribute(self, node: ast.Attribute) -> None:
        parts, inner = [], node
        while isinstance(inner, ast.Attribute):
            parts.append(inner.attr)
            inner = inner.value  # type: ignore[assignment]
        if isinstance(inner, ast.Name) and inner.id in self._bound:
            self._note(".".join([self._bound[inner.id], *reversed(parts)]))
        else:
            self.attributes.update(parts)
            self.visit(inner)

    def _visit_function(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> None:
        if not isinstance(node, ast.Lambda):  # decorators, defaults and annotations run when the file is imported
            for part in (*node.decorator_list, *(a.annotation for a in _arguments(node.args)), node.returns):
                if part is not None:
                    self.visit(part)
        for part in (*node.args.defaults, *node.args.kw_defaults):
            if part is not None:
                self.visit(part)
        self._sheltered_visit([node.body] if isinstance(node, ast.Lambda) else node.body)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self._visit_function(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self._visit_function(node)

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self._visit_function(node)

    def visit_Try(self, node: ast.Try) -> None:
        self._sheltered_visit(ast.iter_child_nodes(node))

    def visit_If(self, node: ast.If) -> None:
        self.visit(node.test)
        self._sheltered_visit([*node.body, *node.orelse])  # versions and TYPE_CHECKING are asked so


def _arguments(args: ast.arguments) -> list[ast.arg]:
    return [*args.posonlyargs, *args.args, *args.kwonlyargs, *(a for a in (args.vararg, args.kwarg) if a)]


def read(source: bytes) -> Reader:
    """What one file writes; imports first, since a function may stand above the import that it uses."""
    tree, reader = ast.parse(source), Reader()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            reader.visit_Import(node)
        elif isinstance(node, ast.ImportFrom):
            reader.visit_ImportFrom(node)
    reader.uses.clear()
    reader.visit(tree)
    return reader


def sources(folders: Iterable[Path]) -> Iterator[tuple[str, Path]]:
    """(library, file) of what is installed in some folders, without PyTorch."""
    for folder in folders:
        for path in sorted(folder.rglob("*.py")):
            library = path.relative_to(folder).parts[0].removesuffix(".py")
            if library not in OWN:
                yield library, path


class Count:
    """The files and libraries that ask for a name."""

    def __init__(self) -> None:
        self.files = self.at_import = 0
        self.libraries: collections.Counter[str] = collections.Counter()

    def add(self, other: Count) -> None:
        self.files, self.at_import = self.files + other.files, self.at_import + other.at_import
        self.libraries.update(other.libraries)

    def line(self, name: str) -> str:
        told = " ".join(library for library, _ in self.libraries.most_common(8))
        return f"{self.files:5} {len(self.libraries):4} {self.at_import:5}  {name}  ({told})"


def count(folders: Iterable[Path]) -> tuple[dict[str, Count], dict[str, Count]]:
    """Per name below torch, and per attribute of anything else, who writes it. Files that this Python cannot read are named and left out."""
    names: dict[str, Count] = collections.defaultdict(Count)
    attributes: dict[str, Count] = collections.defaultdict(Count)
    for library, path in sources(folders):
        try:
            text = path.read_bytes()
            found = read(text) if b"torch" in text else Reader()
        except (OSError, SyntaxError, ValueError) as error:  # a folder may be installed into meanwhile
            print(f"not read: {path}: {error}", file=sys.stderr)
            continue
        eager = {u.name for u in found.uses if u.at_import}
        for kind, asked in ((names, {u.name for u in found.uses}), (attributes, found.attributes)):
            for name in asked:
                kind[name].files += 1
                kind[name].libraries[library] += 1
                kind[name].at_import += kind is names and name in eager
    return names, attributes


def find(name: str) -> tuple[int, Any]:
    """How many leading parts of a dotted name this interpreter's torch has, and the last of them."""
    parts = name.split(".")
    at: Any = importlib.import_module("torch")
    for i, part in enumerate(parts[1:], 1):
        try:
            at = getattr(at, part)
        except Exception:  # a lazy module may raise anything: then the name cannot be had
            if not isinstance(at, types.ModuleType):
                return i, at
            try:
                at = importlib.import_module(".".join(parts[: i + 1]))
            except Exception:
                return i, at
    return len(parts), at


class Answer(NamedTuple):
    """What an interpreter's torch has: of each name how many leading parts; names that raise when they are used; attributes of Tensor."""

    parts: dict[str, int]
    refusing: list[str]
    methods: list[str]


def answer() -> None:
    """The other end of `ask`: names from stdin, the Answer to stdout."""
    names = json.load(sys.stdin)
    import torch

    found = {n: find(n) for n in names}
    refusing = [n for n, (_, at) in found.items() if ": not in tritensor: " in str(getattr(at, "__doc__", ""))]  # a placeholder's words
    methods = [n for n in dir(torch.Tensor) if not n.startswith("__") and hasattr(torch.Tensor, n)]
    sys.stdout.write("\n" + json.dumps(Answer({n: parts for n, (parts, _) in found.items()}, refusing, methods)))


def ask(command: list[str], names: Iterable[str]) -> Answer:
    """What the torch of another process has of the names. Raises CalledProcessError."""
    done = subprocess.run(command, input=json.dumps(sorted(names)), stdout=subprocess.PIPE, text=True, check=True)
    return Answer(*json.loads(done.stdout.rpartition("\n")[2]))  # a module may print while it is imported


def missing(names: dict[str, Count], theirs: dict[str, int], ours: dict[str, int]) -> dict[str, Count]:
    """The first part of each name that PyTorch has and tritensor has not, with all that ask for something behind it."""
    found: dict[str, Count] = collections.defaultdict(Count)
    for name, asked in names.items():
        if ours[name] < theirs[name]:
            found[".".join(name.split(".")[: ours[name] + 1])].add(asked)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description="names of torch that installed libraries ask for and tritensor has not")
    parser.add_argument("--torch", required=True, metavar="PYTHON", help="an interpreter that has torch")
    parser.add_argument("--least", type=int, default=1, help="leave out names that fewer files write")
    parser.add_argument("folders", nargs="+", type=Path, metavar="SITE_PACKAGES")
    given = parser.parse_args()
    names, attributes = count(given.folders)
    theirs = ask([given.torch, __file__, "--answer"], names)
    ours = ask([sys.executable, "-m", "tritensor.run", __file__, "--answer"], names)
    absent_methods = set(theirs.methods) - set(ours.methods)
    for title, found in (
        ("names", missing(names, theirs.parts, ours.parts)),
        ("names that raise when they are used", {n: names[n] for n in ours.refusing}),
        ("methods of Tensor", {n: attributes[n] for n in absent_methods if n in attributes}),
    ):
        print(f"# {title}: files, libraries, files that ask when they are imported")
        for name, asked in sorted(found.items(), key=lambda pair: (-pair[1].at_import, -pair[1].files, pair[0])):
            if asked.files >= given.least:
                print(asked.line(name))


if __name__ == "__main__":
    answer() if sys.argv[1:] == ["--answer"] else main()
