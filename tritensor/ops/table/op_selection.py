"""Selection of the ops that a tool works on: one way to name them on every command line, `--op softmax,conv* my_ops.py`."""

from __future__ import annotations

import argparse
import difflib
import importlib.util
import sys
import traceback
from collections.abc import Iterable
from fnmatch import fnmatchcase
from pathlib import Path

from tritensor.ops.table.lookup import plugins_read, registry
from tritensor.ops.table.record import Op

HELP = "ops by name (softmax), by pattern (conv*), or all that a file registers (my_ops.py); several with commas or spaces; all when none is named"


class UnknownOpError(ValueError):
    """A name, pattern or file that gives no op."""


def add_option(parser: argparse.ArgumentParser, help: str = HELP) -> None:
    """Give a command the option `--op`, which may be repeated; `chosen(args.op)` says which ops it names."""
    parser.add_argument("--op", nargs="+", action="extend", default=[], metavar="NAME", help=help)


def select_ops(asked: Iterable[str]) -> list[Op]:
    """The ops that words of a command line name, each once, in the order of the words; all where there are none.

    A word is a name, a shell pattern, a Python file (whose ops are registered by running it), or several of these with commas between.
    Ops of installed packages (entry points "tritensor.ops") count as those of the table.
    Raises UnknownOpError with the nearest names; PluginError where a name is not found and a package raises when it is imported.
    """
    words = [w for word in asked for w in word.split(",") if w]
    files = {w: register_file(Path(w)) for w in words if w.endswith(".py")}  # first, so that patterns find their ops
    found: dict[str, Op] = {}
    with plugins_read():
        for word in words or ["*"]:
            names = files[word] if word in files else _expand_word(word)
            found.update({n: registry[n] for n in names})
    return list(found.values())


def _expand_word(word: str) -> list[str]:
    if any(c in word for c in "*?["):
        names = [n for n in registry if fnmatchcase(n, word)]
        if not names:
            raise UnknownOpError(f"no op matches {word!r}; tritensor.table.registry holds {len(registry)}, docs/ops.md lists them")
        return names
    # the index first: asking the table loads every file
    if registry.known(word) is None and word not in registry:
        near = difflib.get_close_matches(word, registry, 3)
        said = f"did you mean {', '.join(near)}?" if near else "docs/ops.md lists them; a file of ops is named with its .py"
        raise UnknownOpError(f"no op is called {word!r}; {said}")
    return [word]


def _describe_raised(error: Exception, path: Path) -> str:
    """The error that a file raised, and the line of it where: "NameError: ... (line 7: y = z)"."""
    if isinstance(error, SyntaxError) and error.filename == str(path):
        return f"SyntaxError: {error.msg} (line {error.lineno}: {(error.text or '').strip()})"
    lines = [f for f in traceback.extract_tb(error.__traceback__) if f.filename == str(path)]
    at = f" (line {lines[-1].lineno}: {lines[-1].line})" if lines else ""
    said = f"{error}" if type(error).__module__ == "tritensor.errors" else f"{type(error).__name__}: {error}"
    first, *rest = said.splitlines() or [""]
    return first + at + "".join(f"\n{line}" for line in rest)


_run: dict[Path, list[str]] = {}  # files that have been run: their ops are registered already


def register_file(file: Path) -> list[str]:
    """The names of the ops that a Python file registers, in its order. It is imported once in a process, as its stem or, where a module is called so, under
    another name. Raises UnknownOpError for a file that is not there, registers nothing, or raises: then with the line of the file that did."""
    path = file.resolve()
    if path not in _run:
        if not path.is_file():
            raise UnknownOpError(f"{file}: no such file")
        # by dict's own: the table's would load every file
        before = dict(dict.items(registry))
        name = path.stem if path.stem not in sys.modules and importlib.util.find_spec(path.stem) is None else f"ops_of_{path.stem}"
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module  # kernels are found through their module
        try:
            spec.loader.exec_module(module)
        except BaseException as error:
            del sys.modules[name]
            # so that the mended file can be run in this process
            for left in [n for n, op in dict.items(registry) if before.get(n) is not op and name in (op.module, op.owner.module)]:
                registry.restore(left) if left in registry.replaced else registry.pop(left)
            if not isinstance(error, Exception):
                raise
            raise UnknownOpError(f"{file}: {_describe_raised(error, path)}; mend the file") from error
        _run[path] = [n for n, op in dict.items(registry) if before.get(n) is not op and name in (op.module, op.owner.module)]
    if not _run[path]:
        raise UnknownOpError(f"{file}: registers no op; it calls tritensor.op(...) for each when it is imported")
    return _run[path]
