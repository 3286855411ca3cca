"""Two runs of one program compared, statement by statement: the first thing that differs is the finding."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tests.fuzz.findings import Finding
from tests.fuzz.program import Program, facts
from tests.fuzz.running import UNREADABLE, Look, Step, Trace

# Relative and absolute, by type: what two right libraries may differ by at once. What is further apart is held against the float64 program.
CLOSE = {"float16": (4e-3, 1e-4), "bfloat16": (3e-2, 1e-3), "float32": (2e-5, 2e-6), "complex64": (2e-5, 2e-6)}
WIDE = (1e-9, 1e-11)
UNIT = {"float16": 2.0**-11, "bfloat16": 2.0**-8, "float32": 2.0**-24, "complex64": 2.0**-24}
# What torch refuses for the sake of a right answer must be refused here; a type or a spelling that it does not take may work.
# What ours keeps for backward may be less than torch keeps, so that fewer writes are errors (finite differences judge the gradients), and a right side
# that overlaps the left is copied (docs/differences.md).
SAFETY = re.compile(
    r"more than one element of the written-to|leaf [Vv]ariable|being modified in-?place|does not require grad|internal overlap"
)
BUILTINS = (
    NotImplementedError,
    ZeroDivisionError,
    IndexError,
    KeyError,
    TypeError,
    ValueError,
    AttributeError,
    AssertionError,
    RuntimeError,
)
# Ops that compute no sum: the sign of a zero is that of IEEE's rules.
SIGNED = {
    "neg",
    "abs",
    "mul",
    "div",
    "clone",
    "contiguous",
    "getitem",
    "setitem",
    "copy_",
    "neg_",
    "mul_",
    "div_",
    "where",
    "cat",
    "stack",
    "flip",
    "roll",
    "copysign",
    "fill_",
    "masked_fill",
    "transpose",
    "view",
    "reshape",
    "narrow",
    "select",
    "expand",
    "permute",
    "sqrt",
    "to",
    "float",
    "double",
    "trunc",
    "ceil",
    "round",
    "maximum",
    "minimum",
    "repeat",
    "tile",
    "index_select",
    "gather",
}
UNSIGNED = re.compile(
    r"cum|sum|mean|relu|sinc|imum|clamp|lerp|addc|std|var|prod|norm|mod|rem|[%@]|outer|dot|kron|cov"
)  # whose zeros have no sign that is promised
NEW_MODULE = re.compile(r"\w+ = nn\.[A-Z][^;]*$")  # one whose parameters were drawn and not yet filled
PERMITTED = Finding("", "", "", "works here and not there: the runs part, and nothing behind is compared")


def kinds_of(error: BaseException) -> str:
    """The builtin class under which people catch an error; NotImplementedError counts as the RuntimeError that it is."""
    for kind in BUILTINS[1:]:
        if isinstance(error, kind):
            return kind.__name__
    return type(error).__name__


def same_error(ours: BaseException, theirs: BaseException) -> bool:
    """Whether a program that catches theirs catches ours."""
    if isinstance(theirs, AttributeError | AssertionError | KeyError | ZeroDivisionError):
        return True  # torch's own code stumbled; a named error is better
    builtin = next(c for c in type(theirs).__mro__ if c.__module__ == "builtins")
    if builtin is NotImplementedError:
        builtin = RuntimeError if not isinstance(ours, TypeError) else TypeError
    return isinstance(ours, builtin)


_MADE_EXACT = re.compile(r"tt\.tensor\(.*dtype=tt\.(?:float64|complex128)")


def coarsest(program: Program) -> str:
    """The type whose roundings a program's numbers may carry, whatever type they end in."""
    text = "\n".join(program.statements)
    if "bfloat16" in text or "optim.Muon" in text:  # which iterates in bfloat16
        return "bfloat16"
    if "float16" in text or "half()" in text:
        return "float16"
    exact = (
        "float64" in text
        and "float32" not in text
        and "complex64" not in text
        and text.count("tt.tensor(") <= len(_MADE_EXACT.findall(text))
    )
    return "float64" if exact else "float32"


def close(ours: np.ndarray, theirs: np.ndarray, dtype: str) -> bool:
    """Equal up to a few roundings of the type; integers and bools exactly; NaN equals NaN."""
    if ours.dtype.kind not in "fc" or ours.tobytes() == theirs.tobytes():
        return bool(np.array_equal(ours, theirs)) or ours.dtype.kind in "fc"
    relative, absolute = CLOSE.get(dtype, WIDE)
    with np.errstate(all="ignore"):
        return bool(np.allclose(ours, theirs, rtol=relative, atol=absolute, equal_nan=True))


