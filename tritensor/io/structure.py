"""Nests of containers and values around tensors, as JSON and back: types, order of keys, shared and cyclic parts are kept.

The JSON is a list of containers, the outermost first, each a list `[kind, member, ...]`:

    ["dict", [key, value], ...]   ["OrderedDict", ...]   ["Counter", ...]   ["defaultdict", factory, [key, value], ...]
    ["list", value, ...]   ["tuple", ...]   ["Size", ...]   ["set", ...]   ["frozenset", ...]
    ["namedtuple", module, name, [field, ...], value, ...]   ["state_dict", _metadata, [key, value], ...]

A value is null, a boolean, a number or a string as JSON has them, or an object with one entry: {"at": n} is the n-th container,
{"tensor": name} a tensor; float, int, complex, bytes, numpy, dtype and device hold what JSON cannot say.
Nothing is looked up but named tuples' classes, in modules that the program has imported by itself and in return_types.
"""

from __future__ import annotations

import base64
import json
import math
import reprlib
import sys
from collections import Counter, OrderedDict, defaultdict, namedtuple
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from tritensor.ground import dtypes
from tritensor.ground.device import device
from tritensor.ground.providers import provider
from tritensor.tensor.core import Tensor
from tritensor.tensor.size import Size

_FACTORIES: dict[str, Any] = {
    "none": None, "dict": dict, "list": list, "tuple": tuple, "set": set, "int": int, "float": float, "str": str, "bool": bool,
    "Counter": Counter, "OrderedDict": OrderedDict,
}  # fmt: skip
_MAPPINGS: dict[str, Any] = {"dict": dict, "OrderedDict": OrderedDict, "Counter": Counter, "defaultdict": defaultdict}
_SEQUENCES: dict[str, Any] = {"list": list, "set": set, "tuple": tuple, "frozenset": frozenset, "Size": Size}
_NAMES = {kind: name for name, kind in {**_MAPPINGS, **_SEQUENCES}.items()}
_EMPTY: dict[str, Any] = {name: kind for kind, name in _NAMES.items() if name in ("dict", "OrderedDict", "Counter", "list", "set")}
_EMPTY["state_dict"] = OrderedDict  # with an attribute: each module's version, by its name
_FROZEN = ("tuple", "frozenset", "Size", "namedtuple")  # made in one go, after their members
_DEEPEST = 1000  # tuples in tuples that are a key: hash() takes a C call a level, and does not look where the stack ends
_DTYPES = {d.name: d for d in dtypes.ALL}


# -- writing
Place: TypeAlias = "tuple[Place, Any] | None"  # where something stands: in which container, under which key


class _Key(NamedTuple):
    """The place of a key itself."""

    key: Any

    def __str__(self) -> str:
        return f"key {self.key!r}"


def _spelled(place: Place) -> str:
    """As `state.0.exp_avg`."""
    parts = []
    while place is not None:
        place, part = place
        parts.append(str(part))
    return ".".join(reversed(parts))


