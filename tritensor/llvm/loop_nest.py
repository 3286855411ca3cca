"""Loop nests in LLVM's intermediate language: `with nest.loop("c", "%channels"): nest.lines += [...]`."""

from __future__ import annotations

import ctypes
from collections.abc import Collection, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from tritensor.llvm import compiler


class LoopNest:
    """The body of a function under construction, from its entry on. Every loop runs at least once."""

    def __init__(self) -> None:
        self.lines: list[str] = ["entry:"]
        self.label = "entry"

    @contextmanager
    def loop(self, name: str, count: str, **carried: tuple[str, ...]) -> Iterator[None]:
        """A loop whose number %<name> goes from 0 to count - 1. A value `acc=(type, start)` is carried along: %acc at the head of each turn is what
        the turn before has left as %acc.new, which holds the last one behind the loop; `acc=(type, start, left)` names that otherwise."""
        following = {v: (kind, start, *(left or (f"%{v}.new",))) for v, (kind, start, *left) in carried.items()}
        self.lines += [
            f"  br label %{name}.head",
            f"{name}.head:",
            f"  %{name} = phi i64 [0, %{self.label}], [%{name}.next, %{name}.latch]",
            *[f"  %{v} = phi {kind} [{start}, %{self.label}], [{left}, %{name}.latch]" for v, (kind, start, left) in following.items()],
        ]
        self.label = f"{name}.head"
        yield
        self.lines += [
            f"  br label %{name}.latch",
            f"{name}.latch:",
            f"  %{name}.next = add nuw i64 %{name}, 1",
            f"  %{name}.more = icmp ult i64 %{name}.next, {count}",
            f"  br i1 %{name}.more, label %{name}.head, label %{name}.end",
            f"{name}.end:",
        ]
        self.label = f"{name}.end"

    @contextmanager
    def loops(self, counts: dict[str, str], **carried: tuple[str, str]) -> Iterator[None]:
        """Loops within each other, {name: count}, all of which carry the same values along."""
        with ExitStack() as open_:
            for name, count in counts.items():
                inner = name == list(counts)[-1]  # the innermost alone carries the names that its body reads
                here = {v if inner else f"{v}.{name}": (kind, start, f"%{v}.new") for v, (kind, start) in carried.items()}
                open_.enter_context(self.loop(name, count, **here))
                carried = {v: (kind, f"%{v}.{name}") for v, (kind, _) in carried.items()}
            yield

    @contextmanager
    def maybe_empty_loop(self, name: str, count: str) -> Iterator[None]:
        """A loop as above that carries nothing and may run no time."""
        self.lines += [
            f"  br label %{name}.head",
            f"{name}.head:",
            f"  %{name} = phi i64 [0, %{self.label}], [%{name}.next, %{name}.latch]",
            f"  %{name}.more = icmp ult i64 %{name}, {count}",
            f"  br i1 %{name}.more, label %{name}.body, label %{name}.end",
            f"{name}.body:",
        ]
        self.label = f"{name}.body"
        yield
        self.lines += [
            f"  br label %{name}.latch",
            f"{name}.latch:",
            f"  %{name}.next = add nuw i64 %{name}, 1",
            f"  br label %{name}.head",
            f"{name}.end:",
        ]
        self.label = f"{name}.end"

    def load_element(self, name: str, kind: str, array: str, place: str, align: int) -> None:
        """%<name> = array[place]."""
        self.lines += [
            f"  %{name}.at = getelementptr {kind}, ptr {array}, i64 {place}",
            f"  %{name} = load {kind}, ptr %{name}.at, align {align}",
        ]

    def offset_pointer(self, name: str, start: str, *steps: tuple[str, str]) -> None:
        """%<name> = start + the sum of the products of pairs, in bytes."""
        at = start
        for i, (a, b) in enumerate(steps):
            last = f"%{name}" if i == len(steps) - 1 else f"%{name}.{i}"
            self.lines += [f"  %{name}.by{i} = mul i64 {a}, {b}", f"  {last} = getelementptr i8, ptr {at}, i64 %{name}.by{i}"]
            at = last

    def text(self, *parameters: str, returns: str = "void") -> str:
        """The function `run` of these parameters; `returns` is the type and the value of what it answers."""
        return "\n".join([f"define {returns.split()[0]} @run({', '.join(parameters)}) {{", *self.lines, f"  ret {returns}", "}", ""])

    def compile(self, parameters: Iterable[str], pointers: Collection[str], declared: Iterable[str] = ()) -> Any:
        """`text` of these parameters, some of them pointers and the others int64, with what it calls declared; None where there is no machine
        code."""
        kinds = [(("ptr", ctypes.c_void_p) if p in pointers else ("i64", ctypes.c_int64), p) for p in parameters]
        text = "\n".join([self.text(*[f"{word} %{p}" for (word, _), p in kinds]), *declared, ""])
        return compiler.build_typed(text, None, *[kind for (_, kind), _ in kinds])