def signs_agree(ours: np.ndarray, theirs: np.ndarray) -> bool:
    """Whether zeros have the same sign."""
    if ours.dtype.kind != "f":
        return True
    zero = (ours == 0) & (theirs == 0)
    return bool((np.signbit(ours) == np.signbit(theirs))[zero].all())


def _told(ours: np.ndarray, theirs: np.ndarray) -> np.ndarray:
    """Their gradient with ours where theirs is NaN: zero times infinity there, where here a zero wins (docs/differences.md) or the limit is told."""
    if ours.dtype.kind not in "fc" or ours.shape != theirs.shape:
        return theirs
    return np.where(np.isnan(theirs), ours, theirs)


Exact = Callable[[], Any] | None  # what the float64 program has there, asked for only where two answers differ


class Comparison:
    """How one run is held against another. `strict` asks strides and flags, which a run in another type or formulation need not keep."""

    def __init__(self, judge: str, names: tuple[str, str], strict: bool = True, truth: Callable[[], Trace] | None = None) -> None:
        self.judge, self.names, self.strict, self.truth = judge, names, strict, truth
        self.strides = self.flags = strict
        self.signs = False  # ask the sign of zeros, where no sum made them
        self.unit, self.gradient, self.signed = "float32", False, False
        self.gradients: set[str] = set()  # names of gradients
        self.size = 1.0  # of the largest number so far, whose rounding may be what is left of others

    def first(self, program: Program, ours: Trace, theirs: Trace) -> Finding | None:
        """The first difference, or None."""
        self.unit, self.size, self.gradients = coarsest(program), _largest(ours), set()
        self.signs &= not any(UNSIGNED.search(code) for code in program.statements)
        laid: Finding | None = None  # other strides: told if nothing worse is found; behind them errors may be theirs
        for mine, other in zip(ours.steps, theirs.steps, strict=True):
            found = self._step(program.statements[mine.index], mine, other)
            if found is not None and found.nature == "strides":
                laid = laid or found
            elif found is not None:
                return laid if found is PERMITTED or (laid and "raises" in found.nature) else found
        return laid

    def values(self, program: Program, one: Any, other: Any) -> str | None:
        """How two values differ that one program made."""
        self.unit, self.gradient, self.signed = coarsest(program), False, False
        return self._value(one, other, None, False)

    def _finding(self, code: str, nature: str, detail: str, one: Any, other: Any) -> Finding:
        answers = (f"{self.names[0]}: {one}", f"{self.names[1]}: {other}")
        return Finding(self.judge, nature, facts(code).op, f"{detail} in `{code[:120]}`", answers)

    def _step(self, code: str, mine: Step, other: Step) -> Finding | None:
        if mine.skipped or other.skipped:  # what was lost has been compared where it was lost
            return PERMITTED if mine.skipped != other.skipped and not _pure(code) else None
        if mine.error is not None or other.error is not None:
            return self._raised(code, mine.error, other.error)
        said = facts(code)
        self.signed = self.signs and facts(code).op in SIGNED
        if said.differentiates:
            self.gradients |= said.sets
        for name in mine.looks.keys() & other.looks.keys():
            if other.looks[name] == UNREADABLE and mine.looks[name] != UNREADABLE:
                return PERMITTED
            self.gradient = said.differentiates or name in self.gradients
            drawn = name.startswith(("drawn", "holds")) or bool(NEW_MODULE.match(code))
            exact = None if self.truth is None else lambda n=name: self.truth().steps[mine.index].looks.get(n)
            nature = self._value(mine.looks[name], other.looks[name], exact, drawn)
            if nature:
                return self._finding(code, nature, f"of {name}", mine.looks[name], other.looks[name])
        return None

    def _raised(self, code: str, mine: BaseException | None, other: BaseException | None) -> Finding | None:
        """What differs where one run has raised or both have."""
        if mine is not None and other is not None:
            if not same_error(mine, other) and not facts(code).differentiates:
                return self._finding(code, "error kind", f"{type(mine).__name__} and {type(other).__name__}", mine, other)
            return None if _pure(code) else PERMITTED  # torch may have written a part before
        if other is not None and not SAFETY.search(str(other)):
            return None if _pure(code) else PERMITTED  # what it set is lost there: what reads it is passed over
        nature = f"raises {kinds_of(mine or other)} in {self.names[0] if mine else self.names[1]} alone"
        shown = [f"{type(e).__name__}: {(str(e).splitlines() or [''])[0][:200]}" if e else "no error" for e in (mine, other)]
        return self._finding(code, nature, shown[0] if mine else shown[1], *shown)

    def _value(self, one: Any, other: Any, exact: Exact, drawn: bool) -> str | None:
        if isinstance(one, Look) and isinstance(other, Look):
            return self._tensor(one, other, exact, drawn)
        if isinstance(one, tuple) and isinstance(other, tuple):
            if len(one) != len(other):
                return "length"
            parts = enumerate(zip(one, other, strict=True))
            return next((n for n in (self._value(a, b, _within(exact, k), drawn) for k, (a, b) in parts) if n), None)
        if isinstance(one, dict) and isinstance(other, dict):
            if list(one) != list(other):
                return "keys"
            return next((n for n in (self._value(one[k], other[k], _within(exact, k), drawn) for k in one) if n), None)
        if isinstance(one, float | complex) and type(one) is type(other):
            return None if drawn or close(np.asarray(one), np.asarray(other), self.unit) else "values"
        if type(one) is not type(other):
            return "kind"
        return None if drawn or one == other else "values"

    def _tensor(self, one: Look, other: Look, exact: Exact, drawn: bool, of_grad: bool = False) -> str | None:
        if one.shape != other.shape and not drawn:
            return "shape"
        if self.strict and one.dtype != other.dtype:
            return "dtype"
        dtype = one.dtype if one.dtype in CLOSE and CLOSE[one.dtype] > CLOSE.get(self.unit, WIDE) else self.unit
        theirs = _told(one.values, other.values) if of_grad or self.gradient else other.values
        if not drawn and not close(one.values, theirs, dtype) and not self._near_truth(one, other, exact):
            return "values"
        if self.strict and self.signed and not drawn and not of_grad and not signs_agree(one.values, other.values):
            return "sign of zero"
        # under create_graph a gradient is in the graph of all that its op has there, of which it may be no function
        if self.flags and not of_grad and not self.gradient and (one.requires_grad, one.is_leaf) != (other.requires_grad, other.is_leaf):
            return "flags"
        # torch's gradients are often expanded; ours are memory of their own, which can be written to
        if self.strides and not self.gradient and not of_grad and one.strides != other.strides:
            return "strides"
        if (one.grad is None) != (other.grad is None):
            return "grad is None"
        if one.grad is not None:
            nature = self._tensor(one.grad, other.grad, _grad(exact), drawn, of_grad=True)
            return f"{nature} of grad" if nature else None
        return None

    def _near_truth(self, one: Look, other: Look, truth: Exact) -> bool:
        """Whether ours is about as near to the float64 program's value as theirs: both are rounded, of numbers that cancel."""
        exact = truth() if truth is not None and one.values.dtype.kind in "fc" and self.unit in UNIT else None
        if not isinstance(exact, Look) or exact.shape != one.shape:
            return False
        with np.errstate(all="ignore"):
            finite = np.isfinite(exact.values)
            if not (np.isfinite(one.values) == np.isfinite(other.values)).all() or not np.array_equal(
                one.values[~np.isfinite(one.values)], other.values[~np.isfinite(other.values)], equal_nan=True
            ):
                return False
            mine, theirs = (np.abs(v.astype(exact.values.dtype) - exact.values)[finite] for v in (one.values, other.values))
            scale = max(np.abs(exact.values[finite]).max(initial=0.0), self.size) * max(UNIT[self.unit], UNIT.get(one.dtype, 0.0))
            return bool((mine[np.isfinite(mine)] <= 30 * theirs.max(initial=0.0) + 60 * scale).all())


