"""Cross-entropy of rows of logits and one label each in machine code: the loss of a row, and its gradient, while the row is in the cache."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from tritensor.llvm.objects.heads import Heads
from tritensor.llvm.objects.rows import LABEL, NEW_PAIR, NEW_ROW, NEW_ROWS, PAIR, ROWS, RowsCall, Types
from tritensor.llvm.objects.strided import shape_functions
from tritensor.llvm.passes.row_programs import Operand, RowProgram
from tritensor.llvm.simd import LLVM, select
from tritensor.llvm.simd_functions import exp, log


def _losses(p: Any, x: Any, labels: Any, peaks: Any, losses: Any, ignored: Any) -> None:
    """(m - x[label]) + log sum e^(x - m), m = max x, 0 where the label is ignored; m and the sum are kept."""
    m = p.largest(x)
    powers = p.sum(lambda x, m: exp(x - m), x, m)
    p.keep(peaks, m)
    p.keep(peaks, powers, 1)
    label = p.read(labels)
    counts = label != ignored
    p.keep(losses, select(counts, (m - p.pick(x, select(counts, label, 0.0))) + log(powers), 0.0))


def _gradients(p: Any, x: Any, labels: Any, peaks: Any, dx: Any, ignored: Any, up: Any) -> None:
    """up (softmax - one-hot), 0 in a row whose label is ignored, however wild it is."""
    label, m = p.read(labels), p.read(peaks)
    counts = label != ignored
    share = select(counts, up / p.read(peaks, 1), 0.0)
    p.each(
        lambda x, m, k, c: select(c > 0, exp(x - m) * k, 0.0), x, m, share, select(counts, p.scalars.constant(1, "f64"), 0.0), into=(dx,)
    )
    place = select(counts, label, 0.0)
    p.put(dx, place, select(counts, exp(p.pick(x, place) - m) * share - up, 0.0))


_COUNTED = """
; how many labels are not the ignored one; -1 where one is no class
define internal i64 @counted(ptr %labels, i64 %rows, i64 %classes, i64 %ignored) {
entry:
  br label %one
one:
  %i = phi i64 [0, %entry], [%next, %on]
  %count = phi i64 [0, %entry], [%more, %on]
  %at = getelementptr i64, ptr %labels, i64 %i
  %label = load i64, ptr %at
  %counts = icmp ne i64 %label, %ignored
  %class = icmp ult i64 %label, %classes
  %skipped = xor i1 %counts, true
  %known = or i1 %skipped, %class
  %step = zext i1 %counts to i64
  %more = add i64 %count, %step
  %next = add i64 %i, 1
  br i1 %known, label %on, label %wrong
on:
  %left = icmp slt i64 %next, %rows
  br i1 %left, label %one, label %done
done:
  ret i64 %more
wrong:
  ret i64 -1
}
"""
_TOTAL = """
define internal double @total(ptr %numbers, i64 %n) {
entry:
  br label %one
one:
  %i = phi i64 [0, %entry], [%next, %one]
  %sum = phi double [0.0, %entry], [%more, %one]
  %at = getelementptr KIND, ptr %numbers, i64 %i
  %x = load KIND, ptr %at
  %wide = WIDENED
  %more = fadd double %sum, %wide
  %next = add i64 %i, 1
  %left = icmp slt i64 %next, %n
  br i1 %left, label %one, label %done
done:
  ret double %more
}
"""


class _LabelsCall(RowsCall):
    """A function of logits (n, C), float32 or float64, and labels (n,); the first number is the label that is ignored."""

    def check(self, most: int) -> None:
        super().check(most)
        self.require(f"icmp eq i64 {self.depth}, 2")
        ignored = self.value(f"fptosi double {self.value(f'bitcast i64 {self.numbers[0]} to double')} to i64")
        labels = self.load("ptr", self.arrays[1], self.at.data)
        self.count_of_labels = self.value(f"call i64 @counted(ptr {labels}, i64 {self.rows}, i64 {self.n}, i64 {ignored})")
        self.require(f"icmp sge i64 {self.count_of_labels}, 0")
        self.share = self.value(f"sitofp i64 {self.count_of_labels} to double")
        self.kind = LLVM["f64" if self.dtype.itemsize == 8 else "f32"]

    def as_stored(self, x: str) -> str:
        """A double in the logits' type."""
        return x if self.kind == "double" else self.value(f"fptrunc double {x} to {self.kind}")

    def single(self, x: str, number: str) -> str:
        """A new array of no dimensions."""
        y = self.new_array("0", "null", number)
        self.lines.append(f"  store {self.kind} {self.as_stored(x)}, ptr {self.load('ptr', y, self.at.data)}")
        return y

    def text_with(self) -> str:
        widened = "fadd double %x, 0.0" if self.kind == "double" else "fpext float %x to double"
        return shape_functions(self.at) + _COUNTED + _TOTAL.replace("KIND", self.kind).replace("WIDENED", widened) + self.text()


