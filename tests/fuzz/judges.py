"""Judges of a program's answers: torch, the same program run otherwise, mathematics."""

from __future__ import annotations

import io
import pickle
import random
import re
from collections.abc import Callable
from typing import Any

import numpy as np

import tritensor
from tests.fuzz.findings import Finding
from tests.fuzz.judging import BUILTINS, Comparison
from tests.fuzz.program import Program, facts
from tests.fuzz.running import UNREADABLE, Look, Trace, in_wide, look, look_or_none, run

SLIPS = (AttributeError, KeyError, AssertionError, NameError, RecursionError, SystemError)
PLAIN = (*BUILTINS, OSError, StopIteration, pickle.PicklingError)
OWN_WORDS = re.compile(r"^['\"]?[\w.]+( hook)?: |^name '\w+' is not defined")  # the house's form, `op: what is wrong`

Judge = Callable[[Program], Finding | None]


def beside_torch(torch: Any, signs: bool = False, strides: bool = True) -> Judge:
    """The same program in torch: values, types, shapes, flags, errors; strides and signs of zeros where they are promised."""

    def judge(program: Program) -> Finding | None:
        truth: list[Trace] = []

        def exact() -> Trace:
            if not truth:
                truth.append(in_wide(program, torch))
            return truth[0]

        compared = Comparison("torch", ("tritensor", "torch"), truth=exact)
        compared.signs, compared.strides = signs, strides
        return compared.first(program, run(program, tritensor), run(program, torch))

    return judge


def errors(program: Program) -> Finding | None:
    """Every error is one of those that people catch, and says something in one line; none is a slip of our own code."""
    for step in run(program, tritensor, watch=False).steps:
        error = step.error
        if error is None:
            continue
        code, said = program.statements[step.index], str(error).strip()
        op = facts(code).op
        asked = isinstance(error, AttributeError) and f".{getattr(error, 'name', None)}" in code  # of a name that the program itself spells
        if not isinstance(error, PLAIN) or (isinstance(error, SLIPS) and not OWN_WORDS.search(said) and not asked):
            return Finding("errors", f"{type(error).__name__} raised", op, said[:200])
        if ((not said and not isinstance(error, StopIteration)) or "\n" in said) and "loading state_dict" not in said:
            return Finding("errors", "not one line", op, repr(said)[:300])
    return None


def twice(program: Program) -> Finding | None:
    """A second run gives the same bits."""
    one, other = run(program, tritensor), run(program, tritensor)
    for mine, again in zip(one.steps, other.steps, strict=True):
        for name in mine.looks.keys() & again.looks.keys():
            if not _same(mine.looks[name], again.looks[name]):
                return Finding(
                    "twice",
                    "another answer",
                    facts(program.statements[mine.index]).op,
                    name,
                    (str(mine.looks[name]), str(again.looks[name])),
                )
    return None


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, Look) and isinstance(other, Look):
        return (
            (one.dtype, one.shape, one.strides, one.requires_grad) == (other.dtype, other.shape, other.strides, other.requires_grad)
            and one.values.tobytes() == other.values.tobytes()
            and _same(one.grad, other.grad)
        )
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) == len(other) and all(_same(a, b) for a, b in zip(one, other, strict=True))
    if isinstance(one, dict) and isinstance(other, dict):
        return list(one) == list(other) and all(_same(one[k], other[k]) for k in one)
    return one == other or (one != one and other != other)


def in_float64(program: Program) -> Finding | None:
    """The float64 program, and how far rounding errors of the type's size move it: an answer further away than that is wrong."""
    if any(re.search(r"\.(to|float|double)\(|1e-?\+?30", code) for code in program.statements):
        return None  # a cast is a copy or the tensor itself, and numbers fit a type or not: that would change
    wide = program.in_float64()
    ours, exact = run(program, tritensor), in_wide(program, tritensor)
    compared = Comparison("float64", ("tritensor", "in float64"), strict=False)
    found = compared.first(program, ours, exact)
    if found is None or not found.nature.startswith("values"):
        return None
    return found if far(ours, [exact, *(in_wide(shaken(wide, k), tritensor) for k in range(3))]) else None


def shaken(program: Program, number: int) -> Program:
    """The program whose literals are off by a float32's rounding: what it does to the answers is their condition."""
    draw = random.Random(number)
    lines = []
    for code in program.statements:
        if "tt.tensor(" in code and "tt.float64" in code and "=" in code and facts(code).op == "tensor":
            name = code.partition("=")[0].strip()
            code += f"\nwith tt.no_grad(): {name}.mul_({1 + draw.uniform(-1, 1) * 2e-7!r})"
        lines.append(code)
    return Program(tuple(lines))


