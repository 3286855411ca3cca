"""Look-up of ops by name: the table, which loads the file of an op when the op is first asked for, and `ops.<name>`.

Importing tritensor loads no op: the price of an import does not grow with the number of ops. Where the file of an op is, a
generated index tells (kernels/op_index.py); a name that it does not hold is looked for in all files, then in installed packages.
"""

from __future__ import annotations

import contextlib
import difflib
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from typing import Any, Protocol

from tritensor.ground.errors import PluginError, RegistrationError
from tritensor.ground.process.late_imports import loading
from tritensor.ground.process.locks import being_imported, rlock, was_imported
from tritensor.ground.providers import provider
from tritensor.ops import replay
from tritensor.ops.table.record import Op

GROUP = "tritensor.ops"  # of entry points


class Forms(Protocol):
    """Whoever gives an op its public forms (the floor of tensors): what stands in their way, making them, taking them away."""

    def problems(self, record: Op, replace: bool) -> list[str]: ...

    def publish(self, record: Op) -> None: ...

    def withdraw(self, record: Op) -> None: ...


class Table(dict[str, Op]):
    """Op records by name. Asking for one loads its file; asking what there is (iterating, counting) loads every file.

    The library's own are in the table once their file has been run to its end: before that they are in `_entering`, where no thread sees an op whose file
    lacks its other half, and from where a file that fails leaves nothing.

    Attributes:
        index: name of an op: the module that registers it. What it lacks is found by loading everything.
        load: import a module of the index.
        load_all: import every module that registers ops.
        added: called with the name of an op when it is registered, where set.
        forms: who makes an op's function and methods of its record, where set.
        changed: called with the name of an op when another record has taken its place, or when it was removed: what floors above keep of it is stale.
        replaced: by name, the first of the records that gave way to others.
        edition: counts what makes bound calls stale, so that none is kept which was bound meanwhile (see `Ops`).
    """

    index: dict[str, str]
    load: Callable[[str], Any]
    load_all: Callable[[], Any]
    added: Callable[[str], Any] | None = None
    forms: Forms | None = None
    complete = False

    def __init__(self) -> None:
        super().__init__()
        self.changed: list[Callable[[str], Any]] = []
        self.replaced: dict[str, Op] = {}
        self.edition = 0
        self._entering: dict[str, Op] = {}

    def loaded_from(self, index: dict[str, str], load: Callable[[str], Any], load_all: Callable[[], Any]) -> None:
        """Say where ops come from. Called once, by the floor above."""
        self.index, self.load, self.load_all = index, load, load_all

    def everything(self) -> Table:
        """The table with every op loaded."""
        if not self.complete:
            with loading("ops"):
                self.load_all()
            self._enter_finished()
            self.complete = True
        return self

    def names(self) -> list[str]:
        """Ops that are registered or stand in the index, sorted. Loads nothing."""
        return sorted({*self.index, *dict.keys(self)})

    def known(self, name: str) -> Op | None:
        """The record of an op that has been registered, or that the index holds; None for another name. Loads at most one file."""
        if not dict.__contains__(self, name) and name in self.index:
            with loading(name):
                self.load(self.index[name])  # waits where another thread is at it
            if being_imported(self.index[name]):  # its own file asks
                return self._entering.get(name)
            self._enter_finished()
        return dict.get(self, name)

    def _enter_finished(self) -> None:
        """Enter the ops of files that have been run to their end. What is of a file that failed stays outside until the file is run again."""
        with changing:
            for name, record in tuple(self._entering.items()):
                if was_imported(self.index[name]):
                    del self._entering[name]
                    self._enter(name, record)

    def __missing__(self, name: str) -> Op:
        found = self.known(name)
        if found is None:
            found = dict.get(self.everything(), name)
        if found is None:
            raise KeyError(name)
        return found

    # dict's own would not load the op's file
    def get(self, name: str, default: Any = None) -> Any:
        try:
            return self[name]
        except KeyError:
            return default

    def __setitem__(self, name: str, record: Op) -> None:
        with changing:
            if name in self.index and being_imported(self.index[name]):
                self._entering[name] = record
            else:
                self._enter(name, record)

    def _enter(self, name: str, record: Op) -> None:
        before = dict.get(self, name)
        dict.__setitem__(self, name, record)
        if before is not None and before is not record:
            self.replaced.setdefault(name, before)
            self._forget(before)
        if record.forms and self.forms is not None:
            self.forms.publish(record)
        if self.added is not None:
            self.added(name)

    def __delitem__(self, name: str) -> None:
        self.pop(name)

    def pop(self, name: str, *default: Any) -> Any:
        """Remove an op with its public forms. Graphs that hold it keep it."""
        with changing:
            if not dict.__contains__(self, name):
                return dict.pop(self, name, *default)
            gone = dict.pop(self, name)
            self._forget(gone)
        return gone

    def _forget(self, gone: Op) -> None:
        """Drop all that was made of a record which is in the table no more: bound calls, public forms, recordings that launch its kernels."""
        # first: a thread that binds the old record meanwhile sees that it has to begin again
        self.edition += 1
        ops.__dict__.pop(gone.name, None)
        if gone.forms and self.forms is not None:
            self.forms.withdraw(gone)
        replay.forget()  # corners of other ops may have called its
        for tell in self.changed:
            tell(gone.name)

    def restore(self, name: str) -> Op:
        """Put back the op that had a name before others replaced it; gives its record. Raises RegistrationError where none was replaced."""
        if name not in self.replaced:
            raise RegistrationError(f"restore: {name!r} was not replaced in this process; op(..., replace=True) is what restore undoes")
        with changing:
            before = self.replaced[name]
            self[name] = before
            del self.replaced[name]
        return before

    def __contains__(self, name: object) -> bool:
        return self.get(name) is not None if isinstance(name, str) else False

    def __iter__(self) -> Iterator[str]:
        return dict.__iter__(self.everything())

    def __len__(self) -> int:
        return dict.__len__(self.everything())

    def keys(self) -> Any:
        return dict.keys(self.everything())

    def values(self) -> Any:
        return dict.values(self.everything())

    def items(self) -> Any:
        return dict.items(self.everything())


