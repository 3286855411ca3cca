"""An op's public forms, made of its record: what `op(..., public=True)` puts into the top-level namespace and on Tensor, and takes away again."""

from __future__ import annotations

import inspect
import linecache
import warnings
from collections.abc import Callable
from inspect import Parameter
from typing import Any

from tritensor.ground.call_site import INSIDE, file_and_line
from tritensor.ground.errors import PluginError
from tritensor.ops.table import Op, ops, registry
from tritensor.ops.table.description import parameters, return_annotation_of, write_documentation
from tritensor.ops.table.lookup import read_plugins
from tritensor.tensor.core import Tensor
from tritensor.tensor.public_api.publish import function, public, wrap_in_place

_ABSENT: Any = object()
_namespace: dict[str, Any] = {}  # that of tritensor/__init__.py, once it is loaded
_lazy_names: frozenset[str] = frozenset()  # and those that it imports when they are asked for
_replaced: dict[tuple[str, str], Any] = {}  # (owner, name): what stood where a form was put
_owners: dict[tuple[str, str], str] = {}  # (owner, name): the op whose form stands there


def set_namespace(names: dict[str, Any], late: tuple[str, ...]) -> None:
    """Take the globals of tritensor/__init__.py, a dict that is written to, and the names that it imports late."""
    global _namespace, _lazy_names
    _namespace, _lazy_names = names, frozenset(late)
    for (owner, name), op in _owners.items():  # of ops that were registered while it was being built
        if owner == "tritensor" and op:
            _namespace[name] = public[name]


def published_names() -> list[str]:
    """The names of published ops in the top-level namespace."""
    return [name for owner, name in _owners if owner == "tritensor"]


def find_in_plugins(name: str) -> Any:
    """A public name that an installed package's ops may bring (entry points "tritensor.ops", read at the first unknown name); None where none does.

    A package that raises when it is imported is named in a warning, once: the name that was asked for may have nothing to do with it.
    """
    global _plugins_read
    # Entry points are read at the first unknown name only: importing all plugins at start would cost every program.
    if not _plugins_read and _namespace:  # not while tritensor itself is being imported
        try:
            read_plugins()
        except PluginError as error:
            _plugins_read = True  # whatever is made of the warning
            warnings.warn(str(error), stacklevel=4)
        _plugins_read = True  # not before: another thread that asks meanwhile reads them too
    return _namespace.get(name) if ("tritensor", name) in _owners else None


_plugins_read = False


class OpForms:
    """What the table asks for public forms (see ops/table/lookup.py)."""

    def problems(self, record: Op, replace: bool) -> list[str]:
        """Public names that somebody else has, unless they are to be replaced."""
        found = []
        for owner, name in _form_slots(record):
            if _owners.get((owner, name)) == record.name:
                continue
            taken, gives_way = _find_holder(owner, name)
            if taken and not (replace and gives_way):
                mend = "write replace=True to put this op's in its place, or choose another name" if gives_way else "choose another name"
                found.append(f"public: {owner}.{name} is taken by {taken}; {mend}")
        return found

    def publish(self, record: Op) -> None:
        """Put the forms in their places."""
        call, write = _make_forms(record)
        for owner, name in _form_slots(record):
            place = owner, name
            value = call if name == record.name else write
            # The first value is what withdraw restores, however often the op is replaced.
            if place not in _replaced:
                _replaced[place] = _current_value(owner, name)
            _owners[place] = record.name
            _set_slot(owner, name, value)

    def withdraw(self, record: Op) -> None:
        """Put back what stood there before."""
        for place in _form_slots(record):
            if _owners.get(place) == record.name:
                del _owners[place]
                _set_slot(*place, _replaced.pop(place))


def _form_slots(record: Op) -> list[tuple[str, str]]:
    """Where an op's forms stand: (tritensor or Tensor, name)."""
    at = {"function": ("tritensor", record.name), "method": ("Tensor", record.name), "inplace": ("Tensor", record.name + "_")}
    return [at[f] for f in record.forms if f in at]