def _loss_entry(reduction: str, at: Heads, roles: Any, types: Types, numbers: int, axes: bool, most: int) -> str:
    """Gives the loss, (n, 2) of the rows' maxima and sums of powers, and what a mean divides by."""
    call = _LabelsCall(at, roles, types, numbers, axes)
    call.check(most)
    made = call.make()
    call.run(made)
    peaks, losses, number = made[2], made[3], call.own(len(call.arrays), "i32")
    if reduction == "none":
        call.give_all((losses, peaks, call.new_array("1", call.sizes("0"), number)))
        return call.text_with()
    loss = call.value(f"call double @total(ptr {call.load('ptr', losses, at.data)}, i64 {call.rows})")
    if reduction == "mean":
        loss = call.value(f"fdiv double {loss}, {call.share}")
    given = [call.single(loss, number), peaks]
    given.append(call.single(call.share, number) if reduction == "mean" else call.new_array("1", call.sizes("0"), number))
    call.give_all(given, dropped=(losses,))
    return call.text_with()


def _gradient_entry(reduction: str, at: Heads, roles: Any, types: Types, numbers: int, axes: bool, most: int) -> str:
    call = _LabelsCall(at, roles, types, numbers, axes)
    call.check(most)
    if reduction == "mean":
        up = call.value(f"fdiv double {call.value(f'bitcast i64 {call.numbers[1]} to double')}, {call.share}")
        call.numbers[1] = call.value(f"bitcast double {up} to i64")
    made = call.make()
    call.run(made)
    call.give_all([made[3]])
    return call.text_with()


LOSSES = {
    reduction: RowProgram(_losses, (ROWS, LABEL, NEW_PAIR, NEW_ROW), entry=functools.partial(_loss_entry, reduction))
    for reduction in ("none", "mean", "sum")
}
GRADIENTS = {
    reduction: RowProgram(_gradients, (ROWS, LABEL, PAIR, NEW_ROWS), entry=functools.partial(_gradient_entry, reduction))
    for reduction in ("mean", "sum")
}


def losses(x: np.ndarray, target: np.ndarray, ignore_index: int, reduction: str) -> tuple[np.ndarray, np.ndarray] | None:
    """The losses of many rows and their peaks (n, 2); None where there is no machine code. Every label is a class or ignored."""
    (n, classes), kept = x.shape, np.float64 if x.dtype.itemsize == 8 else np.float32
    made, peaks = np.empty(n, kept), np.empty((n, 2), kept)
    singles = [Operand(v, step, one="row") for v, step in ((np.ascontiguousarray(target), 1), (peaks, 2), (made, 1))]
    done = LOSSES[reduction]((n, 1, classes), [Operand(np.ascontiguousarray(x), classes), *singles], (ignore_index,))
    return (made, peaks) if done else None


def gradients(x: np.ndarray, target: np.ndarray, peaks: np.ndarray, ignore_index: int, up: float, reduction: str) -> np.ndarray | None:
    """`up` times the gradient of every row's loss."""
    n, classes = x.shape
    dx = np.empty(x.shape, x.dtype)
    singles = [Operand(np.ascontiguousarray(v), step, one="row") for v, step in ((target, 1), (peaks, 2))]
    done = GRADIENTS[reduction](
        (n, 1, classes), [Operand(np.ascontiguousarray(x), classes), *singles, Operand(dx, classes)], (ignore_index, up)
    )
    return dx if done else None
