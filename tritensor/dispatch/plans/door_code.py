"""Code of doors: for the kinds of arguments that a function is given, the lines that make a call's key and look its plan up. A tensor counts by its layout and
by whether it requires grad, everything else by type and value."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from types import CellType, CodeType, FunctionType
from typing import Any

import numpy as np

from tritensor.autograd.modes import state
from tritensor.dispatch import dispatcher
from tritensor.ground import dtypes, shortcuts
from tritensor.ground.call_site import INSIDE, mark_wrapper
from tritensor.ground.device import device
from tritensor.ground.strides import MemoryFormat
from tritensor.ops.array import layout_of
from tritensor.ops.lazy_array import LazyArray


class _Absent:
    """What stands for an argument that was not given."""

    def __repr__(self) -> str:
        return "not given"


class CallAgain(Exception):
    """What the long way raises that has mended its arguments: the function is to be called with these, whatever it is by now."""

    def __init__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        super().__init__()
        self.given, self.named = args, kwargs


def public(call: FunctionType) -> FunctionType:
    """The function that programs call: this one, or that which it does the work of (see lazy_evaluation/known/door_code.py)."""
    found: FunctionType = call.__dict__.get("public", call)
    return found


ABSENT: Any = _Absent()
REST = 4096  # calls that a shut door lets pass before it looks again
NUMBERS = frozenset((int, float))
_LONG = 16  # items of a list that stand in a key
# Types of values that stand in a key as they are: equal ones of one type mean the same. Floats do not: 0.0 and -0.0 are equal.
_ATOMS: set[type] = {int, bool, type(None), str, dtypes.DType, device, MemoryFormat, type, type(Ellipsis), _Absent}
note_atom = _ATOMS.add
tensor_classes: set[type] = set()  # classes of tensors that have been here

# Kinds of arguments, by which the code differs.
TENSOR, OPTIONAL, NUMBER, ATOM, FLOAT, DIMS, TENSORS, GENERAL, MISSING, SIZES = range(10)
HANDED_ON = frozenset((TENSOR, OPTIONAL, NUMBER, TENSORS, GENERAL))  # what a plan is given; of the rest the key says all
_JOINED = {
    frozenset((a, b)): joined
    for joined, pairs in {
        OPTIONAL: (
            (MISSING, TENSOR),
            (ATOM, TENSOR),
            (FLOAT, TENSOR),
            (OPTIONAL, TENSOR),
            (OPTIONAL, ATOM),
            (OPTIONAL, FLOAT),
            (OPTIONAL, MISSING),
        ),
        NUMBER: ((NUMBER, TENSOR),),
        ATOM: ((MISSING, ATOM),),
        FLOAT: ((ATOM, FLOAT), (MISSING, FLOAT)),
        DIMS: ((ATOM, DIMS), (FLOAT, DIMS), (MISSING, DIMS)),
    }.items()
    for a, b in pairs
}
# How an argument stands in a key: always as a pair. What a pair cannot tell is told by none that is kept: a door may miss a plan, and never takes a wrong one.
_PAIRS = {
    TENSOR: "{p}._layout or find__({p}), {p}._tracked",
    ATOM: "type__({p}), {p}",
    FLOAT: "type__({p}), {p} or str__({p})",
    DIMS: "type__({p}), (*{p}, types__({p})) if type__({p}) is tuple__ or type__({p}) is list__ else {p} or str__({p})",
    TENSORS: "type__({p}), layouts__({p})",
    OPTIONAL: "{p}_0, {p}_1",
    NUMBER: "{p}_0, {p}_1",
    GENERAL: "{p}_0, {p}_1",
    SIZES: "{p}_0, {p}_1",
}
_BEFORE = {
    OPTIONAL: (
        "if type__({p}) in tensors__:", "    {p}_0, {p}_1 = {p}._layout or find__({p}), {p}._tracked",
        "else:", "    {p}_0, {p}_1 = type__({p}), {p} or str__({p})",
    ),
    NUMBER: (
        "if type__({p}) in numbers__:", "    {p}_0 = {p}_1 = type__({p})",
        "else:", "    {p}_0, {p}_1 = {p}._layout or find__({p}), {p}._tracked",
    ),
    GENERAL: ("{p}_0, {p}_1 = pair__({p})",),
    # of `*p`, which is given atoms, or one sequence of them
    SIZES: (
        "if len__({p}) == 2:", "    {p}_0, {p}_1 = {p}, (type__({p}[0]), type__({p}[1]))",
        "elif len__({p}) == 1:", "    {p}_0, {p}_1 = pair__({p}[0])",
        "else:", "    {p}_0, {p}_1 = {p}, types__({p})",
    ),
}  # fmt: skip


def find_layout(x: Any) -> Any:
    """A tensor's layout, kept with it; None where calls with it are not planned."""
    if type(x._array) is LazyArray and not x._array.pending:
        x._array = x._array.settled()
    found = x._layout = layout_of(x._array)
    return found