class Packer:
    """Turns nests into JSON; `tensors` fills with what they hold, named by the place where it stands (`state.0.exp_avg`)."""

    def __init__(self) -> None:
        self.tensors: dict[str, Tensor] = {}
        self._numbers: dict[int, int] = {}  # container by id: its number
        self._names: dict[int, str] = {}  # tensor by id: its name
        self._waiting: list[tuple[Any, Place]] = []

    def pack(self, root: Any) -> str:
        """The JSON text. Raises TypeError, naming the place, for what a checkpoint does not hold."""
        first = self._value(root, None)
        containers: list[Any] = []
        while len(containers) < len(self._waiting):  # a queue, not a recursion: any depth, and cycles end
            containers.append(self._container(*self._waiting[len(containers)]))
        return json.dumps([first, *containers], separators=(",", ":"), allow_nan=False)

    def _value(self, x: Any, place: Place) -> Any:
        kind = type(x)
        if x is None or kind is bool or kind is str:
            return x
        if kind is int:
            return x if x.bit_length() <= 64 else {"int": hex(x)}
        if kind is float:
            return x if math.isfinite(x) else {"float": str(x)}
        if isinstance(x, Tensor):
            return {"tensor": self._name(x, place)}
        if kind in _NAMES or _is_named(x):
            number = self._numbers.get(id(x))
            if number is None:
                number = self._numbers[id(x)] = len(self._waiting)
                self._waiting.append((x, place))
            return {"at": number}
        return _special(x, place)

    def _name(self, x: Tensor, place: Place) -> str:
        name = self._names.get(id(x))
        if name is None:
            name = (_spelled(place) or "tensor").encode("utf-8", "backslashreplace").decode()
            while name in self.tensors or name == "__metadata__":
                name += "_"
            self._names[id(x)] = name
            self.tensors[name] = x
        return name

    def _container(self, x: Any, place: Place) -> list[Any]:
        if isinstance(x, Mapping):
            out: list[Any] = [_NAMES[type(x)]]
            if isinstance(x, defaultdict):
                out.append(_factory(x.default_factory, place))
            elif type(x) is OrderedDict and isinstance(getattr(x, "_metadata", None), dict):
                out = ["state_dict", self._value(x._metadata, (place, "_metadata"))]  # type: ignore[attr-defined]
            return [*out, *([self._key(k, place), self._value(v, (place, k))] for k, v in x.items())]
        if type(x) in _NAMES:
            out = [_NAMES[type(x)]]
        else:
            out = ["namedtuple", type(x).__module__, type(x).__qualname__, list(x._fields)]
        names = getattr(x, "_fields", range(len(x)))
        return [*out, *(self._value(v, (place, n)) for n, v in zip(names, x, strict=True))]

    def _key(self, key: Any, place: Place) -> Any:
        if isinstance(key, Tensor):
            raise TypeError(
                f"save: {_spelled(place) or 'the object'} has a tensor as a key, which is found again only by address; use a name"
            )
        return self._value(key, (place, _Key(key)))


def _is_named(x: Any) -> bool:
    return isinstance(x, tuple) and type(getattr(x, "_fields", None)) is tuple and len(getattr(x, "_fields", ())) == len(x)


def _factory(factory: Any, place: Place) -> str:
    for name, known in _FACTORIES.items():
        if factory is known:
            return name
    raise TypeError(
        f"save: {_spelled(place) or 'the object'} is a defaultdict of {factory!r}; a checkpoint holds no code, only the factories "
        f"{', '.join(_FACTORIES)}: save dict(it)"
    )


def _special(x: Any, place: Place) -> dict[str, Any]:
    """A value that JSON has no form for."""
    kind = type(x)
    if kind is complex:
        return {"complex": [str(x.real), str(x.imag)]}
    if kind is bytes:
        return {"bytes": base64.b64encode(x).decode()}
    if isinstance(x, np.generic) and x.dtype.name in _DTYPES:
        return {"numpy": [x.dtype.name, x.tobytes().hex()]}
    if isinstance(x, np.str_):
        return {"numpy": ["str", str(x)]}
    if kind is dtypes.DType:
        return {"dtype": x.name}
    if kind is device:
        return {"device": str(x)}
    raise TypeError(
        f"save: {_spelled(place) or 'the object'} is a {kind.__name__}; a checkpoint holds tensors, numbers, strings, None, and dicts, lists, tuples of these"
        + ("; save its state_dict()" if hasattr(x, "state_dict") else "")
    )


# -- reading
def unpack(text: str, tensors: Mapping[str, Tensor]) -> Any:
    """What `Packer` packed. Raises ValueError, LookupError, TypeError or RecursionError for a text that it never wrote."""
    first, *described = _listed(json.loads(text, parse_constant=_no_number))
    made: dict[int, Any] = {}
    for number, container in enumerate(described):
        kind = _listed(container, 1)[0]
        if kind == "defaultdict":
            made[number] = defaultdict(_FACTORIES[container[1]])
        elif kind in _EMPTY:
            made[number] = _EMPTY[kind]()
        elif kind not in _FROZEN:
            raise ValueError(f"unknown kind {reprlib.repr(kind)}")

    def value(x: Any) -> Any:
        return _decoded(x, made, tensors) if isinstance(x, dict) else _plain(x)

    depth = _freeze(described, made, value)
    for number, container in enumerate(described):
        _fill(made[number], container, value, depth)
    return value(first)


def _listed(x: Any, least: int = 0) -> list[Any]:
    if not isinstance(x, list) or len(x) < least:
        raise ValueError(f"a {type(x).__name__} stands where a list of {least} or more should")
    return x


def _pair(x: Any) -> list[Any]:
    if not isinstance(x, list) or len(x) != 2:
        raise ValueError(f"a {type(x).__name__} stands where a pair should")
    return x


