"""assert_close: tensors, numbers, and sequences and mappings of them, compared within tolerances that their types set."""

from __future__ import annotations

import cmath
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from tritensor.ground import dtypes
from tritensor.ground.dtypes import DType
from tritensor.ops.array import to_host
from tritensor.tensor.core import Tensor
from tritensor.tensor.parsing.data import as_tensor

# (relative, absolute) by type; other types have to be equal.
PRECISIONS = {
    "float16": (1e-3, 1e-5), "bfloat16": (1.6e-2, 1e-5), "float32": (1.3e-6, 1e-5), "float64": (1e-7, 1e-7),
    "complex64": (1.3e-6, 1e-5), "complex128": (1e-7, 1e-7),
}  # fmt: skip
NUMBERS = (int, float, complex, np.number)  # numpy's bool is none of them: booleans are compared as such
Message = str | Callable[[str], str] | None


class Wanted(NamedTuple):
    """The options of one comparison."""

    rtol: float | None
    atol: float | None
    equal_nan: bool
    allow_subclasses: bool
    check_device: bool
    check_dtype: bool
    check_layout: bool
    check_stride: bool

    def tolerances(self, *found: DType) -> tuple[float, float]:
        """The given ones, else the looser ones of the types."""
        if self.rtol is not None and self.atol is not None:
            return self.rtol, self.atol
        pairs = [PRECISIONS.get(d.name, (0.0, 0.0)) for d in found]
        return max(p[0] for p in pairs), max(p[1] for p in pairs)  # a float16 beside a float32 is not closer than float16 can say


class Pair(NamedTuple):
    """Two things to compare, and where they stand in what was given."""

    actual: Any
    expected: Any
    place: tuple[Any, ...]


def assert_close(
    actual: Any,
    expected: Any,
    *,
    allow_subclasses: bool = True,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    check_device: bool = True,
    check_dtype: bool = True,
    check_layout: bool = True,
    check_stride: bool = False,
    msg: Message = None,
) -> None:
    """Raise AssertionError unless |actual - expected| <= atol + rtol |expected| for every element, and device, dtype and layout agree.

    Tensors, arrays, numbers, None, and sequences and mappings of them. Without rtol and atol the types set them: 1.3e-6 and 1e-5 for
    float32, 1e-7 both for float64, 0 for integers. `msg` is the error's text, or a function of the one that would be given.

    Raises:
        AssertionError: what differs, how much and where.
        TypeError: things that cannot be compared.
        ValueError: rtol without atol, or the reverse.
    """
    __tracebackhide__ = True  # pytest shows the caller's line
    if (rtol is None) != (atol is None):
        raise ValueError(f"Both 'rtol' and 'atol' must be either specified or omitted, but got no {'rtol' if rtol is None else 'atol'}.")
    wanted = Wanted(rtol, atol, equal_nan, allow_subclasses, check_device, check_dtype, check_layout, check_stride)
    said, place = "", ()
    try:
        for pair in list(_pairs(Pair(actual, expected, ()), wanted)):  # all leaves first: a structure that differs is told before any value
            said, place = _difference(pair, wanted), pair.place
            if said:
                break
    except _Structure as error:
        said, place = str(error), error.place
    if said:
        if place:
            said += "\n\nThe failure occurred for item " + "".join(f"[{k!r}]" for k in place)
        raise AssertionError(said if msg is None else msg(said) if callable(msg) else msg)


class _Structure(Exception):
    """Sequences or mappings of different shape."""

    def __init__(self, said: str, place: tuple[Any, ...]) -> None:
        super().__init__(said)
        self.place = place


def _pairs(pair: Pair, wanted: Wanted) -> Iterator[Pair]:
    """The leaves of two nested structures. Raises _Structure, and TypeError for leaves that nothing compares."""
    a, b, place = pair
    if _are_sequences(a, b):
        if len(a) != len(b):
            raise _Structure(f"The length of the sequences mismatch: {len(a)} != {len(b)}", place)
        for i, (x, y) in enumerate(zip(a, b, strict=True)):
            yield from _pairs(Pair(x, y, (*place, i)), wanted)
    elif isinstance(a, Mapping) and isinstance(b, Mapping):
        if a.keys() != b.keys():
            # Str: keys of several types have no order.
            missing, more = sorted(b.keys() - a.keys(), key=str), sorted(a.keys() - b.keys(), key=str)
            lines = ["The keys of the mappings do not match:", f"Missing keys in the actual mapping: {missing}" if missing else ""]
            lines += [f"Additional keys in the actual mapping: {more}" if more else ""]
            raise _Structure("\n".join(line for line in lines if line), place)
        for k in sorted(a.keys(), key=str):
            yield from _pairs(Pair(a[k], b[k], (*place, k)), wanted)
    else:
        leaf = _leaf(pair, wanted)
        if leaf is None:
            where = " The failure occurred for item " + "".join(f"[{k!r}]" for k in place) if place else ""
            raise TypeError(f"No comparison pair was able to handle inputs of type {type(a)} and {type(b)}.{where}")
        yield leaf


def _are_sequences(a: Any, b: Any) -> bool:
    return all(isinstance(s, Sequence) and not isinstance(s, str | bytes) for s in (a, b))