def _current_value(owner: str, name: str) -> Any:
    return _namespace.get(name, public.get(name, _ABSENT)) if owner == "tritensor" else vars(Tensor).get(name, _ABSENT)


def _set_slot(owner: str, name: str, value: Any) -> None:
    """Let a place hold `value`, or nothing."""
    if owner == "Tensor":
        if value is not _ABSENT:
            setattr(Tensor, name, value)
        elif name in vars(Tensor):
            delattr(Tensor, name)
        return
    for table in (public, _namespace):
        if value is not _ABSENT:
            table[name] = value
        else:
            table.pop(name, None)


def _find_holder(owner: str, name: str) -> tuple[str, bool]:
    """Who has a public name, "" where it is free, and whether it may be replaced: functions and methods may. What PyTorch has and this library has not
    is free."""
    if (owner, name) in _owners:
        return f"the op {_owners[owner, name]} of {registry[_owners[owner, name]].owner}", True
    # Its value is not there yet, so it cannot be kept and restored.
    if owner == "tritensor" and name in _lazy_names:
        return "tritensor itself (imported when it is asked for)", False
    value = inspect.getattr_static(Tensor, name, _ABSENT) if owner == "Tensor" else _current_value(owner, name)
    if value is _ABSENT or (owner == "Tensor" and not inspect.ismemberdescriptor(value) and not hasattr(Tensor, name)):
        return "", True
    code = getattr(inspect.unwrap(value) if callable(value) else value, "__code__", None)
    if code is None:
        return f"tritensor itself ({'an attribute of every tensor' if owner == 'Tensor' else f'a {type(value).__name__}'})", False
    return f"tritensor itself ({file_and_line(code.co_filename, code.co_firstlineno)})", True


def _make_forms(record: Op) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """The validated function, and its in-place form."""
    body = _make_body(record)
    call = function(body, method=False, free=False, out="out" in record.forms)
    write = wrap_in_place(body, record.name + "_", True)
    write.__doc__ = f"In-place form of {record.name}: writes the result over the first input and returns it.\n\n{body.__doc__}"
    for f in (call, write):
        f.__module__ = "tritensor"  # where users and pickle find it
    return call, write


def _make_body(record: Op) -> Any:
    """`def isru(x): return ops.isru(x)`: a function of the op's own parameters, so that a call which does not fit them fails at its first step.

    The op is looked up when it is called: whoever keeps the function has the op that bears the name then.
    """
    given: dict[str, Any] = {"_ops": ops}
    shown_parameters, passed = [], []
    for p in parameters(record, Parameter.POSITIONAL_OR_KEYWORD):
        if p.default is not Parameter.empty:
            given[f"_default_of_{p.name}"] = p.default
        shown_parameters.append((p.kind, p.name + ("" if p.default is Parameter.empty else f"=_default_of_{p.name}")))
        star, equals = p.kind is Parameter.VAR_POSITIONAL, p.kind is Parameter.KEYWORD_ONLY
        passed.append("*" * star + p.name + f"={p.name}" * equals)
    by_name = [text for kind, text in shown_parameters if kind is Parameter.KEYWORD_ONLY]
    rest = [f"*{text}" for kind, text in shown_parameters if kind is Parameter.VAR_POSITIONAL] or ["*"] * bool(by_name)
    by_place = [text for kind, text in shown_parameters if kind is Parameter.POSITIONAL_OR_KEYWORD]
    source = f"def {record.name}({', '.join(by_place + rest + by_name)}):\n    return _ops.{record.name}({', '.join(passed)})\n"
    file = f"{INSIDE}tensor/public_api/<{record.name}>"  # which tracebacks and messages take for the library's own
    linecache.cache[file] = (len(source), None, source.splitlines(True), file)
    exec(compile(source, file, "exec"), given)
    f = given[record.name]
    f.__annotations__ = {p.name: p.annotation for p in parameters(record) if p.annotation is not Parameter.empty}
    f.__annotations__["return"] = return_annotation_of(record)
    f.__doc__ = write_documentation(record)
    f.__module__ = __name__
    return f


registry.forms = OpForms()