def _largest(trace: Trace) -> float:
    """The largest finite number below 100 in a run, also in a net and its gradients: the size of what is summed."""
    looks = [x for step in trace.steps for seen in step.looks.values() for x in _looks(seen) if x.values.dtype.kind == "f"]
    return max((float(np.abs(v[np.isfinite(v) & (np.abs(v) < 100)]).max(initial=1.0)) for v in (x.values for x in looks)), default=1.0)


def _looks(seen: Any) -> Iterator[Look]:
    """All tensors in what was seen, each with its gradient."""
    if isinstance(seen, Look):
        yield seen
        yield from _looks(seen.grad)
    elif isinstance(seen, tuple | dict):
        for part in seen.values() if isinstance(seen, dict) else seen:
            yield from _looks(part)


def _within(exact: Exact, key: Any) -> Exact:
    """The exact value of a part."""

    def part() -> Any:
        whole = exact()
        try:
            return whole[key]
        except (KeyError, IndexError, TypeError):
            return None

    return None if exact is None else part


def _grad(exact: Exact) -> Exact:
    return None if exact is None else lambda: getattr(exact(), "grad", None)


def _pure(code: str) -> bool:
    """Whether a statement does no more than give a name to a value."""
    return bool(facts(code).sets) and not re.search(r"_\(|out=|backward|step\(|load|\.pop\(", code)