def _leaf(pair: Pair, wanted: Wanted) -> Pair | None:
    """Two things that can be compared, arrays as tensors; None where they cannot."""
    a, b, place = pair
    if a is None or b is None or (_is_bool(a) and _is_bool(b)) or (isinstance(a, NUMBERS) and isinstance(b, NUMBERS)):
        return pair
    related = isinstance(a, type(b)) or isinstance(b, type(a))  # a Tensor beside an array is a mistake of the caller's more often than not
    if not related or (not wanted.allow_subclasses and type(a) is not type(b)) or isinstance(a, str | bytes):
        return None
    try:
        return Pair(as_tensor(a), as_tensor(b), place)
    except (TypeError, ValueError, RuntimeError):
        return None


def _is_bool(x: Any) -> bool:
    return isinstance(x, bool | np.bool_)


def _difference(pair: Pair, wanted: Wanted) -> str:
    """What is different between two leaves; "" where nothing is."""
    a, b, _ = pair
    if a is None or b is None:
        return "" if a is b else f"None mismatch: {a} is not {b}"
    if isinstance(a, Tensor) and isinstance(b, Tensor):
        return _attributes(a, b, wanted) or _values(a, b, wanted)
    if _is_bool(a) and _is_bool(b):
        return "" if bool(a) is bool(b) else f"Booleans mismatch: {a} is not {b}"
    return _numbers(a, b, wanted)


def _numbers(a: Any, b: Any, wanted: Wanted) -> str:
    if wanted.check_dtype and type(a) is not type(b):
        return f"The (d)types do not match: {type(a)} != {type(b)}."
    a, b = (x.item() if isinstance(x, np.number) else x for x in (a, b))  # float16's own arithmetic would round the gap
    rtol, atol = wanted.tolerances(*(_type_of(x) for x in (a, b)))
    if a == b or (wanted.equal_nan and cmath.isnan(a) and cmath.isnan(b)):
        return ""
    gap = abs(a - b)
    if cmath.isfinite(gap) and gap <= atol + rtol * abs(b):  # inf <= inf holds: nothing is close to an infinity but itself
        return ""
    exact = rtol == 0 and atol == 0
    part = gap / abs(b) if b != 0 else float("inf")
    bounds = ("", "") if exact else (f" (up to {atol} allowed)", f" (up to {rtol} allowed)")
    head = f"Scalars are not {'equal' if exact else 'close'}!\n\nExpected {b} but got {a}."
    return f"{head}\nAbsolute difference: {gap}{bounds[0]}\nRelative difference: {part}{bounds[1]}"


def _type_of(x: Any) -> DType:
    return dtypes.int64 if isinstance(x, int) else dtypes.float64 if isinstance(x, float) else dtypes.complex128


def _attributes(a: Tensor, b: Tensor, wanted: Wanted) -> str:
    checks: list[tuple[str, Any, Any]] = [("shape", a.shape, b.shape)]
    if wanted.check_layout and wanted.check_stride:
        checks.append(("stride()", a.stride(), b.stride()))
    if wanted.check_device:
        checks.append(("device", a.device, b.device))
    if wanted.check_dtype:
        checks.append(("dtype", a.dtype, b.dtype))
    unlike = next(((name, x, y) for name, x, y in checks if x != y), None)
    return "" if unlike is None else f"The values for attribute '{unlike[0]}' do not match: {unlike[1]} != {unlike[2]}."


def _values(a: Tensor, b: Tensor, wanted: Wanted) -> str:
    rtol, atol = wanted.tolerances(a.dtype, b.dtype)
    if a.is_meta and b.is_meta:  # neither has any
        return ""
    x, y = _comparable(a), _comparable(b)
    with np.errstate(all="ignore"):
        gap = np.abs(x - y)
        close = (x == y) | (np.isfinite(gap) & (gap <= atol + rtol * np.abs(y)))
        if wanted.equal_nan:
            close |= np.isnan(x) & np.isnan(y)
        if close.all():
            return ""
        part = gap / np.abs(y) if gap.dtype.kind == "f" else (gap.astype(np.float32) / np.abs(y).astype(np.float32))
    gap, part = np.where(close, 0, gap), np.where(close, 0, part)  # what is close is no greatest difference, nor is NaN beside NaN
    exact, wrong = rtol == 0 and atol == 0, int((~close).sum())
    lines = [f"Tensor-likes are not {'equal' if exact else 'close'}!", ""]
    lines.append(f"Mismatched elements: {wrong} / {close.size} ({wrong / close.size:.1%})")
    for word, values, bound in (("absolute", gap, atol), ("relative", part, rtol)):
        at = np.unravel_index(int(np.argmax(values)), values.shape)
        index = "" if not values.ndim else f" at index {tuple(int(i) for i in at)}"
        lines.append(f"Greatest {word} difference: {values[at].item()}{index}" + ("" if exact else f" (up to {bound} allowed)"))
    if not close.ndim:
        return _count_mismatches(a, b, lines, bool(exact))
    return "\n".join(lines)


def _count_mismatches(a: Tensor, b: Tensor, lines: list[str], exact: bool) -> str:
    """Two tensors without dimensions are told as two numbers."""
    head = f"Scalars are not {'equal' if exact else 'close'}!\n\nExpected {b.item()} but got {a.item()}."
    return "\n".join(
        [head, *(line.replace("Greatest absolute", "Absolute").replace("Greatest relative", "Relative") for line in lines[3:])]
    )


def _comparable(t: Tensor) -> np.ndarray:
    """Its values in a type that numpy calculates in."""
    host = to_host(t._array)  # numpy on every device: the text is the same
    if t.dtype.kind in ("bool", "int", "uint"):
        return host.astype(np.int64) if host.dtype != np.uint64 else host.astype(np.float64)  # the gap of unsigned numbers wraps around
    return host if t.dtype.name in ("float32", "float64", "complex64", "complex128") else host.astype(np.float32)
