"""Doors: how a public function or an op finds the plan of a call, and learns it. A door's own code is written once its function is called often enough."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import CodeType, FunctionType
from typing import Any

from tritensor.dispatch import dispatcher
from tritensor.dispatch.plans.door_code import (
    ABSENT,
    HANDED_ON,
    NUMBER,
    NUMBERS,
    REST,
    CallAgain,
    Form,
    Parameters,
    find_layout,
    first_code,
    public,
    put_code,
    shut_code,
    tensor_classes,
    write_code,
)
from tritensor.dispatch.plans.recorder import Recorder, Step
from tritensor.dispatch.plans.text import write_plan
from tritensor.ground import shortcuts
from tritensor.ground.call_site import wrapper
from tritensor.ground.device import device
from tritensor.ground.dtypes import DType, default_float, when_default_changed
from tritensor.ground.process import locks
from tritensor.ground.thread_state import here
from tritensor.ops.array import device_of, element_strides
from tritensor.ops.replay import when_forgotten
from tritensor.ops.strided_array import empty_meta

OFF = False  # see ground/shortcuts.py
shortcuts.read_by(globals())
BEGIN = 16  # calls of a function before its door is written: short programs pay for none
SEEN_BEFORE = True  # whether a call is planned when it comes for the second time, and not at once
KEPT = 1024  # plans of a door; when there are more, all are dropped and made anew
FRESH = 64  # calls in a row with a key that nobody has seen, after which one call in so many is looked at
LARGE = 1 << 26  # bytes of a tensor with which a call takes longer than its way
NARROWED = 4  # times that a door forgets what a call that raised has taught it
VAIN = 32  # calls in a row that could not be planned, after which a door is shut
_doors: weakref.WeakSet[Door] = weakref.WeakSet()
_learning = locks.lock()


class Door:
    """The door of one function: `long` is the way that a call takes which has no plan, `of` the function whose parameters they are, or these themselves.

    `numbers` are parameters whose numbers reach one op as they are and nothing else. `checks`: whether a call is run once more without values before it is
    planned; of an op alone that is not needed.
    """

    __slots__ = (
        "__weakref__",
        "_refused",
        "_seen",
        "by_float",
        "calls",
        "checks",
        "code",
        "form",
        "fresh",
        "key",
        "long",
        "name",
        "narrowed",
        "numbers",
        "of",
        "parameters",
        "plans",
        "shut",
        "skipped",
        "vain",
    )
    parameters: Parameters
    key: Callable[..., Any]
    by_float: dict[
        DType, tuple[dict[Any, Callable[..., Any]], set[Any], set[Any]]
    ]  # plans, keys seen and refused, by the default floating type
    _seen: set[Any]
    _refused: set[Any]

    def __init__(self, long: Callable[..., Any], of: Any, name: str, numbers: Sequence[str] = (), checks: bool = True) -> None:
        self.long, self.of, self.name, self.numbers, self.checks = long, of, name, numbers, checks
        self.plans: dict[Any, Callable[..., Any]] | None = None  # until the door is written
        self.code: CodeType | None = None
        self.form: Form | None = None
        self.calls = self.vain = self.fresh = self.skipped = self.narrowed = 0
        self.shut = False

    def _begin(self) -> None:
        """Make ready to learn."""
        found = self.of if isinstance(self.of, Parameters) else Parameters.of(self.of)
        if found is None:
            self.shut = True
            return
        self.parameters = found
        self.by_float = {}
        self.take_up()
        _doors.add(self)

    # -- a call
    @wrapper
    def arrive(self, call: FunctionType, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A call by a function whose code is not the door's own yet."""
        if self.shut:
            self._shut_for(call)
        try:
            if not self.shut and not OFF:
                self.calls += 1
                if self.calls > BEGIN:
                    return self.learn(call, args, kwargs)
            return self.long(*args, **kwargs)
        except CallAgain as again:
            return public(call)(*again.given, **again.named)

    def reopen(self, call: FunctionType) -> None:
        """Look at calls again, after so many that were let pass."""
        self.shut, self.vain, self.skipped = False, 0, 0
        with _learning:
            put_code(call, self.code or first_code)

    @wrapper
    def miss(
        self, call: FunctionType, key: Any, args: tuple[Any, ...], kwargs: dict[str, Any], more: tuple[Any, ...], others: dict[str, Any]
    ) -> Any:
        """A call that the door has no plan for; of its arguments some were not given. `key` is what its code has made of them, if anything."""
        if self.shut:
            self._shut_for(call)
        args, kwargs = (*[v for v in args if v is not ABSENT], *more), {n: v for n, v in kwargs.items() if v is not ABSENT} | others
        try:
            if OFF and shortcuts.cease_to_linger():
                raise CallAgain(args, kwargs)
            if OFF or self.shut or (key is not None and self.plans and key in self._refused):
                return self.long(*args, **kwargs)
            return self.learn(call, args, kwargs)
        except CallAgain as again:
            return public(call)(*again.given, **again.named)

    @wrapper
    def learn(self, call: FunctionType, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run a call the long way, and plan it where it was seen before."""
        if self.plans is None:
            with _learning:
                if self.plans is None:
                    self._begin()
            if self.plans is None:
                return self.long(*args, **kwargs)
        if any([type(v) in tensor_classes and not (v._layout or find_layout(v)) for v in args]):
            return self.long(
                *args, **kwargs
            )  # inside a transform: of these calls none is planned, and what they stand for comes here again
        if self.fresh >= FRESH and self.skipped < FRESH:  # given ever new numbers, which are no reason to learn
            self.skipped += 1
            return self.long(*args, **kwargs)
        before = self.form
        key, bound = self._key_of(call, args, kwargs)
        try:
            return self._learn_by_key(call, key, bound, args, kwargs)
        except Exception:
            # what a call is refused for tells nothing of later ones, unless it comes again and again
            if self.form is not before and before is not None and self.narrowed < NARROWED:
                self.narrowed += 1
                with _learning:
                    self._take_form(before)
                    put_code(call, self.code)  # type: ignore[arg-type]
            raise

    @wrapper
    def _learn_by_key(self, call: FunctionType, key: Any, bound: dict[str, Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        assert self.plans is not None
        if key is None or key in self._refused:
            self._note_vain(call)
            return self.long(*args, **kwargs)
        if key not in self._seen and SEEN_BEFORE:
            if len(self._seen) >= KEPT:
                self._seen.clear()
            self._seen.add(key)
            self.fresh, self.skipped = self.fresh + 1, 0
            return self.long(*args, **kwargs)
        self.fresh = 0
        plans, refused = self.plans, self._refused  # no others: they may be dropped meanwhile
        result, plan = self._record(bound, args, kwargs)
        if plan is None:
            if len({id(t) for v in bound.values() for t in _tensors_in(v)}) == sum([len(_tensors_in(v)) for v in bound.values()]):
                refused.add(key)  # with a tensor that is given once it may yet be planned
            self._note_vain(call)
        else:
            if len(plans) >= KEPT:
                plans.clear()
            plans[key] = plan
            self.vain = 0
        return result

    def _key_of(self, call: FunctionType, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        """The key of a call, by the door's code, which takes its arguments from now on, and the arguments by parameter; None where it is not planned."""
        bound = self.parameters.bind(args, kwargs)
        if bound is None or not ((out := bound.get("out")) is None or out is ABSENT):
            return None, {}
        form = Form.of(self.parameters, bound, args, kwargs, self.numbers)
        given = [t for v in bound.values() for t in _tensors_in(v)]
        # A view that has yet to find its node; memory of which a call that is learnt would hold more than one that is not.
        if form is None or any([hasattr(type(t), "becomes") or t._array.nbytes > LARGE for t in given]):
            return None, {}
        self._widen(call, form)
        try:
            key = self.key(*args, **kwargs)
            hash(key)
        except TypeError:  # an argument that cannot be hashed
            return None, {}
        return None if _has_no_layout(key) else key, bound

    def _note_vain(self, call: FunctionType) -> None:
        """One more call that cannot be planned: too many in a row, and the door is shut."""
        self.vain += 1
        if self.vain >= VAIN and not self.plans:
            self.shut, self.skipped = True, 0
            self._shut_for(call)

    def _shut_for(self, call: FunctionType) -> None:
        """Let a function count the calls that pass: the one by which the door was shut, and one of another name when it is called next."""
        with _learning:
            put_code(call, shut_code(self.name))

    # -- learning
    @wrapper
    def _record(self, bound: dict[str, Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Callable[..., Any] | None]:
        """The result of a call, and its plan."""
        assert self.form is not None
        kinds = self.form.kinds
        given = [(n, bound.get(n, ABSENT)) for n in kinds if kinds[n] in HANDED_ON]
        found = [t for n in kinds for t in _tensors_in(bound.get(n))]
        places = {id(v): i for i, (n, v) in enumerate(given) if kinds[n] == NUMBER and type(v) in NUMBERS}
        with _recording(found, places) as recorder:
            result = self.long(*args, **kwargs)
        form = recorder.finish(result)
        steps: list[Step] | None = recorder.steps
        if recorder.spoiled:
            return result, None
        # Without tensors there are no values to look at; where one was given twice, later calls have two.
        if (self.checks and found) or len(recorder.registers) < len(recorder.held):
            steps, form = self._without_values(recorder, form, bound, kwargs, places)
        what = _places_of(given)
        return result, None if steps is None or what is None else write_plan(steps, what, form, len(found))

    @wrapper
    def _without_values(
        self, recorder: Recorder, form: Any, bound: dict[str, Any], kwargs: dict[str, Any], places: dict[int, int]
    ) -> tuple[list[Step] | None, Any]:
        """The steps and the form of the result once more, of tensors on device meta, each an object of its own; None where they are not the same."""
        fresh: list[Any] = []
        devices = {device_of(t._array) for t in recorder.held[: len(recorder.before)]}
        on = devices.pop() if len(devices) == 1 else None
        bare = {n: _replaced(v, fresh, on) for n, v in bound.items()}
        args = (*[bare[n] for n in self.parameters.by_place if n in bare and n not in kwargs], *bare.get(self.parameters.rest or "", ()))
        kwargs = {n: bare[n] for n in kwargs}
        try:
            with _recording(fresh, places) as other:
                result = self.long(*args, **kwargs)
            other_form = other.finish(result)
        except Exception:  # whatever it says: it asks for what is not there, and is not planned
            return None, None
        firsts = [recorder.registers[id(t)] for t in recorder.held]
        if other.spoiled or len(other.steps) != len(recorder.steps) or not _same_form(form, other_form, firsts):
            return None, None
        if not all([a.same(b, firsts) for a, b in zip(recorder.steps, other.steps, strict=True)]):
            return None, None
        return [a._replace(inputs=b.inputs) for a, b in zip(recorder.steps, other.steps, strict=True)], other_form

    # -- the door's code
    def _widen(self, call: FunctionType, form: Form) -> None:
        """Let the door's code take calls of this form, too, and the function have it."""
        with _learning:
            joined = form if self.form is None else self.form.joined(form, self.parameters)
            if joined != self.form or self.code is None:
                self._take_form(joined)
            put_code(call, self.code)  # type: ignore[arg-type]

    def _take_form(self, form: Form) -> None:
        """Write the code for a form anew; the lock is held."""
        self.form = form
        self.forget()
        self.code, self.key = write_code(self.name, self.parameters, form)

    def forget(self) -> None:
        """Drop all plans: something that calls depend on has changed. A shut door looks at its next call again."""
        self.by_float.clear()
        self.take_up()
        self.fresh, self.skipped = 0, REST

    def take_up(self) -> None:
        """Have the plans that were made under the default floating type of now."""
        self.plans, self._seen, self._refused = self.by_float.setdefault(default_float(), ({}, set(), set()))


@contextmanager
def _recording(found: Sequence[Any], places: dict[int, int]) -> Iterator[Recorder]:
    """Inside, this thread's ops are written down, and every call goes the long way."""
    recorder = Recorder(found, places)
    before = here.noting
    shortcuts.turn("learning", 1)
    here.noting = recorder
    try:
        yield recorder
    finally:
        here.noting = before
        shortcuts.turn("learning", -1)


def _tensors_in(value: Any) -> list[Any]:
    """A tensor, or those in a list, as often as they stand there."""
    if isinstance(value, dispatcher._Tensor):
        return [value]
    return [t for v in value for t in _tensors_in(v)] if type(value) in (tuple, list) else []


def _replaced(value: Any, fresh: list[Any], on: device | None) -> Any:
    """A value with new tensors on device meta in place of those in it, which are appended to `fresh`, and meta for `on`, the device of them all."""
    if isinstance(value, dispatcher._Tensor):
        array = value._array
        made = dispatcher._new(empty_meta(tuple(array.shape), array.dtype, element_strides(array)))
        made._tracked = bool(value._tracked)
        fresh.append(made)
        return made
    if type(value) in (tuple, list):
        return type(value)([_replaced(v, fresh, on) for v in value])
    if value is None or on is None:
        return value
    return device("meta") if type(value) is device and value == on else "meta" if type(value) is str and value == str(on) else value


def _places_of(given: Sequence[tuple[str, Any]]) -> list[Any] | None:
    """What a plan is given, as registers of tensors; None where tensors stand deeper than in a list of theirs alone."""
    what: list[Any] = []
    at = 0
    for _, v in given:
        inside = _tensors_in(v)
        if inside and inside[0] is v:
            what.append(at)
        elif inside:
            if len(inside) != len(v):
                return None
            what.append(tuple(range(at, at + len(inside))))
        else:
            what.append(None)
        at += len(inside)
    return what


def _has_no_layout(key: tuple[Any, ...]) -> bool:
    """Whether a tensor of a key has no layout by which it could be told: inside a transform, on device meta."""
    return any([v is None or (type(v) is tuple and None in v[::2]) for v in key[1::2]])


def _same_form(a: Any, b: Any, firsts: Sequence[int]) -> bool:
    """Whether a result is made of the same registers, where some of the second recording stand for one of the first."""
    first = lambda r: firsts[r] if r < len(firsts) else r  # noqa: E731
    if isinstance(a, int) or isinstance(b, int):
        return isinstance(a, int) and isinstance(b, int) and a == first(b)
    return a[0] is b[0] and list(a[1]) == [first(r) for r in b[1]]


def forget() -> None:
    """Drop all plans: something that calls depend on has changed."""
    for door in tuple(_doors):
        door.forget()


def _take_up() -> None:
    for door in tuple(_doors):
        door.take_up()


when_forgotten.append(forget)
when_default_changed.append(_take_up)
