"""Loops over elements as functions of array objects: of one shape and order at once, of others that broadcast through rooms on the stack."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tritensor.llvm.objects.entries import Entry
from tritensor.llvm.objects.heads import C_ORDER, F_ORDER, Heads
from tritensor.llvm.objects.strided import MOST_DIMS, READER, reading_functions, shape_functions

_ROOM = 256  # elements that are read at a time where they do not lie one after the other


class _Call(Entry):
    """The function of one combination of types: see `elementwise_entry`."""

    def __init__(self, at: Heads, types: Sequence[np.dtype | None], result: np.dtype, kind: str, names: int) -> None:
        super().__init__(at, len(types), names)
        self.result = result
        self.arrays: dict[int, str] = {}  # by place, and so the addresses of numbers
        self.operands: dict[int, str] = {}
        for place, t in enumerate(types):
            if isinstance(t, np.dtype):
                self.arrays[place] = self.array(place, self.own(names + 1 + len(self.arrays)))
            else:
                self.operands[place] = self.number(place, kind)
        self.sizes = {place: t.itemsize for place, t in enumerate(types) if isinstance(t, np.dtype)}
        self.number_of_type = self.own(names, "i32")

    def run(self, n: str, to: str, addresses: dict[int, str], otherwise: str) -> None:
        """The loop over n elements that lie one after the other."""
        given = {**self.operands, **addresses}
        gave_up = self.value(f"call i64 @run(i64 {n}, ptr {to}, {', '.join(f'ptr {given[place]}' for place in sorted(given))})")
        self.require(f"icmp eq i64 {gave_up}, 0", otherwise)

    def lying_alike(self, most: int) -> None:
        """Arrays of one shape, all in C's order or all in Fortran's: one loop over all elements."""
        first, *others = self.arrays.values()
        orders = self.load("i32", first, self.at.flags)
        for x in others:
            orders = self.value(f"and i32 {orders}, {self.load('i32', x, self.at.flags)}")
            self.require(f"call i1 @alike(ptr {first}, ptr {x})", "apart")
        self.require(f"icmp ne i32 {self.value(f'and i32 {orders}, {C_ORDER | F_ORDER}')}, 0", "apart")
        n = self.value(f"call i64 @elements(ptr {first})")
        self.require(f"icmp slt i64 {n}, {most}")
        c_order = self.value(f"and i32 {orders}, {C_ORDER}")
        fortran = self.value(f"xor i32 {c_order}, {C_ORDER}")
        count, dims = self.load("i32", first, self.at.dims_count), self.load("ptr", first, self.at.dims)
        y = self.new_array(count, dims, self.number_of_type, f"i32 {fortran}")
        addresses = {place: self.load("ptr", x, self.at.data) for place, x in self.arrays.items()}
        self.run(n, self.load("ptr", y, self.at.data), addresses, "given.up")
        self.give(y)
        self.drop("given.up")

    def lying_apart(self, most: int) -> None:
        """Arrays that broadcast and lie anyhow: read by pieces into rooms, where the result lies in C's order."""
        self.begin("apart")
        sizes = self.room(f"[{MOST_DIMS} x i64]")
        dims = "0"
        for x in self.arrays.values():
            dims = self.value(f"call i64 @deeper(i64 {dims}, ptr {x})")
        self.require(f"icmp sle i64 {dims}, {MOST_DIMS}")
        for d in range(MOST_DIMS):
            self.lines.append(f"  store i64 1, ptr {self.value(f'getelementptr i64, ptr {sizes}, i64 {d}')}")
        for x in self.arrays.values():
            self.require(f"call i1 @joined(ptr {x}, i64 {dims}, ptr {sizes})")
        n = self.value(f"call i64 @product(i64 {dims}, ptr {sizes})")
        self.require(f"icmp slt i64 {n}, {most}")
        self.require(f"icmp sgt i64 {n}, 0")
        readers, sure = {place: self.room(f"[{READER} x i64]") for place in self.arrays}, "0"
        for place, x in self.arrays.items():
            said = self.value(f"call i64 @open(ptr {x}, i64 {dims}, ptr {sizes}, ptr {readers[place]})")
            known = self.value(f"icmp eq i64 {sure}, 3")
            self.require(f"or i1 {known}, {self.value(f'icmp ne i64 {said}, 0')}")
            sure = self.value(f"or i64 {sure}, {said}")
        y = self.new_array(self.value(f"trunc i64 {dims} to i32"), sizes, self.number_of_type)
        start, rooms = (
            self.load("ptr", y, self.at.data),
            {place: self.room(f"[{_ROOM * size} x i8]", 64) for place, size in self.sizes.items()},
        )
        self.lines += ["  br label %before.pieces", "before.pieces:", "  br label %piece", "piece:"]
        self.lines.append("  %done = phi i64 [0, %before.pieces], [%further, %read]")
        left = self.value(f"sub i64 {n}, %done")
        k = self.value(f"select i1 {self.value(f'icmp slt i64 {left}, {_ROOM}')}, i64 {left}, i64 {_ROOM}")
        for place, size in self.sizes.items():
            self.lines.append(f"  call void @read{size}(ptr {readers[place]}, ptr {rooms[place]}, i64 {k}, i64 {dims})")
        to = self.value(f"getelementptr i8, ptr {start}, i64 {self.value(f'mul i64 %done, {self.result.itemsize}')}")
        self.run(k, to, rooms, "given.up.apart")
        self.lines += ["  br label %read", "read:", f"  %further = add i64 %done, {k}"]
        more = self.value(f"icmp slt i64 %further, {n}")
        self.lines += [f"  br i1 {more}, label %piece, label %complete", "complete:"]
        self.give(y)
        self.drop("given.up.apart")

    def drop(self, label: str) -> None:
        """Where the loop has given up: let the result go, and hand the call on."""
        self.begin(label)
        self.let_go()
        self.lines.append("  br label %otherwise")
        self.made.clear()


def elementwise_entry(at: Heads, types: Sequence[np.dtype | None], result: np.dtype, kind: str, names: int, most: int) -> str:
    """The function @call(self, arguments, ...) that makes an array of the result's type and fills it by @run(n, result, operands...), which answers whether
    it gave up; and what it stands on.

    `types` are the dtypes of the arguments in their order, None of numbers; the last `names` come by name. Own objects are these names, then the
    number of the result's dtype, then the arrays' dtypes. Handed on are arrays of `most` elements or more, and those whose result does not lie in C's order,
    unless all lie in Fortran's.
    """
    call = _Call(at, types, result, kind, names)
    call.lying_alike(most)
    call.lying_apart(most)
    return shape_functions(at) + reading_functions(at, frozenset(call.sizes.values())) + call.text()
