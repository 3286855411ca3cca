"""Launches made before, found by what their arguments are like: no signature is bound, no type looked up, the block is packed anew and sent."""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter
from typing import Any

import numpy as np

from tritensor.cuda.compiler.arguments import Constant, LaunchCall, arrays_of, is_array
from tritensor.cuda.driver.kernels import Launch

_KEPT = 1024  # entries; when there are more, all are dropped and made again
_ARRAY, _NUMBER, _OTHER = 1, 2, 3
_KINDS: dict[type, int] = {}  # of classes other than int and float, learnt as they come


class Form:
    """What the arguments of a launch are like (`key`; equal ones share an entry), and the arrays and numbers among them with the parameters' places."""

    __slots__ = ("array_places", "arrays", "key", "number_places", "numbers")

    def __init__(self) -> None:
        self.key: tuple[Any, ...] = ()
        self.arrays: list[Any] = []
        self.numbers: list[Any] = []
        self.array_places: list[int] = []
        self.number_places: list[int] = []


class Known:
    """A launch that was made: copies of it that wait to be sent, and how the arrays and numbers of a form go into its block."""

    __slots__ = ("_arrays", "_numbers", "idle", "kernel", "launch", "usable")

    def __init__(self, kernel: Any, launch: Launch, form: Form, typed: list[tuple[str, Any]]) -> None:
        self.kernel = kernel  # kept alive: the key holds its id
        self.launch = launch
        self.idle: list[Launch] = []
        self._arrays = _order(form.array_places)
        self._numbers = _order(form.number_places)
        numbers = sum(kind != "*" for kind, _ in typed)
        # Defaults that are no constants, and descriptors, are among the values and not in the form.
        self.usable = not launch.loaded.maps and (len(arrays_of(typed)), numbers) == (len(form.arrays), len(form.numbers))

    def take(self, numbers: list[Any]) -> Launch:
        """A copy of the launch with these numbers, this call's alone until it is given back to `idle`."""
        try:
            # no look before it: another thread may take the last one in between
            made = self.idle.pop()
        except IndexError:
            made = self.launch.again()
        if numbers:
            made.renew(numbers if self._numbers is None else list(self._numbers(numbers)))
        return made

    def ordered(self, arrays: list[Any]) -> Sequence[Any]:
        """Arrays in the kernel's order."""
        return arrays if self._arrays is None else self._arrays(arrays)


def _order(places: list[int]) -> Any:
    """What puts values given for parameters at these places into the parameters' order; None where they are in it."""
    order = sorted(range(len(places)), key=places.__getitem__)
    return None if order == list(range(len(places))) else itemgetter(*order)


def form_of(call: LaunchCall) -> Form | None:
    """The form of a launch; None for one that must be looked at in full: tuples, descriptors, arrays on several GPUs, too many or unknown arguments."""
    constexpr, place, args = call.plan.constexpr, call.plan.place, call.args
    if len(args) > len(constexpr):
        return None
    form = Form()
    parts: list[Any] = [id(call.kernel), call.grid, call.num_warps, call.num_stages, call.options, len(args)]
    for i, a in enumerate(args):
        if not _read(a, i, constexpr[i], form, parts):
            return None
    for name, a in call.named.items():
        i = place.get(name, -1)
        parts.append(name)
        # given twice, or unknown (-1): bind() finds the words
        if i < len(args) or not _read(a, i, constexpr[i], form, parts):
            return None
    arrays = form.arrays
    # nothing tells on which GPU it runs
    if not arrays:
        return None
    device = arrays[0].storage.device
    for x in arrays:
        if x.storage.device is not device:
            return None
    parts.append(device.index)
    form.key = tuple(parts)
    return form


def _read(a: Any, i: int, constexpr: bool, form: Form, parts: list[Any]) -> bool:
    """Add an argument for parameter `i` to a form; False for one that must be looked at in full."""
    cls = a.__class__
    if constexpr:
        # with its class: 1, 1.0 and True are equal, and three constants to a kernel
        parts.append(cls)
        parts.append(a)
    elif cls is int:
        # whether it divides by 16 is compiled in; one that needs 64 bits is a parameter of another type
        parts.append(a & 15 == 0 if -0x80000000 <= a < 0x80000000 else ("i64" if -(1 << 63) <= a < 1 << 63 else "u64", a & 15 == 0))
        form.numbers.append(a)
        form.number_places.append(i)
    elif cls is float:
        parts.append(cls)
        form.numbers.append(a)
        form.number_places.append(i)
    else:
        kind = _KINDS.get(cls) or _kind(a)
        if kind == _ARRAY:
            parts.append(-2 - 2 * a.dtype.num - (a.pointer & 15 == 0))  # below 0: no bool, which integers leave
            form.arrays.append(a)
            form.array_places.append(i)
        elif kind == _NUMBER:
            parts.append(cls)
            form.numbers.append(a)
            form.number_places.append(i)
        elif a is None:
            parts.append(a)
        elif cls is Constant:
            parts.append((a.value.__class__, a.value))
        else:
            return False
    return True


def _kind(value: Any) -> int:
    """Whether an argument is an array or a number; learnt by class."""
    found = _ARRAY if is_array(value) else _NUMBER if isinstance(value, bool | np.generic) else _OTHER
    _KINDS[value.__class__] = found
    return found


class KnownLaunches:
    """The entries of a process, by form."""

    def __init__(self) -> None:
        self._entries: dict[tuple[Any, ...], Known] = {}

    def find(self, form: Form) -> Known | None:
        """The entry of a form; None where there is none, and for constants that cannot be compared."""
        try:
            return self._entries.get(form.key)
        except TypeError:
            return None

    def add(self, kernel: Any, launch: Launch, form: Form, typed: list[tuple[str, Any]]) -> None:
        """Remember a launch that was made for a form, if the next one can be had from it."""
        made = Known(kernel, launch, form, typed)
        if not made.usable:
            return
        if len(self._entries) >= _KEPT:
            self._entries.clear()
        try:
            self._entries[form.key] = made
        except TypeError:  # a constant that cannot be hashed
            return
