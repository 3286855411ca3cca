"""The beginning of a machine function of Python objects: arguments are checked, and whatever does not fit is handed on, before anything is computed."""

from __future__ import annotations

from collections.abc import Sequence

from tritensor.llvm.objects.functions import OTHERWISE, OWN
from tritensor.llvm.objects.heads import ALIGNED, KNOWN, Heads
from tritensor.llvm.simd import LLVM

_PLACES = {name: k for k, name in enumerate(KNOWN)}


class Entry:
    """The text of a function (self, arguments, how many, names) under construction. Each value has a name of its own, %e and a number.

    Arguments stand in a row: those given by place, then those by name.
    """

    def __init__(self, at: Heads, arguments: int, names: int = 0) -> None:
        """`arguments` in all, the last of which are given by name: the first `names` own objects are those names, in that order."""
        self.at, self.count = at, 0
        self.rooms: list[str] = []
        self.made: list[str] = []
        self.lines: list[str] = []
        self.table = self.load("ptr", "%self", at.data)
        self.require(f"icmp eq i64 %given, {arguments - names}")
        if names:
            self.require("icmp ne ptr %names, null")
            self.require(f"icmp eq i64 {self.call('i64', 'PyTuple_Size', 'ptr %names')}, {names}")
            for k in range(names):
                found = self.call("ptr", "PyTuple_GetItem", "ptr %names", f"i64 {k}")
                self.require(f"icmp eq ptr {found}, {self.own(k)}")
        else:
            self.require("icmp eq ptr %names, null")

    # values
    def value(self, text: str) -> str:
        """One instruction, and the name of what it makes."""
        self.count += 1
        self.lines.append(f"  %e{self.count} = {text}")
        return f"%e{self.count}"

    def load(self, kind: str, base: str, offset: int) -> str:
        """What lies so many bytes behind an address."""
        return self.value(f"load {kind}, ptr {self.value(f'getelementptr i8, ptr {base}, i64 {offset}')}")

    def room(self, kind: str, align: int = 8) -> str:
        """A place on the stack."""
        self.count += 1
        self.rooms.append(f"  %e{self.count} = alloca {kind}, align {align}")
        return f"%e{self.count}"

    def known(self, name: str) -> str:
        """The address of one of heads.KNOWN."""
        return self.load("ptr", self.table, 8 * _PLACES[name])

    def own(self, place: int, kind: str = "ptr") -> str:
        """An entry of the function's own."""
        return self.load(kind, self.table, 8 * (OWN + place))

    def call(self, kind: str, name: str, *arguments: str) -> str:
        """A call of a function of Python or numpy."""
        return self.value(f"call {kind} {self.known(name)}({', '.join(arguments)})")

    # ways
    def label(self) -> str:
        self.count += 1
        return f"l{self.count}"

    def begin(self, label: str) -> None:
        """What follows is reached by this label alone: the lines before have given an answer."""
        self.lines.append(f"{label}:")

    def require(self, condition: str, otherwise: str = "otherwise") -> None:
        """Go on where the instruction gives 1, else to a label, which hands the call on."""
        following = self.label()
        self.lines += [f"  br i1 {self.value(condition)}, label %{following}, label %{otherwise}", f"{following}:"]

    # arguments
    def argument(self, place: int) -> str:
        return self.load("ptr", "%arguments", 8 * place)

    def array(self, place: int, descr: str) -> str:
        """An argument that is an array, no subclass of it, of this type of numbers and aligned."""
        x = self.of_type(place, "ndarray")
        self.require(f"icmp eq ptr {self.load('ptr', x, self.at.descr)}, {descr}")
        aligned = self.value(f"and i32 {self.load('i32', x, self.at.flags)}, {ALIGNED}")
        self.require(f"icmp ne i32 {aligned}, 0")
        return x

    def of_type(self, place: int, name: str, otherwise: str = "otherwise") -> str:
        """An argument of this very type, no subclass of it."""
        x = self.argument(place)
        self.require(f"icmp eq ptr {self.load('ptr', x, self.at.type)}, {self.known(name)}", otherwise)
        return x

    def whole(self, place: int) -> str:
        """A Python int that 64 bits hold."""
        x, over = self.of_type(place, "int"), self.room("i32")
        n = self.call("i64", "PyLong_AsLongLongAndOverflow", f"ptr {x}", f"ptr {over}")
        self.require(f"icmp eq i32 {self.value(f'load i32, ptr {over}')}, 0")
        return n

    def number(self, place: int, kind: str) -> str:
        """A Python float or int, at an address as f32 or f64."""
        room, whole, stored = self.room(LLVM[kind]), self.label(), self.label()
        y = self.load("double", self.of_type(place, "float", whole), self.at.value)
        y = y if kind == "f64" else self.value(f"fptrunc double {y} to float")
        self.lines += [f"  store {LLVM[kind]} {y}, ptr {room}", f"  br label %{stored}"]
        self.begin(whole)
        y = self.value(f"sitofp i64 {self.whole(place)} to {LLVM[kind]}")
        self.lines += [f"  store {LLVM[kind]} {y}, ptr {room}", f"  br label %{stored}"]
        self.begin(stored)
        return room

    # results
    def new_array(self, count: str, dims: str, number: str, fortran: str = "i32 0") -> str:
        """A new array of `count` (i32) sizes of the type of this number, in C's order or Fortran's. Where there is no memory, numpy's error is raised."""
        strides = data = base = "ptr null"
        given = f"ptr {self.known('ndarray')}", f"i32 {count}", f"ptr {dims}", f"i32 {number}"
        return self.own_object(self.call("ptr", "PyArray_New", *given, strides, data, "i32 0", fortran, base))

    def own_object(self, y: str) -> str:
        """A new object, or an error, by which all that were made before are let go."""
        failed, following = self.label(), self.label()
        self.lines += [f"  br i1 {self.value(f'icmp ne ptr {y}, null')}, label %{following}, label %{failed}"]
        self.begin(failed)
        self.let_go()
        self.give("null")
        self.begin(following)
        self.made.append(y)
        return y

    def let_go(self) -> None:
        """Drop what was made."""
        self.lines += [f"  call void {self.known('Py_DecRef')}(ptr {y})" for y in self.made]

    def give(self, y: str) -> None:
        """The answer."""
        self.lines.append(f"  ret ptr {y}")

    def give_all(self, objects: Sequence[str | None], dropped: Sequence[str] = ()) -> None:
        """The answer: one object, or a tuple of several, in which None stands for what there is not. `dropped` were made on the way."""
        if len(objects) == 1 and objects[0] is not None:
            return self.give(objects[0])
        y = self.own_object(self.call("ptr", "PyTuple_New", f"i64 {len(objects)}"))
        self.lines += [f"  call void {self.known('Py_DecRef')}(ptr {x})" for x in dropped]
        for k, x in enumerate(objects):
            if x is None:
                x = self.known("None")
                self.lines.append(f"  call void {self.known('Py_IncRef')}(ptr {x})")
            self.call("i32", "PyTuple_SetItem", f"ptr {y}", f"i64 {k}", f"ptr {x}")
        return self.give(y)

    def text(self) -> str:
        """The whole function, which has to end with a way that gives an answer."""
        ends = [
            "otherwise:",
            f"  %at.vectorcall = getelementptr i64, ptr {self.table}, i64 {_PLACES['PyObject_Vectorcall']}",
            "  %vectorcall = load ptr, ptr %at.vectorcall",
            f"  %at.function = getelementptr i64, ptr {self.table}, i64 {OTHERWISE}",
            "  %function = load ptr, ptr %at.function",
            "  %answer = tail call ptr %vectorcall(ptr %function, ptr %arguments, i64 %given, ptr %names)",
            "  ret ptr %answer",
            "}",
            "",
        ]
        head = "define ptr @call(ptr %self, ptr %arguments, i64 %given, ptr %names) {"
        return "\n".join([head, "entry:", *self.rooms, *self.lines, *ends])