changing = rlock()  # the table, and what is bound of it
registry = Table()


class _Reading(threading.local):
    package = ""  # whose entry point this thread reads


reading = _Reading()


class Ops:
    """Look-up of ops by name at call time: `ops.softmax(x, dim=-1)`. Dispatch binds a record at its first use.

    A name that is not in the table is looked for in installed packages: entry points of the group "tritensor.ops" name
    modules that register ops when they are imported. They are read once, at the first such name.
    """

    bind: Callable[[Op], Callable[..., Any]]
    plugins_read = False

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("__"):
            raise AttributeError(name)
        record = registry.known(name)
        if record is None and name == "aten":  # PyTorch's names of ops
            self.__dict__[name] = provider("torch_dispatch.overloads").aten
            return self.__dict__[name]  # type: ignore[no-any-return]
        if record is None and name == "load_library":
            return provider("utils.compiled_extensions").load_library  # type: ignore[no-any-return]
        if record is None:
            record = _find_elsewhere(name)
        while True:  # not bound under the lock: that may load files
            edition = registry.edition
            bound = type(self).bind(record)
            with changing:
                if edition == registry.edition:
                    return self.__dict__.setdefault(name, bound)  # type: ignore[no-any-return]
            record = registry[name]

    def __dir__(self) -> list[str]:
        return registry.names()


def read_plugins() -> None:
    """Let installed packages register their ops: import what their entry points of the group "tritensor.ops" name. Read once per process.

    Raises PluginError, naming the package, for one that raises when it is imported. The others are read before that; a later call goes on.
    """
    if Ops.plugins_read:
        return
    from importlib.metadata import entry_points

    failed: list[tuple[Any, Exception]] = []
    for entry in entry_points(group=GROUP):
        known = (_find_package(entry), entry.name, entry.value)
        if known in _loaded:
            continue
        reading.package = known[0]
        try:
            entry.load()
            # an import that raised is tried again at the next look
            _loaded.add(known)
        except Exception as error:  # whatever the package raises, the others are to be had
            failed.append((entry, error))
        finally:
            reading.package = ""
    if failed:
        said = [
            f"the plug-in {_find_package(entry)!r} ({GROUP}: {entry.name} = {entry.value}) raises when it is imported: {_describe_error(raised)}; "
            f"mend it, or pip uninstall {_find_package(entry)}"
            for entry, raised in failed
        ]
        raise PluginError("ops: " + "\n".join(said)) from failed[0][1]
    Ops.plugins_read = True
    _loaded.clear()


_loaded: set[tuple[str, str, str]] = set()  # entry points that need no second try, while others do


def _describe_error(raised: Exception) -> str:
    """The error that a plug-in raised; of a file that Python cannot read, the line."""
    if isinstance(raised, SyntaxError) and raised.filename:
        return f"SyntaxError: {raised.msg} ({raised.filename}:{raised.lineno}: {(raised.text or '').strip()})"
    return f"{type(raised).__name__}: {raised}"


@contextlib.contextmanager
def plugins_read() -> Iterator[None]:
    """Within the block the ops of installed packages are to be had. A package that raises is an error where the block raises LookupError, AttributeError or
    ValueError, for what is asked for may be its own; else a warning, once, so that one broken package takes no op of another away."""
    broken: PluginError | None = None
    try:
        read_plugins()
    except PluginError as error:
        broken = error
    try:
        yield
    except (LookupError, AttributeError, ValueError):
        if broken is not None:
            raise broken from broken.__cause__
        raise
    if broken is not None and str(broken) not in _told_of:
        _told_of.add(str(broken))
        warnings.warn(str(broken), stacklevel=4)


_told_of: set[str] = set()  # broken packages that a warning has named


def _find_package(entry: Any) -> str:
    """The name under which pip knows the package of an entry point."""
    return str(getattr(getattr(entry, "dist", None), "name", None) or getattr(entry, "name", ""))


def _find_elsewhere(name: str) -> Op:
    """An op that the index does not hold: of a file that is new, or of an installed package. Raises AttributeError."""
    record: Op | None = registry.get(name)
    if record is not None:
        return record
    with plugins_read():
        record = registry.get(name)
        if record is None:
            raise AttributeError(f"ops: no op is called {name!r}; {_suggest_name(name)}")
    return record


def _suggest_name(name: str) -> str:
    """A hint for a name that is no op: the public function of that name, which a rule may call as well, or the nearest op."""
    front = sys.modules.get("tritensor")
    if callable(vars(front).get(name) if front is not None else None):
        return f"tritensor.{name} is a function made of ops: call that, in a rule too"
    # all files are loaded by now: the name was not in the index
    near = difflib.get_close_matches(name, registry, 1)
    return f"did you mean {near[0]!r}?" if near else "docs/ops.md lists them"


ops = Ops()