def _types_of(values: Sequence[Any]) -> tuple[type, ...]:
    """The type of each, for the few that there are in a fraction of map's time."""
    count = len(values)
    if count == 2:
        a, b = values
        return type(a), type(b)
    if count == 1:
        return (type(values[0]),)
    if count == 3:
        a, b, c = values
        return type(a), type(b), type(c)
    return tuple([type(v) for v in values])


def _layouts_of(tensors: Sequence[Any]) -> tuple[Any, ...]:
    """How several tensors stand in a key: the layout of each, and whether it requires grad."""
    if len(tensors) == 2:
        a, b = tensors
        return a._layout or find_layout(a), a._tracked, b._layout or find_layout(b), b._tracked
    return tuple([part for t in tensors for part in (t._layout or find_layout(t), t._tracked)])


def _pair(value: Any) -> tuple[Any, Any]:
    """Any value as it stands in a key."""
    kind = type(value)
    if kind in tensor_classes:
        return value._layout or find_layout(value), value._tracked
    if kind is tuple or kind is list:
        types = _types_of(value)
        return kind, (*value, types) if _ATOMS.issuperset(types) else tuple([_pair(v) for v in value])
    return kind, value or str(value)


def kind_of(value: Any, number: bool = False) -> int | None:
    """What an argument is; None for what calls are not planned with."""
    kind = type(value)
    if isinstance(value, dispatcher._Tensor):
        tensor_classes.add(kind)
        return TENSOR
    if value is ABSENT:
        return MISSING
    if number and kind in NUMBERS:
        return NUMBER
    if kind is float:
        return FLOAT if value == value else None  # NaN is equal to no key
    if kind in _ATOMS:
        return (
            None if value == "cuda" or (kind is device and value.type == "cuda" and value.index is None) else ATOM
        )  # which GPU, a thread's setting says
    if isinstance(value, np.dtype):
        return ATOM
    if (kind is tuple or kind is list) and len(value) <= _LONG:
        return _kind_of_items(value, DIMS)
    return None


def _kind_of_items(values: Sequence[Any], atoms: int) -> int | None:
    within = {kind_of(v) for v in values}
    return None if None in within else atoms if within <= {ATOM} else TENSORS if within == {TENSOR} else GENERAL


def _kind_of_rest(values: tuple[Any, ...]) -> int | None:
    """The kind of what `*p` gathers."""
    if len(values) == 1 and kind_of(values[0]) in (ATOM, DIMS):
        return SIZES
    found = _kind_of_items(values, ATOM)
    return SIZES if found == ATOM else found


def _join_kinds(a: int, b: int) -> int:
    """The kind of a parameter that is given both."""
    return a if a == b else _JOINED.get(frozenset((a, b)), GENERAL)


