"""Iterations in machine code: a step on each element's state, again and again, until the element is done."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tritensor.llvm import compiler
from tritensor.llvm.simd import Code, Vector

WIDTH = 8  # lanes
EVERY = 4  # steps from one look at what is done to the next
Step = Callable[..., Sequence[Any]]


class Iteration:
    """state = step(k, *state) for k = first, first + 1, ... while going(k, *state), which is asked after every few steps. Compiled when it is first
    needed; each element's result is the same whatever stands beside it."""

    def __init__(self, step: Step, going: Callable[..., Any], first: int = 1) -> None:
        self.step, self.going, self.first = step, going, first
        self.compiled: Any = None
        self.tried = False

    def __call__(self, state: Sequence[np.ndarray]) -> list[np.ndarray] | None:
        """What the state (n,) float64, at least one array of one element, comes to; None where numpy has to compute it."""
        if not self.tried:
            self.tried = True
            self.compiled = (
                None if compiler.refusal() else compiler.build_typed(self._text(len(state)), None, ctypes.c_void_p, ctypes.c_int64)
            )
        if self.compiled is None:
            return None
        n = state[0].size
        rows = np.empty((len(state), -(-n // WIDTH) * WIDTH))
        for row, x in zip(rows, state, strict=True):
            # the last element again: what stands there must end, too
            row[:n], row[n:] = x, x[-1]
        self.compiled(rows.ctypes.data, rows.shape[1])
        return list(rows[:, :n])

    def in_numpy(self, state: Sequence[np.ndarray]) -> list[np.ndarray]:
        """The same; elements that are done leave."""
        state, open_ = tuple(state), np.arange(state[0].size)
        found, k = [np.empty_like(x) for x in state], self.first
        while open_.size:
            for _ in range(EVERY):
                state = tuple(self.step(float(k), *state))
                k += 1
            on = np.asarray(self.going(float(k - 1), *state))
            # those that are done leave the arrays, so that a slow element does not keep the others at work
            if not on.all():
                for into, x in zip(found, state, strict=True):
                    into[open_[~on]] = x[~on]
                open_ = open_[on]
                state = tuple([x[on] for x in state])
        return found

    def _text(self, count: int) -> str:
        code = Code(WIDTH, "v")
        vector, truths = code.type("f64"), code.type("b1")
        before = [Vector(code, f"%s{i}", "f64") for i in range(count)]
        state: Sequence[Any] = before
        k = Vector(code, "%k", "f64")
        for i in range(EVERY):
            state = self.step(k + float(i), *state)
        on = self.going(k + float(EVERY - 1), *state)
        following = k + float(EVERY)
        each = range(count)
        return "\n".join([
            *sorted(code.declared),
            "define void @run(ptr %rows, i64 %n) {",
            "entry:",
            "  br label %row",
            "row:",
            "  %i = phi i64 [0, %entry], [%next, %done]",
            *[f"  %at{j} = mul i64 %n, {j}\n  %to{j} = add i64 %at{j}, %i\n  %p{j} = getelementptr double, ptr %rows, i64 %to{j}" for j in each],
            *[f"  %b{j} = load {vector}, ptr %p{j}, align 8" for j in each],
            "  br label %loop",
            "loop:",
            *[f"  %s{j} = phi {vector} [%b{j}, %row], [%n{j}, %loop]" for j in each],
            f"  %k = phi {vector} [{code.constant(float(self.first), 'f64').name}, %row], [{following.name}, %loop]",
            f"  %open = phi {truths} [{code.constant(1, 'b1').name}, %row], [%still, %loop]",
            *code.lines,
            *[f"  %n{j} = select {truths} %open, {vector} {made.name}, {vector} %s{j}" for j, made in enumerate(state)],
            f"  %still = and {truths} %open, {on.name}",
            f"  %bits = bitcast {truths} %still to i{WIDTH}",
            f"  %any = icmp ne i{WIDTH} %bits, 0",
            "  br i1 %any, label %loop, label %done",
            "done:",
            *[f"  store {vector} %n{j}, ptr %p{j}, align 8" for j in each],
            f"  %next = add i64 %i, {WIDTH}",
            "  %more = icmp slt i64 %next, %n",
            "  br i1 %more, label %row, label %end",
            "end:",
            "  ret void",
            "}",
            "",
        ])  # fmt: skip
