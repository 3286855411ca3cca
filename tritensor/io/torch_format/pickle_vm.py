"""Virtual machine that reads pickles: an opcode at a time over bytes of known length, making values and nothing else.

It differs from Python's own unpickler in what it may do. A GLOBAL gives one of the names of allowed_names.py (or what the user calls safe),
never an import. REDUCE and NEWOBJ call the constructor that belongs to such a name, which checks its arguments. BUILD sets a few attributes that
cannot hurt. No length that the file tells is believed before the bytes are there; nesting is on a stack of its own; hashing, which
Python does by recursion and as often as it is asked, is counted.

The opcodes: Lib/pickletools.py of CPython, protocols 0 to 5 without the text forms that no writer of tensors uses.
"""

from __future__ import annotations

import struct
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np

from tritensor.ground.errors import CheckpointError
from tritensor.io import safe_globals
from tritensor.io.torch_format import numpy_values
from tritensor.io.torch_format.pickle_errors import DamagedPickle, ForbiddenGlobalError, forbidden, reject

_MAX_KEY_DEPTH = 500  # tuples in tuples that are a key: hash() takes a C call a level, and does not look where the stack ends
_MAX_CHAIN = 1000  # defaultdicts that hold one: Python frees them by recursion
_MAPPINGS = (dict, OrderedDict, Counter, defaultdict)
Lookup = Callable[[str, str], Any]  # (module, name) -> what stands for it, or None
Handler = Callable[["PickleVM"], object]
HANDLERS: dict[int, Handler] = {}  # by opcode


