"""Programs over rows as functions of array objects: rows are the last dimensions of C-ordered arrays, results new arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import ml_dtypes
import numpy as np

from tritensor.llvm.objects.entries import Entry
from tritensor.llvm.objects.heads import C_ORDER, Heads
from tritensor.llvm.objects.strided import shape_functions

# What an operand is: an array of the first one's shape, one with a number for each row, or two, or an int64, a vector as long as a row. New ones are made;
# `new sums` are of float64, all rows are added to them, and they are given in the first array's type.
ROWS, ROW, PAIR, LABEL, VECTOR = "rows", "row", "pair", "label", "vector"
NEW_ROWS, NEW_ROW, NEW_PAIR, NEW_SUMS = NEW = "new rows", "new row", "new pair", "new sums"
_FLOATS = frozenset(map(np.dtype, (np.float16, ml_dtypes.bfloat16, np.float32, np.float64)))
_OF_ROWS = {ROW: 1, NEW_ROW: 1, LABEL: 1, PAIR: 2, NEW_PAIR: 2}  # numbers of each row
_FLOAT64, _LABELS = np.dtype(np.float64), (np.dtype(np.int64),)
_MOST = 4096  # columns whose sums find room on the stack

Types = Sequence[
    tuple[np.dtype, str] | None
]  # of a program's operands: (dtype, "row" where there is one number for each row); None: not there

_NARROW = """
define internal void @narrow(ptr %from, ptr %to, i64 %n) {
entry:
  br label %one
one:
  %i = phi i64 [0, %entry], [%next, %one]
  %from.at = getelementptr double, ptr %from, i64 %i
  %wide = load double, ptr %from.at
  %x = fptrunc double %wide to float
  %to.at = getelementptr float, ptr %to, i64 %i
  store float %x, ptr %to.at
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %one, label %done
done:
  ret void
}
"""


class Kind(NamedTuple):
    """What a program holds of an operand: its dtype, "row" where there is one number for each row; and the dtype of the array that is given back."""

    dtype: np.dtype
    one: str
    result: np.dtype


def types_of(roles: Sequence[str], given: dict[int, np.dtype | None]) -> list[Kind | None] | None:
    """The operands of a program from the given ones' dtypes, by their places, the first of which rules; a role of "" is not there. None where they do not
    go together."""
    dtype = next(iter(given.values()))
    # a class of numpy's numbers equals its dtype, but an argument of it is no array
    if dtype is None or not all(
        [t is None or (isinstance(t, np.dtype) and t in (_LABELS if roles[k] == LABEL else _FLOATS)) for k, t in given.items()]
    ):
        return None
    kept = _FLOAT64 if dtype.itemsize == 8 else np.dtype(np.float32)
    # sums are of the type of the vector whose gradient they are
    if NEW_SUMS in roles and (dtype.itemsize < 4 or any([t is not None and t is not dtype for t in given.values()])):
        return None
    new = {
        NEW_ROWS: Kind(dtype, "", dtype),
        NEW_ROW: Kind(kept, "row", kept),
        NEW_PAIR: Kind(kept, "row", kept),
        NEW_SUMS: Kind(_FLOAT64, "", dtype),
    }
    found: list[Kind | None] = []
    for k, role in enumerate(roles):
        t = given.get(k)
        found.append(new.get(role) if t is None else Kind(t, "row" if role in _OF_ROWS else "", t))
    return found


def agree(roles: Sequence[str], types: Types) -> bool:
    """Whether operands of these types can have these roles."""
    return len(roles) == len(types) and all(
        [t is None or t[1] == ("row" if role in _OF_ROWS else "") for role, t in zip(roles, types, strict=True)]
    )


class RowsCall(Entry):
    """The function of one combination of types: see `rows_entry`."""

    def __init__(self, at: Heads, roles: Sequence[str], types: Types, numbers: int, axes: bool) -> None:
        given = [k for k, role in enumerate(roles) if role not in NEW]
        super().__init__(at, len(given) + numbers + axes)
        self.roles, self.types = roles, types
        self.arrays: dict[int, str] = {}  # by operand
        for place, k in enumerate(given):
            if types[k] is None:
                self.require(f"icmp eq ptr {self.argument(place)}, {self.known('None')}")
                continue
            x = self.arrays[k] = self.array(place, self.own(len(self.arrays)))
            ordered = self.value(f"and i32 {self.load('i32', x, at.flags)}, {C_ORDER}")
            self.require(f"icmp ne i32 {ordered}, 0")
        self.first, self.dtype = self.arrays[given[0]], types[given[0]][0]  # type: ignore[index]
        self.numbers = [self.load("i64", self.number(len(given) + i, "f64"), 0) for i in range(numbers)]
        self.depth = self.value(f"sext i32 {self.load('i32', self.first, at.dims_count)} to i64")
        self.dims = self.load("ptr", self.first, at.dims)
        self.inner = self.whole(len(given) + numbers) if axes else "1"
        self.outer = self.value(f"sub i64 {self.depth}, {self.inner}")
        self.require(f"icmp sge i64 {self.inner}, 1")
        self.require(f"icmp sge i64 {self.outer}, 0")
        self.row_dims = self.value(f"getelementptr i64, ptr {self.dims}, i64 {self.outer}")
        self.rows = self.value(f"call i64 @product(i64 {self.outer}, ptr {self.dims})")
        self.n = self.value(f"call i64 @product(i64 {self.inner}, ptr {self.row_dims})")

    def check(self, most: int) -> None:
        """Shapes."""
        elements = self.value(f"mul i64 {self.rows}, {self.n}")
        self.require(f"icmp sgt i64 {elements}, 0")
        self.require(f"icmp slt i64 {elements}, {most}")
        if self.there(NEW_SUMS):
            self.require(f"icmp sle i64 {self.n}, {_MOST}")
        for k, x in self.arrays.items():
            if self.roles[k] == ROWS:
                self.require(f"call i1 @alike(ptr {self.first}, ptr {x})")
            else:
                elements = self.value(f"call i64 @elements(ptr {x})")
                each = _OF_ROWS.get(self.roles[k])
                self.require(f"icmp eq i64 {elements}, {self.value(f'mul i64 {self.rows}, {each}') if each else self.n}")

    def there(self, *roles: str) -> list[int]:
        """The operands of these roles that there are."""
        return [k for k, t in enumerate(self.types) if t is not None and self.roles[k] in roles]

    def make(self) -> dict[int, str]:
        """New arrays."""
        shapes = {NEW_ROWS: (self.depth, self.dims), NEW_ROW: (self.outer, self.dims), NEW_SUMS: (self.inner, self.row_dims)}
        if self.there(NEW_PAIR):
            shapes[NEW_PAIR] = ("2", self.sizes(self.rows, "2"))
        made: dict[int, str] = {}
        for k in self.there(*NEW):
            count, dims = shapes[self.roles[k]]
            made[k] = self.new_array(self.value(f"trunc i64 {count} to i32"), dims, self.own(len(self.arrays) + len(made), "i32"))
        return made

    def sizes(self, *sizes: str) -> str:
        """Numbers one after another in memory."""
        room = self.room(f"[{len(sizes)} x i64]")
        self.lines += [f"  store i64 {n}, ptr {self.value(f'getelementptr i64, ptr {room}, i64 {i}')}" for i, n in enumerate(sizes)]
        return room

    def run(self, made: dict[int, str]) -> None:
        """The program, by its table."""
        places = {k: self.load("ptr", x, self.at.data) for k, x in (self.arrays | made).items()}
        narrowed = {}
        bytes_of_sums = self.value(f"mul i64 {self.n}, 8")
        for k in self.there(NEW_SUMS):
            if self.dtype.itemsize == 4:  # rounded when all is added up
                narrowed[k], places[k] = places[k], self.value(f"alloca double, i64 {self.n}, align 64")
            self.lines.append(f"  call void @llvm.memset.p0.i64(ptr {places[k]}, i8 0, i64 {bytes_of_sums}, i1 false)")
        table = [("i64", self.rows), ("i64", "1"), ("i64", self.n)]
        for k, place in sorted(places.items()):
            table += [("ptr", place), ("i64", self.step(k)), ("i64", "0")]
        table += [("i64", x) for x in self.numbers]
        room = self.room(f"[{len(table)} x i64]")
        for i, (kind, x) in enumerate(table):
            self.lines.append(f"  store {kind} {x}, ptr {self.value(f'getelementptr i64, ptr {room}, i64 {i}')}")
        self.lines.append(f"  call void @run(ptr {room})")
        self.lines += [f"  call void @narrow(ptr {places[k]}, ptr {y}, i64 {self.n})" for k, y in narrowed.items()]

    def step(self, k: int) -> str:
        """Bytes from one row of an operand to the next."""
        size = self.types[k][0].itemsize  # type: ignore[index]
        if self.roles[k] in (ROWS, NEW_ROWS):
            return self.value(f"mul i64 {self.n}, {size}")
        return str(size * _OF_ROWS.get(self.roles[k], 0))


def rows_entry(at: Heads, roles: Sequence[str], types: Types, numbers: int, axes: bool, most: int) -> str:
    """The function @call(self, arguments, ...) that runs @run(table) of a program whose operands have these roles and types, and gives its new arrays, with
    None for those that are not there.

    Arguments are the operands that are not new, None for those that are not there, then numbers, then, if `axes`, how many dimensions make up a row, else
    the last one does. Own objects are the given operands' dtypes and the numbers of the new ones' types. Handed on are arrays of `most` elements or more, of
    none, and those that do not lie in C's order.
    """
    call = RowsCall(at, roles, types, numbers, axes)
    call.check(most)
    made = call.make()
    call.run(made)
    call.give_all([made.get(k) for k, role in enumerate(roles) if role in NEW])
    return shape_functions(at) + (_NARROW if call.there(NEW_SUMS) else "") + call.text()
