"""Replay: the second call of a corner with the same layouts runs no Python of the corner, only its allocations and launches.

On device cuda a forward or backward corner is a function of the layouts of its arrays (shape, strides, dtype, device, address
modulo 16) and of its other arguments: the values in memory can only be seen by kernels. So the first call with a given key is
recorded: what it allocates, what it launches, what it returns. Later calls with that key replay the recording. A corner that reads
or writes device memory from the host is not such a function; it is noticed while it is recorded, and always runs as it is.

What a corner must not do: depend on a global setting without `forget()` being called when the setting changes; put an address
into an integer argument, but by `address_of`; keep device memory of its own between calls.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tritensor.cuda.runtime import active
from tritensor.ground import device_errors, dtypes
from tritensor.ground.errors import LaunchError
from tritensor.ground.thread_state import here
from tritensor.ops.array import CudaArray
from tritensor.ops.replay.recorder import NotThere, Recorder, match_numbers, runtime_recording
from tritensor.ops.replay.replayed_numbers import (
    ENCODERS,
    SEED_KINDS,
    ReplayedNumber,
    another_seed,
    other_numbers,
    own,
    replayed_number,
    seed_numbers,
)

KEPT = 1024  # recordings of a corner; when there are more, all are dropped and recorded anew
# Recordings that differ in numbers only. A corner that sees more is given ever new ones: it gets a recording for any, or none.
VARIANTS = 16
_LARGE = 1e30  # a number is found among arguments by a second run with a larger one, which must be finite in float32


def _build_recording(recorder: Recorder, result: Any) -> Callable[[Sequence[CudaArray]], Any] | None:
    """The leanest recording that the runtime in use allows; the recorder may be spoilt on the way."""
    runtime = active.runtime()
    if hasattr(runtime, "kernels"):
        from tritensor.ops.replay.driver_recordings import (
            driver_recording,  # needs cuda-python, which a process without a GPU does not load
        )

        return driver_recording(runtime, recorder, result)
    return runtime_recording(recorder, result)


def unwrap_corner(corner: Any) -> Any:
    """The function inside a corner (an op made from another op's corners records its own calls); anything else as it is."""
    return corner.function if isinstance(corner, Corner) else corner


_corners: weakref.WeakSet[Corner] = weakref.WeakSet()
_enabled = True


class Corner:
    """A forward or backward corner of an op, called as it is; `known` holds its recordings by key.

    The key of a call is the tuple of its arguments: a Layout for an array, (type, value) for anything else (never None, which is what
    an array has whose layout nobody asked for); then the attributes' names and values, if there are any; then the site for an op that
    reports errors from its kernels.
    """

    __slots__ = (
        "__weakref__", "_refused", "_tried", "draws", "function", "mutates", "name", "of_any_numbers", "one_type", "recordings", "reports", "uniform",
        "unrecorded",
    )  # fmt: skip

    def __init__(
        self, function: Callable[..., Any], name: str = "", *,
        draws: tuple[int, ...] | None = None, mutates: bool = False, reports: bool = False, one_type: bool = False,
    ) -> None:  # fmt: skip
        self.function = function
        self.name = name  # "add forward", for error messages
        # Random numbers, new ones at each call: where seed and offset stand among the arguments, () for attributes. None: draws nothing.
        self.draws = draws
        self.mutates = mutates
        self.reports = reports
        self.one_type = one_type  # arrays of several types are cast before they come here; dispatch takes `known` to hold no such call
        self.uniform = getattr(function, "uniform", False)  # Python numbers among its arguments only reach the kernel as they are
        self.recordings: dict[Any, Any] = {}
        self.of_any_numbers: dict[Any, tuple[Any, list[Any]]] = {}  # recordings for any numbers, and the types that kernels take these as
        self._refused: set[Any] = set()  # keys of calls that cannot be replayed
        self.unrecorded = ""  # why the last of them cannot
        self._tried: dict[Any, int] = {}  # keys recorded for the same layouts
        _corners.add(self)

    def __call__(self, *args: Any, **attrs: Any) -> Any:
        if not attrs:  # most calls: arrays only, with layouts that are known
            try:
                recording = self.recordings.get(tuple([a.known_layout for a in args]))
            # an argument that is no array: `find` makes the key
            except AttributeError:
                recording = None
            if recording is not None and not self.mutates and here.recorder is None:
                return recording(args)
        recording, key, arrays = self.find(args, attrs)
        return recording(arrays) if recording is not None else self.run_first(key, arrays, args, attrs)

    def find(self, args: Sequence[Any], attrs: dict[str, Any]) -> tuple[Any, Any, list[CudaArray]]:
        """(recording, key, arrays) of a call: the recording to give the arrays to, or None; then `first` runs the corner, and may be given the key.

        A call that has a recording has passed the op's shape rule before.
        """
        arrays: list[Any] = []
        # a corner that another one calls is part of that one's recording
        if here.recorder is not None:
            return None, None, arrays
        replayed: Sequence[ReplayedNumber] = []
        if self.draws is not None:
            args, attrs, replayed = self._split_seed(args, attrs)
            if not replayed:
                return None, None, arrays
        key = self._call_key(args, attrs, arrays)
        if key is None:
            return None, None, arrays
        try:
            recording = self.recordings.get(key)
        except TypeError:  # an argument that cannot be hashed
            return None, None, arrays
        # the key does not tell that they overlap, and what is written would be read
        if self.mutates and _share_storage(arrays):
            recording = None
        elif recording is None and self.of_any_numbers:
            recording, replayed = self._find_for_any_numbers(key, args)
        return recording, key, [*arrays, *replayed] if replayed else arrays

    def _find_for_any_numbers(self, key: tuple[Any, ...], args: Sequence[Any]) -> tuple[Any, list[ReplayedNumber]]:
        """The recording that takes a call's numbers as replayed ones, and these; or None."""
        found = self.of_any_numbers.get(_without_numbers(key))
        if found is None:
            return None, []
        recording, kinds = found
        return recording, [replayed_number(n, kind) for n, kind in zip(_python_numbers(args), kinds, strict=True)]

    def _split_seed(self, args: Sequence[Any], attrs: dict[str, Any]) -> tuple[Sequence[Any], dict[str, Any], Sequence[ReplayedNumber]]:
        """A call's arguments without seed and offset, and these two as replayed numbers; none in a graph's capture, where a draw is no number."""
        if self.draws:
            i, j = self.draws
            seed, offset = args[i], args[j]
            args = [a for k, a in enumerate(args) if k != i and k != j]
        else:
            seed, offset = attrs["seed"], attrs["offset"]
            attrs = {k: v for k, v in attrs.items() if k != "seed" and k != "offset"}
        return args, attrs, seed_numbers(seed, offset) if type(seed) is int and type(offset) is int else []

    def run_first(self, key: Any, arrays: list[Any], args: Sequence[Any], attrs: dict[str, Any]) -> Any:
        """Run the corner for a call that `find` knew no recording for, and record it where that is possible."""
        before, here.doing, here.config = here.doing, here.doing or self.name, ""
        try:
            if key is None or not _enabled:
                return self.function(*args, **attrs)
            if self._should_record(key, arrays):
                return self._record_call(key, arrays, args, attrs)
            if self.uniform and self._should_record_any_numbers(key, arrays, args):
                return self._record_any_numbers(_without_numbers(key), arrays, args, attrs)
            return self.function(*args, **attrs)
        except LaunchError as error:
            if here.config:
                error.add_note(
                    f"The config is that of {here.config}; remove the line or tune anew. TRITENSOR_TUNED= (empty) does without tuned files."
                )
            raise
        finally:
            here.doing = before

    def _call_key(self, args: Sequence[Any], attrs: dict[str, Any], arrays: list[CudaArray]) -> tuple[Any, ...] | None:
        """The key of a call, None where it must not be replayed; its arrays are appended to `arrays`, `out` last where it is no input."""
        parts: list[Any] = []
        for a in args:
            if type(a) is CudaArray:
                arrays.append(a)
                parts.append(a.known_layout or a.layout())
            else:
                parts.append(_ABSENT if a is None else _key_part(a, arrays))
        if attrs:
            if "out" in attrs:
                attrs = dict(attrs)
                part = _key_part_of_out(attrs.pop("out"), arrays)
                if part is None:
                    return None
                parts.append(part)
            parts.append(attributes_part(attrs))
        if self.reports:
            parts.append(device_errors.current_site())
        return tuple(parts)

    def _should_record(self, key: tuple[Any, ...], arrays: list[Any]) -> bool:
        """True where a call is to be recorded: not one that was refused, nor the n-th with new numbers, nor one that writes overlapping memory."""
        if key in self._refused or (self.mutates and (self.draws is not None or _share_storage(arrays))):
            return False
        arrays = [x for x in arrays if type(x) is CudaArray]
        if self.one_type and len({x.dtype for x in arrays}) > 1:
            return False
        # keys of refused calls count, too: shapes that vary without end would pile them up
        if len(self.recordings) >= KEPT or len(self._tried) >= KEPT or len(self._refused) >= KEPT:
            self.forget()
        form = _layouts_of(arrays)
        tried = self._tried[form] = self._tried.get(form, 0) + 1
        return tried <= VARIANTS

    def _should_record_any_numbers(self, key: tuple[Any, ...], arrays: list[Any], args: Sequence[Any]) -> bool:
        """True where a call that is not to be recorded as it is may be recorded for any numbers: many have been seen."""
        numbers = _python_numbers(args)
        seen = self._tried.get(_layouts_of(arrays), 0) > VARIANTS and not (self.one_type and len({x.dtype for x in arrays}) > 1)
        return seen and bool(numbers) and _without_numbers(key) not in self._refused and all([abs(n) < _LARGE for n in numbers])

    def _record_call(self, key: tuple[Any, ...], arrays: list[Any], args: Sequence[Any], attrs: dict[str, Any]) -> Any:
        """Run the corner, and keep a recording of what it did if it can be replayed."""
        replayed = [x for x in arrays if type(x) is ReplayedNumber]
        arrays = [x for x in arrays if type(x) is CudaArray]
        if replayed:
            low, high, offset = (n.value for n in replayed)
            drawn = another_seed(high << 32 | low, offset)
            others = seed_numbers(*drawn)
            changed = {(k, n.value, o.value): i for i, (k, n, o) in enumerate(zip(SEED_KINDS, replayed, others, strict=True))}
            value, recorder = self._record_twice(arrays, replayed, (args, attrs), self._with_seed(args, attrs, *drawn), changed)
        else:
            recorder = Recorder(arrays)
            value = self._run_recorded(recorder, arrays, args, attrs)
        recording = self._make_recording(key, recorder, value)
        if recording is not None:
            self.recordings[key] = recording
        return recorder.returned(value, arrays)

    def _record_any_numbers(self, key: tuple[Any, ...], arrays: list[CudaArray], args: Sequence[Any], attrs: dict[str, Any]) -> Any:
        """Run the corner, and keep a recording for all calls that differ from this one in numbers only."""
        numbers = [own(n) for n in _python_numbers(args)]
        others = other_numbers(numbers)
        replayed = [ReplayedNumber(0, n) for n in numbers]
        changed = {(k, float(n), float(o)): i for k in ENCODERS for i, (n, o) in enumerate(zip(numbers, others, strict=True))}
        call, again = (_with_numbers(args, numbers), attrs), (_with_numbers(args, others), attrs)
        value, recorder = self._record_twice(arrays, replayed, call, again, changed)
        recording = self._make_recording(key, recorder, value)
        if recording is not None:
            self.of_any_numbers[key] = recording, [recorder.kinds.get(len(arrays) + i, float) for i in range(len(numbers))]
        return recorder.returned(value, arrays)

    def _record_twice(
        self,
        arrays: list[CudaArray],
        replayed: list[ReplayedNumber],
        call: tuple[Any, Any],
        again: tuple[Any, Any],
        changed: dict[Any, int],
    ) -> tuple[Any, Recorder]:
        """Run a call under a recorder; first dry with other numbers, to see where the numbers go. The result, and the recording."""
        # dry: the run with other numbers must write nothing
        other = Recorder(arrays, replayed, dry=True)
        try:
            self._run_recorded(other, arrays, *again)
        except NotThere:
            other.spoil("it looks into memory from the host")
        recorder = Recorder(arrays, replayed)
        value = self._run_recorded(recorder, arrays, *call)
        recorder.spoil(other.spoiled)
        if not recorder.spoiled:
            match_numbers(recorder, other, changed)
        return value, recorder

    def _make_recording(self, key: tuple[Any, ...], recorder: Recorder, value: Any) -> Any:
        """What replays a finished recorder; None, and the key is remembered, where nothing can."""
        result = recorder.result(value)
        recording = None if recorder.spoiled else _build_recording(recorder, result)
        if recorder.spoiled:  # by now, or while the recording was made
            self._refused.add(key)
            self.unrecorded = str(recorder.spoiled)
            return None
        return recording

    def _with_seed(self, args: Sequence[Any], attrs: dict[str, Any], seed: int, offset: int) -> tuple[Sequence[Any], dict[str, Any]]:
        """A call's arguments with another seed and offset."""
        if self.draws:
            at = dict(zip(self.draws, (seed, offset), strict=True))
            return [at.get(i, a) for i, a in enumerate(args)], attrs
        return args, {**attrs, "seed": seed, "offset": offset}

    def _run_recorded(self, recorder: Recorder, arrays: list[CudaArray], args: Sequence[Any], attrs: dict[str, Any]) -> Any:
        """Run the corner on a recorder's arrays; what it returns."""
        given = iter(recorder.inputs)
        args = [_replace_arrays(a, given) for a in args]
        if "out" in attrs:
            place = next(i for i, x in enumerate(arrays) if x is attrs["out"])
            attrs = {**attrs, "out": recorder.inputs[place]}
        here.recorder, here.place = recorder, None
        try:
            return self.function(*args, **attrs)
        finally:
            here.recorder = None

    def forget(self) -> None:
        """Drop all recordings."""
        self.recordings.clear()
        self.of_any_numbers.clear()
        self._refused.clear()
        self._tried.clear()


def _layouts_of(arrays: Sequence[Any]) -> tuple[Any, ...]:
    return tuple([x.layout() for x in arrays if type(x) is CudaArray])


def _python_numbers(args: Sequence[Any]) -> list[Any]:
    """The Python numbers among arguments."""
    return [a for a in args if type(a) is float or type(a) is int]


def _with_numbers(args: Sequence[Any], numbers: Sequence[Any]) -> list[Any]:
    """Arguments with other numbers in their places."""
    left = iter(numbers)
    return [next(left) if type(a) is float or type(a) is int else a for a in args]


def _without_numbers(key: tuple[Any, ...]) -> tuple[Any, ...]:
    """A key with the types of numbers for their values."""
    return tuple([part[:1] if part.__class__ is tuple and part and (part[0] is float or part[0] is int) else part for part in key])


def _key_part_of_out(out: Any, arrays: list[CudaArray]) -> Any:
    """The part of a key for the array that a result goes into: which input it is, or its layout. None where it overlaps an input."""
    if type(out) is not CudaArray or any([x.storage is out.storage and x is not out for x in arrays]):
        return None
    for i, x in enumerate(arrays):
        if x is out:
            return ("out", i)
    arrays.append(out)
    return ("out", out.known_layout or out.layout())


def _key_part(value: Any, arrays: list[CudaArray]) -> Any:
    """The part of a key for an argument that is no array; 1, 1.0 and True are three keys, and so are 0.0 and -0.0."""
    kind = type(value)
    if kind is float:
        return (float, value or str(value))
    if kind is tuple:
        return tuple([_key_part(v, arrays) for v in value])
    if kind is CudaArray:
        arrays.append(value)
        return value.layout()
    return value_part(value)


def attributes_part(attrs: dict[str, Any]) -> tuple[Any, ...]:
    """The part of a key for attributes: 1, 1.0 and True are three values here as well (a shape rule may refuse one of them)."""
    return tuple([(k, v) if v.__class__ is int else (k, value_part(v)) for k, v in attrs.items()])


def value_part(value: Any) -> Any:
    """Anything but an array or an int as it stands in a key, with its type; -0.0 told from 0.0, slices of an index as tuples
    (Python 3.11 cannot hash them)."""
    kind = value.__class__
    if kind is bool or value is None:
        return (kind, value)
    if kind is tuple:
        return tuple([v if v.__class__ is int else value_part(v) for v in value])
    if kind is slice:
        return (slice, value.start, value.stop, value.step)
    if isinstance(value, _FLOATING) and not value:
        return (kind, str(value))
    return (kind, value)


_FLOATING = (float, np.floating)
_ABSENT = (type(None), None)


def record_view(known: dict[Any, Any], key: Any, x: CudaArray, y: CudaArray) -> None:
    """Record that a view op makes y of x: of any array of x's layout it makes one of y's, as far behind it."""
    shape, strides, dtype, layout, delta = y.shape, y.strides, y.dtype, y.layout(), y.pointer - x.pointer

    def recording(arrays: Sequence[CudaArray]) -> CudaArray:
        x = arrays[0]
        made = CudaArray.__new__(CudaArray)
        made.storage, made.pointer, made.known_layout = x.storage, x.pointer + delta, layout
        made.shape, made.strides, made.dtype = shape, strides, dtype
        return made

    if len(known) >= KEPT:
        known.clear()
    # a view op that had to copy has made no offset
    if y.storage is x.storage:
        known[key] = recording


def _replace_arrays(value: Any, given: Any) -> Any:
    """An argument with the recorder's arrays in place of the caller's."""
    if type(value) is CudaArray:
        return next(given)
    if type(value) is tuple:
        return tuple([_replace_arrays(v, given) for v in value])
    return value


def _share_storage(arrays: Sequence[CudaArray]) -> bool:
    """True where two of the arrays lie in one storage."""
    return len({id(x.storage) for x in arrays}) < len(arrays)


def recordings() -> list[Any]:
    """All recordings that are known now, of every corner."""
    return [r for c in tuple(_corners) for r in (*c.recordings.values(), *[r for r, _ in c.of_any_numbers.values()])]


def _forget_corners() -> None:
    for corner in tuple(_corners):
        corner.forget()


def forget() -> None:
    """Drop all recordings: a setting that corners depend on has changed, or another runtime serves the device."""
    _forget_corners()
    for tell in when_forgotten:
        tell()


when_forgotten: list[Callable[[], Any]] = []  # what else holds recordings, or what depends on the same settings


def enable(on: bool) -> bool:
    """Turn replay on or off; returns what it was. Off, every call runs its corner's Python."""
    global _enabled
    before, _enabled = _enabled, on
    forget()
    return before


active.when_changed.append(forget)
dtypes.when_default_changed.append(_forget_corners)