class PickleVM:
    """Reads one pickle of `data` from `at`; `run()` returns its value, and `at` stands behind it."""

    def __init__(
        self, data: memoryview, label: str, lookup: Lookup, constructors: dict[int, Callable[..., Any]],
        persistent: Callable[[Any], Any] | None = None, at: int = 0, mapper: Any = None, room: int = 0,
    ) -> None:  # fmt: skip
        self.data, self.label, self.at = data, label, at
        self.lookup, self.constructors, self.persistent, self.mapper = lookup, constructors, persistent, mapper
        self.stack: list[Any] = []
        self.below: list[list[Any]] = []  # the stacks under the marks
        self.memo: dict[int, Any] = {}
        self.trusted: dict[int, Any] = {}  # what the user calls safe and this pickle has named, by id
        self.tuples: dict[int, Any] = {}  # classes of named tuples that this pickle has named, by id
        self.hashed = 0  # bytes and members that keys have cost so far
        self.copied, self.room = 0, room  # bytes that constructors have copied so far, and that they may on account of the file's data
        self.chains: dict[int, Any] = {}

    def run(self) -> Any:
        """The value. Raises Damaged for what no pickler writes, ForbiddenGlobalError for what is no value."""
        data, end = self.data, len(self.data)
        try:
            while True:
                if self.at >= end:
                    raise DamagedPickle("the pickle ends before its end")
                code = data[self.at]
                self.at += 1
                if code == 0x2E:  # STOP
                    value = self.stack.pop()
                    break
                handler = HANDLERS.get(code)
                if handler is None:
                    raise DamagedPickle(f"opcode {code:#04x} at byte {self.at - 1} is none that values are made of")
                handler(self)
        except (IndexError, KeyError, struct.error, UnicodeDecodeError, OverflowError, RecursionError, MemoryError) as error:
            raise DamagedPickle(f"byte {self.at} of the pickle: {type(error).__name__} {error}") from None
        if self.stack or self.below:
            raise DamagedPickle("the pickle leaves values behind")
        return value

    def take(self, n: int) -> memoryview:
        """The next n bytes."""
        if n < 0 or n > len(self.data) - self.at:
            raise DamagedPickle(f"{n} bytes are told of at byte {self.at}, and {len(self.data) - self.at} are there")
        self.at += n
        return self.data[self.at - n : self.at]

    def number(self, n: int) -> int:
        """The next n bytes as a count."""
        return int.from_bytes(self.take(n), "little")

    def line(self) -> str:
        """Up to the end of the line."""
        for end in range(self.at, min(self.at + 10_000, len(self.data))):
            if self.data[end] == 0x0A:
                return str(self.take(end + 1 - self.at)[:-1], "utf-8")
        raise DamagedPickle(f"no line ends after byte {self.at}")

    def pop_marked(self) -> list[Any]:
        """Take off what stands above the last mark."""
        items = self.stack
        self.stack = self.below.pop()
        return items

    def find(self, module: str, name: str) -> None:
        """Put what a name stands for on the stack."""
        found = self.lookup(module, name)
        if found is None and (found := safe_globals.find_safe(module, name)) is not None:
            self.trusted[id(found)] = found
        elif found is None:
            found = safe_globals.find_named_tuple(module, name)
            if found is None:
                raise forbidden(self.label, module, name)
            self.tuples[id(found)] = found
        self.stack.append(found)

    def trusts(self, named: Any) -> bool:
        """Whether the user calls a class or function safe that this pickle has named."""
        return id(named) in self.trusted

    def call_trusted(self, function: Any, *args: Any) -> Any:
        """Call what the user calls safe."""
        try:
            return function(*args)
        except Exception as error:
            name = getattr(function, "__name__", function)
            raise DamagedPickle(f"{name}, which the user calls safe, raised {type(error).__name__}: {error}") from error

    def call(self, function: Any, args: Any) -> Any:
        """The value that a constructor makes. Raises ForbiddenGlobalError for what is none and the user does not call safe."""
        if type(args) is not tuple:
            reject(args, "arguments")
        make = self.constructors.get(id(function))
        if make is None and self.tuples.get(id(function), self) is function:
            # PyTorch's own, such as return_types.max, are called with a tuple and an empty dict
            if len(args) == 2 and type(args[0]) is tuple and type(args[1]) is dict and not args[1]:
                args = args[0]
            if len(args) != len(function._fields):
                raise DamagedPickle(f"the named tuple {function.__name__} of {len(args)} values")
            return tuple.__new__(function, args)  # not its own __new__, which may be any code
        if make is None:
            if not self.trusts(function):
                raise ForbiddenGlobalError(f"{self.label}: calls a {type(function).__name__}, which is no constructor of values")
            return self.call_trusted(function, *args)
        try:
            return make(self, *args)
        except DamagedPickle:
            raise
        except (TypeError, ValueError) as error:
            if isinstance(error, CheckpointError):
                raise
            raise DamagedPickle(f"{getattr(function, '__name__', function)}: {error}") from None

    def charge(self, nbytes: int) -> None:
        """Count a copy that a constructor is about to make."""
        # what a pickle holds once it may ask for again and again: a few kilobytes could fill the memory
        self.copied += nbytes
        if self.copied > 1_000_000 + 64 * self.at + self.room:
            raise DamagedPickle(f"copies of {self.copied} bytes are asked for")

    def key(self, key: Any) -> Any:
        """A key or a member of a set, once it is certain that hashing it ends, and takes little time."""
        kind = type(key)
        if kind is str:
            return key  # nearly all keys
        todo = [(key, 0)]
        while todo:
            x, depth = todo.pop()
            members = x if isinstance(x, tuple | frozenset) else ()
            self.hashed += 1 + len(members) + (x.bit_length() // 8 if type(x) is int else 0)
            if self.hashed > 100_000 + 64 * self.at or depth > _MAX_KEY_DEPTH:
                raise DamagedPickle("a key is nested, or repeated, beyond all measure")
            if members:
                todo += [(member, depth + 1) for member in members]
            elif isinstance(x, list | dict | set | bytearray | np.ndarray):
                raise DamagedPickle(f"a {type(x).__name__} is a key")
        return key

    def put(self, into: Any, items: list[Any]) -> None:
        """Keys and values by turns into a mapping."""
        if type(into) not in _MAPPINGS:
            raise DamagedPickle(f"items are put into a {type(into).__name__}")
        if len(items) % 2:
            raise DamagedPickle("a key has no value")
        for key, value in zip(items[::2], items[1::2], strict=True):
            if type(value) is defaultdict and type(into) is defaultdict:
                self.chains[id(into)] = into
                if len(self.chains) > _MAX_CHAIN:
                    raise DamagedPickle(f"more than {_MAX_CHAIN} defaultdicts hold one another")
            try:
                into[self.key(key)] = value
            except TypeError as error:
                raise DamagedPickle(f"a key cannot be one: {error}") from None

    def build(self, made: Any, state: Any) -> Any:
        """Give what was made its attributes."""
        if type(made) is OrderedDict:
            set_attributes(made, state)
        elif isinstance(made, np.dtype):
            numpy_values.build_dtype(made, state)
        elif type(made) is np.ndarray:
            numpy_values.build_array(self, made, state)
        elif self.trusts(type(made)):
            self.call_trusted(set_state, made, state)
        else:
            raise ForbiddenGlobalError(f"{self.label}: sets attributes of a {type(made).__name__}, which is no value")
        return made


def set_attributes(made: Any, state: Any) -> None:
    """Set attributes that hide nothing of the class's own."""
    if type(state) is tuple and len(state) == 2 and state[1] is None:
        state = state[0]
    if state is None:
        return
    if type(state) not in (dict, OrderedDict) or not all(type(k) is str for k in state):
        reject(state, "attributes")
    for name, value in state.items():
        if hasattr(type(made), name) or name.startswith("__"):
            raise DamagedPickle(f"an attribute {name!r} would take the place of the class's own")
        made.__dict__[name] = value


def set_state(made: Any, state: Any) -> None:
    """Give a state as pickle does, for a class that the user calls safe."""
    if hasattr(made, "__setstate__"):
        made.__setstate__(state)
        return
    slots = None
    if isinstance(state, tuple) and len(state) == 2:
        state, slots = state
    if state:
        made.__dict__.update(state)
    for name, value in (slots or {}).items():
        setattr(made, name, value)