def _plain(x: Any) -> Any:
    if isinstance(x, list):
        raise ValueError("a list stands where a value should")
    return x


def _no_number(text: str) -> Any:
    raise ValueError(f"{text} is no number of JSON")


def _decoded(x: dict[str, Any], made: dict[int, Any], tensors: Mapping[str, Tensor]) -> Any:
    ((kind, content),) = x.items()
    if kind == "at":
        return made[content]
    if kind == "tensor":
        return tensors[content]
    if kind == "float":
        return {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}[content]
    if kind == "int":
        return int(content, 16)
    if kind == "complex":
        real, imaginary = _pair(content)
        return complex(float(real), float(imaginary))
    if kind == "bytes":
        return base64.b64decode(content, validate=True)
    if kind == "numpy":
        name, given = _pair(content)
        if name == "str":
            return np.str_(_text(given))
        (scalar,) = np.frombuffer(bytes.fromhex(given), _DTYPES[name].numpy)
        return scalar
    if kind == "dtype":
        return _DTYPES[content]
    if kind == "device":
        return device(_text(content))
    raise ValueError(f"unknown kind {reprlib.repr(kind)}")


def _text(x: Any) -> str:
    if not isinstance(x, str):
        raise ValueError(f"a {type(x).__name__} stands where a string should")
    return x


def _freeze(described: list[Any], made: dict[int, Any], value: Callable[[Any], Any]) -> dict[int, int]:
    """Make the immutable containers, each after those that it holds; how deep they nest, by number.
    Raises ValueError where one would hold itself."""
    depth: dict[int, int] = {}
    for start in reversed(range(len(described))):  # written from the outside inwards
        stack, begun = [start], set()
        while stack:
            number = stack[-1]
            if number in made:
                stack.pop()
                continue
            members = _members(described[number])
            inside = [m["at"] for m in members if isinstance(m, dict) and "at" in m]
            if number not in begun:
                begun.add(number)
                missing = [n for n in inside if n not in made]
                if any(type(n) is not int or not 0 <= n < len(described) or n in begun for n in missing):
                    raise ValueError(f"container {number} holds one that is not there, or itself")
                stack += missing
                continue
            depth[number] = 1 + max((depth.get(n, 0) for n in inside), default=0)
            if described[number][0] == "frozenset":
                _check_hash(members, depth)
            values = [value(m) for m in members]
            if described[number][0] == "namedtuple":
                made[number] = tuple.__new__(_named(described[number], len(values)), values)
            else:
                made[number] = _SEQUENCES[described[number][0]](values)
    return depth


def _check_hash(members: list[Any], depth: dict[int, int]) -> None:
    if any(isinstance(m, dict) and depth.get(m.get("at", -1), 0) > _DEEPEST for m in members):
        raise ValueError(f"a key is nested more than {_DEEPEST} deep")


def _members(container: list[Any]) -> list[Any]:
    return container[{"namedtuple": 4, "defaultdict": 2, "state_dict": 2}.get(container[0], 1) :]


def _fill(made: Any, container: list[Any], value: Callable[[Any], Any], depth: dict[int, int]) -> None:
    members = _members(container)
    if isinstance(made, list):
        made.extend(map(value, members))
    elif isinstance(made, set):
        _check_hash(members, depth)
        made.update(map(value, members))
    elif isinstance(made, dict):
        _check_hash([_pair(m)[0] for m in members], depth)
        for key, content in members:
            made[value(key)] = value(content)
        if len(made) != len(members):
            raise ValueError("a key stands twice")
        if container[0] == "state_dict":
            versions = value(container[1])
            if not isinstance(versions, dict):
                raise ValueError(f"a {type(versions).__name__} stands where a state_dict's versions should")
            made._metadata = versions  # type: ignore[attr-defined]


def _named(container: list[Any], count: int) -> Any:
    """The named tuple's class, where the program has it; else one of the same name and fields."""
    module, name = _text(container[1]), _text(container[2])
    fields = [_text(f) for f in _listed(container[3])]
    if len(fields) != count:
        raise ValueError(f"the named tuple {name} has {len(fields)} fields and {count} values")
    found: Any = provider("return_types") if module == "tritensor.return_types" else sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, "__dict__", {}).get(part)  # not getattr: a module's own __getattr__ would run
    if isinstance(found, type) and issubclass(found, tuple) and getattr(found, "_fields", None) == tuple(fields):
        return found
    return namedtuple(name.rpartition(".")[2], fields)