class Parameters:
    """The parameters of a function as its door needs them: those by place, the one that takes any number, those by name alone. `exact`: whether Python itself
    gives all of them by place, as to an operator."""

    def __init__(self, by_place: Sequence[str], rest: str | None, by_name: Sequence[str], exact: bool = False) -> None:
        self.by_place, self.rest, self.by_name, self.exact = tuple(by_place), rest, tuple(by_name), exact

    @classmethod
    def of(cls, f: Callable[..., Any]) -> Parameters | None:
        """Those of a function of Python, and `out`, which a public one may have beside them; None where it takes any keywords."""
        code: CodeType = f.__code__
        n, names = code.co_argcount, code.co_varnames
        at = n + code.co_kwonlyargcount
        if code.co_flags & 0x08:
            return None
        return cls(names[:n], names[at] if code.co_flags & 0x04 else None, [*names[n:at], *([] if "out" in names[:at] else ["out"])])

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any] | None:
        """The arguments of a call by parameter, as they are ordered here; None where they do not fit."""
        n = len(self.by_place)
        if len(args) > n and self.rest is None:
            return None
        bound = dict(zip(self.by_place, args, strict=False))
        known = {*self.by_place, *self.by_name}
        if any([name not in known or name in bound for name in kwargs]):
            return None
        order = [*self.by_place, *([self.rest] if self.rest else []), *self.by_name]
        bound |= {self.rest: args[n:]} | kwargs if self.rest else kwargs
        return {name: bound[name] for name in order if name in bound}


class Form:
    """What a door's code is written for: how many arguments by place there have been, which by name, and the kinds of all of them."""

    def __init__(self, places: int, named: tuple[str, ...], kinds: dict[str, int]) -> None:
        self.places, self.named, self.kinds = places, named, kinds

    @classmethod
    def of(
        cls, parameters: Parameters, bound: dict[str, Any], args: tuple[Any, ...], kwargs: dict[str, Any], numbers: Sequence[str]
    ) -> Form | None:
        """The form of one call; None where it is not planned."""
        found = {n: _kind_of_rest(v) if n == parameters.rest else kind_of(v, n in numbers) for n, v in bound.items()}
        if None in found.values():
            return None
        return cls(min(len(args), len(parameters.by_place)), tuple(sorted(kwargs)), found)  # type: ignore[arg-type]

    def joined(self, other: Form, parameters: Parameters) -> Form:
        """The form that takes the calls of both."""
        kinds = {}
        for n in (*parameters.by_place, *([parameters.rest] if parameters.rest else ()), *parameters.by_name):
            if n in self.kinds or n in other.kinds:
                kinds[n] = _join_kinds(self.kinds.get(n, MISSING), other.kinds.get(n, MISSING))
        return Form(max(self.places, other.places), tuple(sorted({*self.named, *other.named})), kinds)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Form) and (self.places, self.named, self.kinds) == (other.places, other.named, other.kinds)

    __hash__ = None  # type: ignore[assignment]


_FILE = f"{INSIDE}dispatch/plans/<door>"
_names: dict[str, Any] = {  # with two underscores at the end: no parameter is called so
    "__name__": __name__, "state__": state, "find__": find_layout, "pair__": _pair, "tensors__": tensor_classes, "numbers__": NUMBERS, "ABSENT": ABSENT,
    "CallAgain": CallAgain, "public__": public,
    "types__": _types_of, "layouts__": _layouts_of, "type__": type, "len__": len, "tuple__": tuple, "list__": list, "str__": str, "Exception": Exception,
}  # fmt: skip
shortcuts.read_by(_names)
own_codes: set[CodeType] = set()  # of doors
door_functions: list[FunctionType] = []  # all functions that are doors
when_opened: list[Any] = []  # called with every new one


