"""JSON of nests of containers and values around tensors, written and read: types, order of keys, shared and cyclic parts are kept.

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
_KIND_NAMES = {kind: name for name, kind in {**_MAPPINGS, **_SEQUENCES}.items()}
_EMPTY: dict[str, Any] = {name: kind for kind, name in _KIND_NAMES.items() if name in ("dict", "OrderedDict", "Counter", "list", "set")}
_EMPTY["state_dict"] = OrderedDict  # with an attribute: each module's version, by its name
_FROZEN = ("tuple", "frozenset", "Size", "namedtuple")  # made in one go, after their members
_MAX_KEY_DEPTH = 1000  # tuples in tuples that are a key: hash() takes a C call a level, and does not look where the stack ends
_DTYPES = {d.name: d for d in dtypes.ALL}


# -- writing
Path: TypeAlias = "tuple[Path, Any] | None"  # of a value: (the path of the container that it is in, its key there)


class _Key(NamedTuple):
    """The last part of the path of a key itself."""

    key: Any

    def __str__(self) -> str:
        return f"key {self.key!r}"


def _format_path(path: Path) -> str:
    """As `state.0.exp_avg`."""
    parts = []
    while path is not None:
        path, part = path
        parts.append(str(part))
    return ".".join(reversed(parts))


class Packer:
    """Turns nests into JSON; `tensors` fills with what they hold, named by their path (`state.0.exp_avg`)."""

    def __init__(self) -> None:
        self.tensors: dict[str, Tensor] = {}
        self._numbers: dict[int, int] = {}  # container by id: its number
        self._names: dict[int, str] = {}  # tensor by id: its name
        self._waiting: list[tuple[Any, Path]] = []

    def pack(self, root: Any) -> str:
        """The JSON text. Raises TypeError, naming the path, for what a checkpoint does not hold."""
        first = self._encode_value(root, None)
        containers: list[Any] = []
        while len(containers) < len(self._waiting):  # a queue, not a recursion: any depth, and cycles end
            containers.append(self._encode_container(*self._waiting[len(containers)]))
        return json.dumps([first, *containers], separators=(",", ":"), allow_nan=False)

    def _encode_value(self, x: Any, path: Path) -> Any:
        kind = type(x)
        if x is None or kind is bool or kind is str:
            return x
        if kind is int:
            return x if x.bit_length() <= 64 else {"int": hex(x)}
        if kind is float:
            return x if math.isfinite(x) else {"float": str(x)}
        if isinstance(x, Tensor):
            return {"tensor": self._name_tensor(x, path)}
        if kind in _KIND_NAMES or _is_named_tuple(x):
            number = self._numbers.get(id(x))
            if number is None:
                number = self._numbers[id(x)] = len(self._waiting)
                self._waiting.append((x, path))
            return {"at": number}
        return _encode_special(x, path)

    def _name_tensor(self, x: Tensor, path: Path) -> str:
        name = self._names.get(id(x))
        if name is None:
            name = (_format_path(path) or "tensor").encode("utf-8", "backslashreplace").decode()
            while name in self.tensors or name == "__metadata__":
                name += "_"
            self._names[id(x)] = name
            self.tensors[name] = x
        return name

    def _encode_container(self, x: Any, path: Path) -> list[Any]:
        if isinstance(x, Mapping):
            out: list[Any] = [_KIND_NAMES[type(x)]]
            if isinstance(x, defaultdict):
                out.append(_factory_name(x.default_factory, path))
            elif type(x) is OrderedDict and isinstance(getattr(x, "_metadata", None), dict):
                out = ["state_dict", self._encode_value(x._metadata, (path, "_metadata"))]  # type: ignore[attr-defined]
            return [*out, *([self._encode_key(k, path), self._encode_value(v, (path, k))] for k, v in x.items())]
        if type(x) in _KIND_NAMES:
            out = [_KIND_NAMES[type(x)]]
        else:
            out = ["namedtuple", type(x).__module__, type(x).__qualname__, list(x._fields)]
        names = getattr(x, "_fields", range(len(x)))
        return [*out, *(self._encode_value(v, (path, n)) for n, v in zip(names, x, strict=True))]

    def _encode_key(self, key: Any, path: Path) -> Any:
        if isinstance(key, Tensor):
            raise TypeError(
                f"save: {_format_path(path) or 'the object'} has a tensor as a key, which is found again only by address; use a name"
            )
        return self._encode_value(key, (path, _Key(key)))


def _is_named_tuple(x: Any) -> bool:
    return isinstance(x, tuple) and type(getattr(x, "_fields", None)) is tuple and len(getattr(x, "_fields", ())) == len(x)


def _factory_name(factory: Any, path: Path) -> str:
    for name, known in _FACTORIES.items():
        if factory is known:
            return name
    raise TypeError(
        f"save: {_format_path(path) or 'the object'} is a defaultdict of {factory!r}; a checkpoint holds no code, only the factories "
        f"{', '.join(_FACTORIES)}: save dict(it)"
    )


def _encode_special(x: Any, path: Path) -> dict[str, Any]:
    """A value for which JSON has no form, as an object with one entry."""
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
        f"save: {_format_path(path) or 'the object'} is a {kind.__name__}; a checkpoint holds tensors, numbers, strings, None, "
        f"and dicts, lists, tuples of these{'; save its state_dict()' if hasattr(x, 'state_dict') else ''}"
    )


# -- reading
def unpack(text: str, tensors: Mapping[str, Tensor]) -> Any:
    """The object that `Packer` packed. Raises ValueError, LookupError, TypeError or RecursionError for a text that it never wrote."""
    first, *containers = _as_list(json.loads(text, parse_constant=_refuse_constant))
    made: dict[int, Any] = {}
    for number, container in enumerate(containers):
        kind = _as_list(container, 1)[0]
        if kind == "defaultdict":
            made[number] = defaultdict(_FACTORIES[container[1]])
        elif kind in _EMPTY:
            made[number] = _EMPTY[kind]()
        elif kind not in _FROZEN:
            raise ValueError(f"unknown kind {reprlib.repr(kind)}")

    def value(x: Any) -> Any:
        return _decode_value(x, made, tensors) if isinstance(x, dict) else _require(x, not isinstance(x, list), "a value")

    depth = _make_frozen(containers, made, value)
    for number, container in enumerate(containers):
        _fill_container(made[number], container, value, depth)
    return value(first)


def _require(x: Any, holds: bool, wanted: str) -> Any:
    """x, where the file is as it should be."""
    if not holds:
        raise ValueError(f"a {type(x).__name__} stands where {wanted} should")
    return x


def _as_list(x: Any, least: int = 0) -> Any:
    return _require(x, isinstance(x, list) and len(x) >= least, f"a list of {least} or more")


def _as_pair(x: Any) -> Any:
    return _require(x, isinstance(x, list) and len(x) == 2, "a pair")


def _as_text(x: Any) -> Any:
    return _require(x, isinstance(x, str), "a string")


def _refuse_constant(text: str) -> Any:
    raise ValueError(f"{text} is no number of JSON")


def _decode_value(x: dict[str, Any], made: dict[int, Any], tensors: Mapping[str, Tensor]) -> Any:
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
        real, imaginary = _as_pair(content)
        return complex(float(real), float(imaginary))
    if kind == "bytes":
        return base64.b64decode(content, validate=True)
    if kind == "numpy":
        name, given = _as_pair(content)
        if name == "str":
            return np.str_(_as_text(given))
        (scalar,) = np.frombuffer(bytes.fromhex(given), _DTYPES[name].numpy)
        return scalar
    if kind == "dtype":
        return _DTYPES[content]
    if kind == "device":
        return device(_as_text(content))
    raise ValueError(f"unknown kind {reprlib.repr(kind)}")


def _make_frozen(containers: list[Any], made: dict[int, Any], value: Callable[[Any], Any]) -> dict[int, int]:
    """Make the immutable containers, each after those that it holds; returns how deep they nest, by number.
    Raises ValueError where one would hold itself."""
    depth: dict[int, int] = {}
    for start in reversed(range(len(containers))):  # written from the outside inwards
        stack, begun = [start], set()
        while stack:
            number = stack[-1]
            if number in made:
                stack.pop()
                continue
            members = _get_members(containers[number])
            inside = [m["at"] for m in members if isinstance(m, dict) and "at" in m]
            if number not in begun:
                begun.add(number)  # before its members: one that needs it again is a circle
                missing = [n for n in inside if n not in made]
                if any(type(n) is not int or not 0 <= n < len(containers) or n in begun for n in missing):
                    raise ValueError(f"container {number} holds one that is not there, or itself")
                stack += missing
                continue
            depth[number] = 1 + max((depth.get(n, 0) for n in inside), default=0)
            if containers[number][0] == "frozenset":
                _check_key_depth(members, depth)
            values = [value(m) for m in members]
            if containers[number][0] == "namedtuple":
                made[number] = tuple.__new__(_named_tuple_class(containers[number], len(values)), values)
            else:
                made[number] = _SEQUENCES[containers[number][0]](values)
    return depth


def _check_key_depth(members: list[Any], depth: dict[int, int]) -> None:
    if any(isinstance(m, dict) and depth.get(m.get("at", -1), 0) > _MAX_KEY_DEPTH for m in members):
        raise ValueError(f"a key is nested more than {_MAX_KEY_DEPTH} deep")


def _get_members(container: list[Any]) -> list[Any]:
    return container[{"namedtuple": 4, "defaultdict": 2, "state_dict": 2}.get(container[0], 1) :]


def _fill_container(made: Any, container: list[Any], value: Callable[[Any], Any], depth: dict[int, int]) -> None:
    members = _get_members(container)
    if isinstance(made, list):
        made.extend(map(value, members))
    elif isinstance(made, set):
        _check_key_depth(members, depth)
        made.update(map(value, members))
    elif isinstance(made, dict):
        _check_key_depth([_as_pair(m)[0] for m in members], depth)
        for key, content in members:
            made[value(key)] = value(content)
        if len(made) != len(members):
            raise ValueError("a key stands twice")
        if container[0] == "state_dict":
            versions = value(container[1])
            made._metadata = _require(versions, isinstance(versions, dict), "a state_dict's versions")  # type: ignore[attr-defined]


def _named_tuple_class(container: list[Any], count: int) -> Any:
    """The named tuple's class where the program has it, else a new one of the same name and fields."""
    module, name = _as_text(container[1]), _as_text(container[2])
    fields = [_as_text(f) for f in _as_list(container[3])]
    if len(fields) != count:
        raise ValueError(f"the named tuple {name} has {len(fields)} fields and {count} values")
    found: Any = provider("return_types") if module == "tritensor.return_types" else sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, "__dict__", {}).get(part)  # not getattr: a module's own __getattr__ would run
    if isinstance(found, type) and issubclass(found, tuple) and getattr(found, "_fields", None) == tuple(fields):
        return found
    return namedtuple(name.rpartition(".")[2], fields)
