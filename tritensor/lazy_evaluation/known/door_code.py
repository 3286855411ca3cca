"""Code of public functions once there are lazy regions: a look at the record that comes next, then what they did before."""

from __future__ import annotations

from types import CodeType, FunctionType
from typing import Any

from tritensor.autograd.modes import state
from tritensor.dispatch.plans.door_code import ABSENT, Parameters, copy_function, door_functions, own_codes, when_opened
from tritensor.ground.call_site import INSIDE, mark_wrapper, wrapper
from tritensor.ground.process import locks
from tritensor.ground.thread_state import here
from tritensor.tensor.aliasing import basic_indexing
from tritensor.tensor.core import Tensor

_lock = locks.lock()
_installed = False
_LONG, _SELF = "the long way", "the function"
# identity tells most arguments; numbers, slices and words are compared where they are not the same objects
_SAME = "({v} is r.{p}.t or (type__({v}) is r.{p}.kind and r.{p}.same == {v}))"
_BODY = """
def outer({free}):
    def call({parameters}):
        me, cursor = {me!r}, here__.cursor
        r = cursor.at
        try:
            if r.call is me and {same} and r.enabled is state__.enabled{rest}:
                cursor.at = r.next
                return r.out.t
        except Exception__:
            pass  # an argument that cannot be compared: the long way says what is wrong
        return arrive__(me, {long!r}, {given}, {named})
        ({free})
    return call
"""


@wrapper
def arrive(call: Any, long: Any, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """A call that the record at hand does not tell."""
    count = len(args)
    while count and args[count - 1] is ABSENT:
        count -= 1
    if here.segment is None:
        return long(*args[:count], **named)
    return here.cursor.arrive(call, long, args[:count], named)


# as doors' own names: with two underscores at the end, which no parameter has
_names: dict[str, Any] = {
    "here__": here, "state__": state, "arrive__": arrive, "Exception__": Exception, "type__": type, "ABSENT": ABSENT, "__name__": __name__,
}  # fmt: skip


def install() -> None:
    """Let every public function look at records from now on. Done once, when the first region opens."""
    global _installed
    if _installed:
        return
    with _lock:
        if _installed:
            return
        taken = "a=ABSENT, b=ABSENT, c=ABSENT, /, *more, **named"
        doors = _template("call_, door_", taken, {p: p for p in "abc"}, " and not more and r.named == named", "(a, b, c, *more)", "named")

        operators = [
            _template("call_, door_", "self, /", {"self": "a"}, "", "(self,)", "{}"),
            _template("call_, door_", "self, other, /", {"self": "a", "other": "b"}, "", "(self, other)", "{}"),
        ]

        def put(f: FunctionType) -> None:
            if f.__code__ in own_codes:
                taken = _door(f).of
                if isinstance(taken, Parameters) and taken.exact:
                    _put(f, operators[len(taken.by_place) - 1], ())
                else:
                    _put(f, doors, (ABSENT,) * 3)

        when_opened.append(put)  # first, so that a door which another thread opens now is not missed
        for f in list(door_functions):
            put(f)
        named = "{'plain_only': True} if plain_only else {}"
        _put(
            basic_indexing.getitem,
            _template("", "self, index, plain_only=False", {"self": "a", "index": "b"}, " and not plain_only", "(self, index)", named),
            (False,),
        )
        _put(Tensor.detach, _template("", "self", {"self": "a"}, "", "(self,)", "{}"), ())
        told = "gradient, retain_graph, create_graph, inputs"  # by these names, too
        backward = _template("", f"self, {told}".replace(",", "=None,") + "=None", {}, "", f"(self, {told})", "{}")
        _put(Tensor.backward, backward, (None, None, False, None))
        _installed = True


def _door(f: FunctionType) -> Any:
    return dict(zip(f.__code__.co_freevars, f.__closure__ or (), strict=True))["door_"].cell_contents


def _template(free: str, parameters: str, places: dict[str, str], rest: str, given: str, named: str) -> CodeType:
    """The code of a function of these parameters; places: of those that a record's places `a`, `b`, `c` tell which."""
    same = " and ".join([_SAME.format(v=v, p=p) for v, p in places.items()]) or "False"
    text = _BODY.format(free=free, parameters=parameters, me=_SELF, long=_LONG, same=same, rest=rest, given=given, named=named)
    space: dict[str, Any] = {}
    exec(compile(text, f"{INSIDE}lazy_evaluation/known/<function>", "exec"), _names, space)
    outer = space["outer"]
    code: CodeType = outer(*[None] * outer.__code__.co_argcount).__code__
    return code


def _put(f: Any, template: CodeType, defaults: tuple[Any, ...]) -> None:
    """Give a function this code, which calls a twin with the code of before."""
    long = copy_function(f)
    long.__dict__["public"] = f
    old = f.__code__
    constants = tuple([long if c == _LONG else f if c == _SELF else c for c in template.co_consts])
    code = template.replace(
        co_consts=constants, co_name=old.co_name, co_qualname=old.co_qualname, co_filename=old.co_filename, co_firstlineno=old.co_firstlineno,
    )  # fmt: skip
    f.__globals__.update({name: v for name, v in _names.items() if name.endswith("__") and name != "__name__"})
    f.__code__ = mark_wrapper(code)
    f.__defaults__, f.__kwdefaults__ = defaults or None, None
