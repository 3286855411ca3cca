"""Handlers of the pickle opcodes, and `read`, which runs them over a pickle."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from tritensor.io.torch_format.pickle_errors import DamagedPickle
from tritensor.io.torch_format.pickle_vm import HANDLERS, Handler, Lookup, PickleVM

# Names of Python 2, which protocols up to 2 write (fix_imports of pickle).
_RENAMED = {"__builtin__": "builtins", "copy_reg": "copyreg"}
_MAX_INT_BYTES = 65_536  # bytes: time for arithmetic on more is no longer small
_MAX_DIGITS = 4_000  # digits: their value takes quadratic time


def _handles(*codes: int) -> Callable[[Handler], Handler]:
    def register(handler: Handler) -> Handler:
        for code in codes:
            HANDLERS[code] = handler
        return handler

    return register


def _push_result(codes: bytes, make: Callable[[PickleVM], Any]) -> None:
    def handler(m: PickleVM) -> None:
        value = make(m)  # first: it may put another stack in place of this one
        m.stack.append(value)

    HANDLERS.update(dict.fromkeys(codes, handler))


def _take_integer(m: PickleVM, length: int) -> int:
    if length > _MAX_INT_BYTES:
        raise DamagedPickle(f"an integer of {length} bytes")
    return int.from_bytes(m.take(length), "little", signed=True)


def _take_decimal(m: PickleVM) -> int:
    text = m.line().removesuffix("L")
    if len(text) > _MAX_DIGITS:
        raise DamagedPickle(f"an integer of {len(text)} digits")
    try:
        return int(text)
    except ValueError:
        raise DamagedPickle("an integer is no number") from None


def _take_int_or_bool(m: PickleVM) -> Any:
    at = m.at
    text = m.line()
    if text in ("00", "01"):
        return text == "01"
    m.at = at
    return _take_decimal(m)


def _decode_python2(data: memoryview) -> str:
    return str(data, "utf-8", "surrogateescape")


_push_result(b"N", lambda m: None)
_push_result(b"\x88", lambda m: True)
_push_result(b"\x89", lambda m: False)
_push_result(b")", lambda m: ())
_push_result(b"]", lambda m: [])
_push_result(b"}", lambda m: {})
_push_result(b"\x8f", lambda m: set())
_push_result(b"J", lambda m: int.from_bytes(m.take(4), "little", signed=True))
_push_result(b"K", lambda m: m.number(1))
_push_result(b"M", lambda m: m.number(2))
_push_result(b"G", lambda m: struct.unpack(">d", m.take(8))[0])
_push_result(b"I", _take_int_or_bool)
_push_result(b"L", _take_decimal)
_push_result(b"\x8a", lambda m: _take_integer(m, m.number(1)))
_push_result(b"\x8b", lambda m: _take_integer(m, m.number(4)))
_push_result(b"X", lambda m: str(m.take(m.number(4)), "utf-8", "surrogatepass"))
_push_result(b"\x8c", lambda m: str(m.take(m.number(1)), "utf-8", "surrogatepass"))
_push_result(b"\x8d", lambda m: str(m.take(m.number(8)), "utf-8", "surrogatepass"))
_push_result(b"U", lambda m: _decode_python2(m.take(m.number(1))))
_push_result(b"T", lambda m: _decode_python2(m.take(m.number(4))))
_push_result(b"C", lambda m: bytes(m.take(m.number(1))))
_push_result(b"B", lambda m: bytes(m.take(m.number(4))))
_push_result(b"\x8e", lambda m: bytes(m.take(m.number(8))))
_push_result(b"\x96", lambda m: bytearray(m.take(m.number(8))))
_push_result(b"h", lambda m: m.memo[m.number(1)])
_push_result(b"j", lambda m: m.memo[m.number(4)])
_push_result(b"t", lambda m: tuple(m.pop_marked()))
_push_result(b"l", lambda m: m.pop_marked())
_push_result(b"\x91", lambda m: frozenset(map(m.key, m.pop_marked())))
_push_result(b"2", lambda m: m.stack[-1])


# Handlers that push nothing, in one expression.
HANDLERS[ord("1")] = PickleVM.pop_marked  # POP_MARK
HANDLERS[ord("0")] = lambda m: m.stack.pop() if m.stack else m.pop_marked()  # POP


# Functions and not expressions: a file names nearly every value in its memo, and __setitem__ would be a call more for each.
@_handles(ord("q"))
def _binput(m: PickleVM) -> None:
    m.memo[m.number(1)] = m.stack[-1]


@_handles(ord("r"))
def _long_binput(m: PickleVM) -> None:
    m.memo[m.number(4)] = m.stack[-1]


@_handles(0x94)
def _memoize(m: PickleVM) -> None:
    m.memo[len(m.memo)] = m.stack[-1]  # protocol 4 numbers by order, and says no number


@_handles(0x80)  # PROTO
def _protocol(m: PickleVM) -> None:
    if m.number(1) > 5:  # Python has no later one; opcodes of a later one would be damage to this table
        raise DamagedPickle("a protocol that is not known")


@_handles(0x95)  # FRAME
def _frame(m: PickleVM) -> None:
    length = m.number(8)  # for readers of streams, who fetch so much at once: here all bytes are in memory
    if length > len(m.data) - m.at:
        raise DamagedPickle(f"a frame of {length} bytes, of which {len(m.data) - m.at} are there")


@_handles(ord("("))
def _mark(m: PickleVM) -> None:
    m.below.append(m.stack)
    m.stack = []


@_handles(0x85, 0x86, 0x87)  # TUPLE1, 2, 3
def _short_tuple(m: PickleVM) -> None:
    n = m.data[m.at - 1] - 0x84
    if len(m.stack) < n:
        raise DamagedPickle("a tuple of more members than there are")
    m.stack[-n:] = [tuple(m.stack[-n:])]


@_handles(ord("d"))  # DICT
def _dict(m: PickleVM) -> None:
    items, made = m.pop_marked(), {}  # type: ignore[var-annotated]
    m.put(made, items)
    m.stack.append(made)


@_handles(ord("a"))
def _append(m: PickleVM) -> None:
    item = m.stack.pop()
    _list_on_top(m).append(item)


@_handles(ord("e"))
def _appends(m: PickleVM) -> None:
    items = m.pop_marked()
    _list_on_top(m).extend(items)


def _list_on_top(m: PickleVM) -> list[Any]:
    into = m.stack[-1]
    if type(into) is not list:
        raise DamagedPickle(f"members are appended to a {type(into).__name__}")
    return into


@_handles(0x90)  # ADDITEMS
def _add_items(m: PickleVM) -> None:
    items = m.pop_marked()
    into = m.stack[-1]
    if type(into) is not set:
        raise DamagedPickle(f"members are added to a {type(into).__name__}")
    into.update(map(m.key, items))


@_handles(ord("s"))
def _set_item(m: PickleVM) -> None:
    value, key = m.stack.pop(), m.stack.pop()
    m.put(m.stack[-1], [key, value])


@_handles(ord("u"))
def _set_items(m: PickleVM) -> None:
    items = m.pop_marked()
    m.put(m.stack[-1], items)


@_handles(ord("c"))
def _global(m: PickleVM) -> None:
    module = m.line()
    m.find(_RENAMED.get(module, module), m.line())


@_handles(0x93)  # STACK_GLOBAL
def _stack_global(m: PickleVM) -> None:
    name, module = m.stack.pop(), m.stack.pop()
    if type(name) is not str or type(module) is not str:
        raise DamagedPickle("a name is no string")
    m.find(module, name)


@_handles(ord("R"))
def _reduce(m: PickleVM) -> None:
    args, function = m.stack.pop(), m.stack.pop()
    m.stack.append(m.call(function, args))


@_handles(0x81)  # NEWOBJ
def _new(m: PickleVM) -> None:
    args, cls = m.stack.pop(), m.stack.pop()
    if type(args) is tuple and m.trusts(cls) and isinstance(cls, type):
        m.stack.append(m.call_trusted(cls.__new__, cls, *args))
    else:
        m.stack.append(m.call(cls, args))


@_handles(ord("b"))
def _build(m: PickleVM) -> None:
    state = m.stack.pop()
    m.build(m.stack[-1], state)


@_handles(ord("Q"))  # BINPERSID
def _persistent(m: PickleVM) -> None:
    if m.persistent is None:
        raise DamagedPickle("a storage is named where none can be")
    m.stack.append(m.persistent(m.stack.pop()))


def read(
    data: memoryview, label: str, lookup: Lookup, constructors: dict[int, Callable[..., Any]],
    persistent: Callable[[Any], Any] | None = None, at: int = 0, mapper: Any = None, room: int = 0,
) -> tuple[Any, int]:  # fmt: skip
    """The value of the pickle that begins at byte `at` of `data`, and where it ends. See Machine."""
    vm = PickleVM(data, label, lookup, constructors, persistent, at, mapper, room)
    return vm.run(), vm.at