def far(ours: Trace, exact: list[Trace]) -> bool:
    """Whether some answer of ours is further from the float64 program's than the float64 programs are from each other, and a few roundings."""
    for index, step in enumerate(ours.steps):
        for name, mine in step.looks.items():
            seen = [t.steps[index].looks.get(name) for t in exact]
            if (
                not isinstance(mine, Look)
                or mine.values.dtype.kind != "f"
                or not all(isinstance(s, Look) and s.shape == mine.shape for s in seen)
            ):
                continue
            with np.errstate(all="ignore"):
                spread = np.max([np.abs(s.values - seen[0].values) for s in seen[1:]], axis=0) if mine.values.size else np.zeros(mine.shape)
                unit = {"float16": 1e-2, "bfloat16": 6e-2}.get(mine.dtype, 1e-4)
                allowed = 100 * spread + unit * np.abs(seen[0].values) + unit
                off = np.abs(mine.values.astype(np.float64) - seen[0].values)
                if (np.isfinite(seen[0].values) & np.isfinite(mine.values) & np.isfinite(allowed) & (off > allowed)).any():
                    return True
    return False


def equal_pairs(program: Program) -> Finding | None:
    """left0 is right0, left1 is right1, ...: two ways to one answer, where one raises the other must, too. What is called holds0, holds1, ... is True."""
    trace = run(program, tritensor)
    compared = Comparison("pairs", ("left", "right"), strict=False)
    made = {name: step for step in trace.steps for name in facts(program.statements[step.index]).sets if PAIRED.match(name)}
    for name in [n for n in made if "left" in n]:
        left, right = made[name], made.get(name.replace("left", "right"))
        if right is None or left.skipped or right.skipped:
            continue
        code = program.statements[left.index]
        if (left.error is None) != (right.error is None):
            error = left.error or right.error
            said, side = str(error).partition("\n")[0], "left" if left.error else "right"
            return Finding(
                "pairs",
                f"{side} raises {type(error).__name__}",
                facts(code).op,
                f"{said} in `{code[:120]}`",
                (str(left.error), str(right.error)),
            )
        one, other = (trace.steps[s.index].looks.get(n) for s, n in ((left, name), (right, name.replace("left", "right"))))
        nature = compared.values(program, one, other) if left.error is None else None
        if nature:
            return Finding("pairs", nature, facts(code).op, f"in `{code[:160]}`", (str(one), str(other)))
    for step in trace.steps:
        for name in step.looks:
            if name.startswith("holds") and step.looks[name] is False:
                about = next((facts(s).op for s in program.statements if s.startswith("d =")), "d")
                return Finding("pairs", f"{name} is False", about, f"in `{program.statements[step.index][:200]}`")
    return None


PAIRED = re.compile(r"(drawn)?(left|right)\d")


def devices(program: Program) -> Finding | None:
    """The same program on the emulated GPU."""
    compared = Comparison("devices", ("cpu", "cuda"))
    truth: list[Trace] = []

    def exact() -> Trace:
        if not truth:
            truth.append(in_wide(program, tritensor))
        return truth[0]

    compared.truth = exact
    return compared.first(program, run(program, tritensor, "cpu"), run(program, tritensor, "cuda"))


def foreign_files(torch: Any) -> Judge:
    """What tritensor saves torch reads, and what torch saves tritensor reads; both with weights_only."""

    def judge(program: Program) -> Finding | None:
        for writer, reader in ((tritensor, torch), (torch, tritensor)):
            trace = run(program, writer, watch=False)
            if "state" not in trace.scope or not any("save(" in s for s in program.statements):
                return None
            code = next(s for s in program.statements if "save(" in s)
            buffer = io.BytesIO()
            try:
                writer.save(trace.scope["state"], buffer)
            except Exception:
                return None  # what cannot be saved is compared by the run itself
            buffer.seek(0)
            who = "torch reads ours" if reader is torch else "ours reads torch's"
            try:
                read = reader.load(buffer, weights_only=not any("weights_only=False" in s for s in program.statements))
            except Exception as error:
                return Finding("files", f"{who}: {type(error).__name__}", facts(code).op, str(error)[:300])
            one, other = look_or_none(trace.scope["state"]), look(read)
            if one is UNREADABLE:
                return None
            compared = Comparison("files", ("written", "read"))
            compared.flags = False  # what was in a graph comes back as a leaf
            nature = compared.values(program, one, other)
            if nature:
                return Finding("files", f"{who}: {nature}", facts(code).op, "the state", (str(one), str(other)))
        return None

    return judge
