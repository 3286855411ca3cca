"""What the machine does at each opcode."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from tritensor.io.torch_format.pickle_errors import Damaged
from tritensor.io.torch_format.pickle_vm import TABLE, Handler, Lookup, Machine

# Names of Python 2, which protocols up to 2 write (fix_imports of pickle).
_RENAMED = {"__builtin__": "builtins", "copy_reg": "copyreg"}
_LONGEST_INT = 65_536  # bytes: time for arithmetic on more is no longer small
_LONGEST_DECIMAL = 4_000  # digits: their value takes quadratic time


def _on(*codes: int) -> Callable[[Handler], Handler]:
    def register(handler: Handler) -> Handler:
        for code in codes:
            TABLE[code] = handler
        return handler

    return register


def _pushes(codes: bytes, make: Callable[[Machine], Any]) -> None:
    def handler(m: Machine) -> None:
        value = make(m)  # first: it may put another stack in place of this one
        m.stack.append(value)

    TABLE.update(dict.fromkeys(codes, handler))


def _integer(m: Machine, length: int) -> int:
    if length > _LONGEST_INT:
        raise Damaged(f"an integer of {length} bytes")
    return int.from_bytes(m.take(length), "little", signed=True)


def _decimal(m: Machine) -> int:
    text = m.line().removesuffix("L")
    if len(text) > _LONGEST_DECIMAL:
        raise Damaged(f"an integer of {len(text)} digits")
    try:
        return int(text)
    except ValueError:
        raise Damaged("an integer is no number") from None


def _text_int(m: Machine) -> Any:
    at = m.at
    text = m.line()
    if text in ("00", "01"):
        return text == "01"
    m.at = at
    return _decimal(m)


def _old_text(data: memoryview) -> str:
    """A string of Python 2."""
    return str(data, "utf-8", "surrogateescape")


_pushes(b"N", lambda m: None)
_pushes(b"\x88", lambda m: True)
_pushes(b"\x89", lambda m: False)
_pushes(b")", lambda m: ())
_pushes(b"]", lambda m: [])
_pushes(b"}", lambda m: {})
_pushes(b"\x8f", lambda m: set())
_pushes(b"J", lambda m: int.from_bytes(m.take(4), "little", signed=True))
_pushes(b"K", lambda m: m.number(1))
_pushes(b"M", lambda m: m.number(2))
_pushes(b"G", lambda m: struct.unpack(">d", m.take(8))[0])
_pushes(b"I", _text_int)
_pushes(b"L", _decimal)
_pushes(b"\x8a", lambda m: _integer(m, m.number(1)))
_pushes(b"\x8b", lambda m: _integer(m, m.number(4)))
_pushes(b"X", lambda m: str(m.take(m.number(4)), "utf-8", "surrogatepass"))
_pushes(b"\x8c", lambda m: str(m.take(m.number(1)), "utf-8", "surrogatepass"))
_pushes(b"\x8d", lambda m: str(m.take(m.number(8)), "utf-8", "surrogatepass"))
_pushes(b"U", lambda m: _old_text(m.take(m.number(1))))
_pushes(b"T", lambda m: _old_text(m.take(m.number(4))))
_pushes(b"C", lambda m: bytes(m.take(m.number(1))))
_pushes(b"B", lambda m: bytes(m.take(m.number(4))))
_pushes(b"\x8e", lambda m: bytes(m.take(m.number(8))))
_pushes(b"\x96", lambda m: bytearray(m.take(m.number(8))))
_pushes(b"h", lambda m: m.memo[m.number(1)])
_pushes(b"j", lambda m: m.memo[m.number(4)])
_pushes(b"t", lambda m: tuple(m.marked()))
_pushes(b"l", lambda m: m.marked())
_pushes(b"\x91", lambda m: frozenset(map(m.key, m.marked())))
_pushes(b"2", lambda m: m.stack[-1])


@_on(0x80)  # PROTO
def _protocol(m: Machine) -> None:
    if m.number(1) > 5:
        raise Damaged("a protocol that is not known")


@_on(0x95)  # FRAME
def _frame(m: Machine) -> None:
    length = m.number(8)
    if length > len(m.data) - m.at:
        raise Damaged(f"a frame of {length} bytes, of which {len(m.data) - m.at} are there")


@_on(ord("("))
def _mark(m: Machine) -> None:
    m.below.append(m.stack)
    m.stack = []


@_on(ord("0"))  # POP
def _pop(m: Machine) -> None:
    if m.stack:
        m.stack.pop()
    else:
        m.marked()


@_on(ord("1"))  # POP_MARK
def _pop_mark(m: Machine) -> None:
    m.marked()


@_on(0x85, 0x86, 0x87)  # TUPLE1, 2, 3
def _short_tuple(m: Machine) -> None:
    n = m.data[m.at - 1] - 0x84
    if len(m.stack) < n:
        raise Damaged("a tuple of more members than there are")
    m.stack[-n:] = [tuple(m.stack[-n:])]


@_on(ord("d"))  # DICT
def _dict(m: Machine) -> None:
    items, made = m.marked(), {}  # type: ignore[var-annotated]
    m.put(made, items)
    m.stack.append(made)


@_on(ord("q"))
def _binput(m: Machine) -> None:
    m.memo[m.number(1)] = m.stack[-1]


@_on(ord("r"))
def _long_binput(m: Machine) -> None:
    m.memo[m.number(4)] = m.stack[-1]


@_on(0x94)  # MEMOIZE
def _memoize(m: Machine) -> None:
    m.memo[len(m.memo)] = m.stack[-1]


@_on(ord("a"))
def _append(m: Machine) -> None:
    item = m.stack.pop()
    _list(m).append(item)


@_on(ord("e"))
def _appends(m: Machine) -> None:
    items = m.marked()
    _list(m).extend(items)


def _list(m: Machine) -> list[Any]:
    into = m.stack[-1]
    if type(into) is not list:
        raise Damaged(f"members are appended to a {type(into).__name__}")
    return into


@_on(0x90)  # ADDITEMS
def _add(m: Machine) -> None:
    items = m.marked()
    into = m.stack[-1]
    if type(into) is not set:
        raise Damaged(f"members are added to a {type(into).__name__}")
    into.update(map(m.key, items))


@_on(ord("s"))
def _set_item(m: Machine) -> None:
    value, key = m.stack.pop(), m.stack.pop()
    m.put(m.stack[-1], [key, value])


@_on(ord("u"))
def _set_items(m: Machine) -> None:
    items = m.marked()
    m.put(m.stack[-1], items)


@_on(ord("c"))
def _global(m: Machine) -> None:
    module = m.line()
    m.find(_RENAMED.get(module, module), m.line())


@_on(0x93)  # STACK_GLOBAL
def _stack_global(m: Machine) -> None:
    name, module = m.stack.pop(), m.stack.pop()
    if type(name) is not str or type(module) is not str:
        raise Damaged("a name is no string")
    m.find(module, name)


@_on(ord("R"))
def _reduce(m: Machine) -> None:
    args, function = m.stack.pop(), m.stack.pop()
    m.stack.append(m.call(function, args))


@_on(0x81)  # NEWOBJ
def _new(m: Machine) -> None:
    args, cls = m.stack.pop(), m.stack.pop()
    if type(args) is not tuple:
        raise Damaged(f"a {type(args).__name__} stands where arguments should")
    if m.trusts(cls) and isinstance(cls, type):
        m.stack.append(m.trying(cls.__new__, cls, *args))
    else:
        m.stack.append(m.call(cls, args))


@_on(ord("b"))
def _build(m: Machine) -> None:
    state, made = m.stack.pop(), m.stack[-1]
    m.build(made, state)


@_on(ord("Q"))  # BINPERSID
def _persistent(m: Machine) -> None:
    if m.persistent is None:
        raise Damaged("a storage is named where none can be")
    m.stack.append(m.persistent(m.stack.pop()))


def read(
    data: memoryview,
    label: str,
    lookup: Lookup,
    constructors: dict[int, Callable[..., Any]],
    persistent: Callable[[Any], Any] | None = None,
    at: int = 0,
    place: Any = None,
    room: int = 0,
) -> tuple[Any, int]:
    """The value of the pickle that begins at byte `at` of `data`, and where it ends. See Machine."""
    machine = Machine(data, label, lookup, constructors, persistent, at, place, room)
    return machine.run(), machine.at