def write_code(name: str, parameters: Parameters, form: Form) -> tuple[CodeType, Callable[..., Any]]:
    """The code of a door for calls of a form, and a function that gives the key of one. What is given otherwise lands in `*more_` and `**others_`."""
    rest = parameters.rest
    places = parameters.by_place[: form.places]
    signature = (
        [f"{n}_p=ABSENT" for n in places]
        + ["/"] * bool(places)
        + ([] if parameters.exact else [f"*{rest or 'more_'}", *[f"{n}=ABSENT" for n in form.named], "**others_"])
    )
    before, value = [], {}
    for n in form.kinds:
        value[n] = n if n == rest or n not in places else f"{n}_p"
        if n in places and n in form.named:
            before += [
                f"if {n}_p is ABSENT:",
                f"    {n}_v = {n}",
                f"elif {n} is ABSENT:",
                f"    {n}_v = {n}_p",
                "else:",
                "    raise TypeError",
            ]
            value[n] = f"{n}_v"
    before += [line.format(p=value[n]) for n, kind in form.kinds.items() for line in _BEFORE.get(kind, ())]
    pairs = [_PAIRS[kind].format(p=value[n]) for n, kind in form.kinds.items()]
    key = f"({', '.join(['state__.enabled', *pairs])},)"
    given = "".join([f"{n}_p, " for n in places])
    named = ", ".join([f"{n!r}: {n}" for n in form.named])
    off = "OFF" if parameters.exact else f"(OFF or others_{'' if rest else ' or more_'})"
    others = "(), {}" if parameters.exact else f"{rest or 'more_'}, others_"
    head = f"({', '.join(signature)}):"
    lines = [
        "def outer(call_, door_):",
        f"  def door__{head}",
        "    found_ = None",
        f"    if not {off}:",
        "      try:",
        *[f"        {line}" for line in before],
        f"        found_ = {key}",
        "        plan_ = door_.plans.get(found_)",
        "        if plan_ is not None:",
        f"          return plan_({', '.join([value[n] for n, kind in form.kinds.items() if kind in HANDED_ON])})",
        "      except Exception:  # the long way says what is wrong",
        "        found_ = None",
        f"    return door_.miss(call_, found_, ({given}), {{{named}}}, {others})",
        f"  def key__{head}",
        *[f"    {line}" for line in before],
        f"    return {key}",
        "  return key__",
    ]
    outer = _run(lines)
    return _code_within(outer, name), outer(None, None)


@functools.cache  # doors that overriding has taken over ask at each call
def shut_code(name: str) -> CodeType:
    """The code of a door that is shut."""
    return _code_within(
        _run(
            [
                "def outer(call_, door_):",
                "  def door__(*args, **kwargs):",
                "    door_.skipped += 1",
                f"    if door_.skipped >= {REST}: door_.reopen(call_)",
                "    try: return door_.long(*args, **kwargs)",
                "    except CallAgain as again: return public__(call_)(*again.given, **again.named)",
            ]
        ),
        name,
    )


def _run(lines: Sequence[str]) -> Any:
    space: dict[str, Any] = {}
    exec(compile("\n".join(lines), _FILE, "exec"), _names, space)
    return space["outer"]


def _code_within(outer: Any, name: str) -> CodeType:
    code: CodeType = next(c for c in outer.__code__.co_consts if isinstance(c, CodeType) and c.co_name == "door__")
    code = code.replace(co_name=name, co_qualname=name)
    own_codes.add(code)
    return mark_wrapper(code)


first_code = _code_within(
    _run(["def outer(call_, door_):", "  def door__(*args, **kwargs):", "    return door_.arrive(call_, args, kwargs)"]), "call"
)


def open_door(door: Any) -> Any:
    """The function that a door is: what programs call."""

    call_ = FunctionType(first_code, _names, "call", None, (CellType(), CellType(door)))
    call_.__closure__[0].cell_contents = call_  # type: ignore[index]
    door_functions.append(call_)
    for tell in when_opened:
        tell(call_)
    return call_


def copy_function(f: FunctionType) -> FunctionType:
    """Another function object with the code and the cells of one; a door's is put its code by itself."""
    cells, free = list(f.__closure__ or ()), f.__code__.co_freevars
    if "call_" in free:
        cells[free.index("call_")] = CellType()
    made = FunctionType(f.__code__, f.__globals__, f.__name__, f.__defaults__, tuple(cells))
    if "call_" in free:
        cells[free.index("call_")].cell_contents = made
        door_functions.append(made)
    made.__dict__.update(f.__dict__)
    made.__kwdefaults__, made.__doc__, made.__annotations__ = f.__kwdefaults__, f.__doc__, f.__annotations__
    made.__module__, made.__qualname__ = f.__module__, f.__qualname__
    return made


def put_code(call: FunctionType, code: CodeType) -> None:
    """Let a door's function have other code; not where something else has taken its place meanwhile, as overriding does."""
    if call.__code__ in own_codes and call.__code__ is not code:
        by_place, by_name = code.co_argcount, code.co_kwonlyargcount
        if by_place or by_name:
            call.__defaults__ = (ABSENT,) * by_place
            call.__kwdefaults__ = dict.fromkeys(code.co_varnames[by_place : by_place + by_name], ABSENT)
        call.__code__ = code
