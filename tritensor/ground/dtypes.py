"""Element types: their names, their types in numpy and Triton, and their promotion."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable
from typing import Any

import ml_dtypes
import numpy as np

from tritensor.ground.call_site import qualified_name
from tritensor.ground.errors import DTypeError, NumberRangeError
from tritensor.ground.naming.type_names import named, own_constant


@named("torch", "dtype")
class DType:
    """One element type. `numpy` is the numpy dtype, `triton` Triton's short name, `kind` one of
    "bool", "uint", "int", "float", "float8", "complex"; `triton` is None where no kernel can take it.
    """

    __slots__ = ("itemsize", "kind", "name", "numpy", "triton")

    def __init__(self, name: str, numpy: Any, triton: str | None, kind: str) -> None:
        self.name = name
        self.numpy = np.dtype(numpy)
        self.triton = triton
        self.kind = kind
        self.itemsize = self.numpy.itemsize

    @property
    def is_floating_point(self) -> bool:
        """Whether values are floating point numbers, those of 8 bits too."""
        return self.kind in ("float", "float8")

    @property
    def is_complex(self) -> bool:
        """Whether values are complex numbers."""
        return self.kind == "complex"

    @property
    def is_signed(self) -> bool:
        """Whether values may be negative."""
        return self.kind not in ("bool", "uint")

    def to_complex(self) -> DType:
        """The complex type whose parts are of this type; itself where it is complex. Raises DTypeError where there is none."""
        found = self if self.is_complex else {"float32": complex64, "float64": complex128}.get(self.name)
        if found is None:
            raise DTypeError(f"to_complex: no complex type has parts of {self.name}; float32 and float64 have one")
        return found

    def to_real(self) -> DType:
        """The type of a complex type's parts; itself where it is not complex."""
        return {"complex64": float32, "complex128": float64}.get(self.name, self)

    def __repr__(self) -> str:
        return qualified_name(self.name)

    def __reduce__(self) -> Any:
        return own_constant(DType, "bool_" if self is bool_ else self.name)


bool_ = DType("bool", np.bool_, "i1", "bool")
uint8 = DType("uint8", np.uint8, "u8", "uint")
uint16 = DType("uint16", np.uint16, "u16", "uint")
uint32 = DType("uint32", np.uint32, "u32", "uint")
uint64 = DType("uint64", np.uint64, "u64", "uint")
int8 = DType("int8", np.int8, "i8", "int")
int16 = DType("int16", np.int16, "i16", "int")
int32 = DType("int32", np.int32, "i32", "int")
int64 = DType("int64", np.int64, "i64", "int")
float16 = DType("float16", np.float16, "fp16", "float")
bfloat16 = DType("bfloat16", ml_dtypes.bfloat16, "bf16", "float")
float32 = DType("float32", np.float32, "fp32", "float")
float64 = DType("float64", np.float64, "fp64", "float")
float8_e4m3fn = DType("float8_e4m3fn", ml_dtypes.float8_e4m3fn, "fp8e4nv", "float8")
float8_e5m2 = DType("float8_e5m2", ml_dtypes.float8_e5m2, "fp8e5", "float8")
complex64 = DType("complex64", np.complex64, None, "complex")
complex128 = DType("complex128", np.complex128, None, "complex")

half, float_, double, bfloat = float16, float32, float64, bfloat16
short, int_, long = int16, int32, int64
cfloat, cdouble = complex64, complex128

ALL = (
    bool_, uint8, uint16, uint32, uint64, int8, int16, int32, int64, float16, bfloat16, float32, float64,
    float8_e4m3fn, float8_e5m2, complex64, complex128,
)  # fmt: skip
_by_numpy = {d.numpy: d for d in ALL}
_by_name = {d.name: d for d in ALL} | {
    "float": float32, "double": float64, "half": float16, "long": int64, "int": int32, "short": int16, "cfloat": complex64, "cdouble": complex128,
}  # fmt: skip
_PYTHON = {bool: bool_, int: int64, float: float64, complex: complex128}  # what `dtype=float` means
_default = float32
before_default_changes: list[Callable[[], None]] = []  # called when it is about to: what waits is of the old one
when_default_changed: list[Callable[[], None]] = []  # called when the default floating type has changed


def default_float() -> DType:
    """The floating type of `tensor(1.5)`, `rand(3)` and an integer divided by an integer."""
    return _default


def default_complex() -> DType:
    """The complex type of `tensor(1j)`: complex128 where the default floating type is float64, else complex64."""
    return complex128 if _default is float64 else complex64


def of_number(value: bool | int | float | complex) -> DType:
    """The type of a tensor made of one Python number: bool, int64, or the default floating or complex type."""
    if isinstance(value, bool):  # before int, of which bool is a subclass
        return bool_
    if isinstance(value, int):
        return int64
    return _default if isinstance(value, float) else default_complex()


def set_default_float(dtype: Any) -> None:
    """Make `dtype` (float16, bfloat16, float32 or float64) the default floating type."""
    global _default
    found = as_dtype(dtype)
    if found.kind != "float":
        raise DTypeError(f"set_default_dtype: {found} is not a floating type; give float16, bfloat16, float32 or float64")
    if found is not _default:
        for tell in before_default_changes:
            tell()
        _default = found
        for tell in when_default_changed:
            tell()


def of(dtype: np.dtype, who: str = "dtype") -> DType:
    """The DType of a numpy dtype; `who` asks. Raises DTypeError for one that tensors cannot hold (objects, strings, dates)."""
    try:
        return _by_numpy[dtype]
    except KeyError:
        # files of other machines have the other byte order: the name of the type alone would read as if it were supported
        native = dtype.newbyteorder("=")
        if native in _by_numpy:
            raise DTypeError(f"{who}: {dtype} is not in this machine's byte order; convert with .astype({native.name!r})") from None
        raise DTypeError(f"{who}: tensors cannot hold {dtype}; they hold {', '.join(d.name for d in ALL)}") from None


def as_dtype(x: Any) -> DType:
    """The DType meant by a DType, a numpy dtype or scalar type, a name, or Python's bool, int, float, complex."""
    if isinstance(x, DType):
        return x
    # PyTorch's rule: float is float64 and int is int64 on every machine
    if isinstance(x, type) and x in _PYTHON:
        return _PYTHON[x]
    if isinstance(x, str):
        name = x.removeprefix("torch.").removeprefix("tritensor.")
        if name in _by_name:
            return _by_name[name]
    try:
        return of(np.dtype(x))
    except (TypeError, ValueError):  # the latter of what has a dtype of its own, as a tensor
        shown = f"a {type(x).__name__}" if hasattr(x, "dtype") else repr(x)
        raise DTypeError(f"dtype: {shown} is not an element type; give one of {', '.join(d.name for d in ALL)}") from None


def is_float(dtype: np.dtype) -> bool:
    """Whether a numpy dtype is a floating type (numpy itself does not count bfloat16 and float8)."""
    return _by_numpy[dtype].kind in ("float", "float8")


def astype(x: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """x as another type. What float8_e4m3fn, which has no infinity, cannot hold becomes its largest number, 448, or -448, as in PyTorch 2.13."""
    return (np.clip(x.astype(np.float32, copy=False), -448, 448) if dtype == float8_e4m3fn.numpy else x).astype(dtype)


def has_gradient(dtype: np.dtype) -> bool:
    """Whether a numpy dtype is a floating or a complex type."""
    return _by_numpy[dtype].kind in ("float", "float8", "complex")


def accumulator(dtype: np.dtype) -> np.dtype:
    """The numpy dtype in which sums over `dtype` are kept: float32 for 16-bit floats, int64 for integers, else itself."""
    d = _by_numpy[dtype]
    if d.kind in ("float", "float8"):
        return float32.numpy if d.itemsize < 4 else d.numpy
    return d.numpy if d.kind == "complex" or d is uint64 else int64.numpy


_CATEGORY = {"bool": 0, "uint": 1, "int": 1, "float": 2, "float8": 2, "complex": 3}


def _promote(a: DType, b: DType) -> DType | None:
    if a is b:
        return a
    # float8 is a format to store, not to compute in: as in PyTorch, it promotes with nothing
    ca, cb = _CATEGORY[a.kind], _CATEGORY[b.kind]
    if "float8" in (a.kind, b.kind):
        return None
    if ca != cb:  # the higher category wins whole: int64 + float16 is float16
        low, high = (a, b) if ca < cb else (b, a)
        if high.kind == "complex" and low is float64:
            return complex128
        return high
    # a signed type holds an unsigned one only if it is wider; nothing holds uint64 beside a sign
    if ca == 1 and a.kind != b.kind:
        signed, unsigned = (a, b) if a.kind == "int" else (b, a)
        size = max(signed.itemsize, 2 * unsigned.itemsize)
        return {2: int16, 4: int32, 8: int64}.get(size)
    if a.itemsize == b.itemsize:  # float16 with bfloat16: neither holds the other
        return float32
    return a if a.itemsize > b.itemsize else b


_TABLE = {(a.numpy, b.numpy): (p.numpy if (p := _promote(a, b)) else None) for a in ALL for b in ALL}


def promote(a: np.dtype, b: np.dtype, op: str = "promote") -> np.dtype:
    """The common type of two numpy dtypes as equals.

    Mixed kinds take the floating (or complex) one; float16 with bfloat16 gives float32.
    Raises DTypeError for uint64 with a signed integer, which no type holds both, and for float8 with anything else: it is only stored.
    """
    found = _TABLE.get((a, b))
    if found is None:
        raise DTypeError(f"{op}: {of(a).name} and {of(b).name} have no common type; cast one of them with .to(...)")
    return found


def _promote_weaker(strong: np.dtype, weak: np.dtype, op: str) -> np.dtype:
    """The common type where only the category of `weak` counts: a higher one than that of `strong` lifts it."""
    a, b = of(strong), of(weak)
    if _CATEGORY[a.kind] >= _CATEGORY[b.kind]:
        return strong
    if b.kind == "complex" and a.kind == "float":  # the precision of the stronger one stays
        return complex128.numpy if a is float64 else complex64.numpy
    return promote(strong, weak, op)


def result_type(values: Iterable[Any], op: str = "promote") -> np.dtype:
    """The type that operands meet in: arrays (anything with shape and dtype), Python numbers, None for one that is left out.

    PyTorch's rule: arrays with dimensions promote among themselves. Arrays without dimensions count against them only when
    their category (bool, integer, floating, complex) is higher, and numbers only when theirs is higher still.
    Raises DTypeError where no type holds all, or where there is neither array nor number.
    """
    dimensioned: np.dtype | None = None
    single: np.dtype | None = None
    number: np.dtype | None = None
    for x in values:
        dtype = getattr(x, "dtype", None)
        if dtype is None:
            if x is not None:
                kind = of_number(x).numpy
                number = kind if number is None else promote(number, kind, op)
        elif x.shape:
            dimensioned = dtype if dimensioned is None or dimensioned is dtype else promote(dimensioned, dtype, op)
        else:
            single = dtype if single is None or single is dtype else promote(single, dtype, op)
    common = None
    for weaker in (dimensioned, single, number):
        if weaker is not None:
            common = weaker if common is None else _promote_weaker(common, weaker, op)
    if common is None:
        raise TypeError(f"{op}: no tensor and no number was given; wrap one with tensor(...)")
    return common


def check_number(dtype: np.dtype, value: bool | int | float | complex, op: str) -> None:
    """Raise NumberRangeError for an integer that a computation in the integer type `dtype` cannot hold."""
    if isinstance(value, int) and _by_numpy[dtype].kind in ("uint", "int"):
        info = np.iinfo(dtype)
        # PyTorch refuses, where numpy 1 wrapped around without a word
        if not info.min <= value <= info.max:
            raise NumberRangeError(f"{op}: {value} does not fit {of(dtype).name} ({info.min} to {info.max}); cast the tensor first")


def as_element(dtype: np.dtype, value: bool | int | float | complex, op: str) -> Any:
    """A Python number as one that an array of `dtype` can be filled with: truth for bool, whole for integers.

    Raises DTypeError for a complex number that is not real, NumberRangeError for a finite one beyond the type's range.
    """
    kind = _by_numpy[dtype].kind
    if isinstance(value, complex) and kind != "complex":
        if value.imag:
            raise DTypeError(f"{op}: {value} has an imaginary part, which {of(dtype).name} cannot hold; cast with .to(complex64)")
        value = value.real
    if kind == "bool":
        return bool(value)
    if kind in ("uint", "int"):
        if isinstance(value, float):
            if not math.isfinite(value):
                raise NumberRangeError(f"{op}: {value} does not fit {of(dtype).name}; give a whole number, or cast the tensor first")
            value = int(value)
        check_number(dtype, value, op)
    elif isinstance(value, float | int | complex):
        largest = _largest(dtype)
        if not (-largest <= value.real <= largest and -largest <= value.imag <= largest):  # NaN, too
            _refuse_beyond(dtype, value, largest, op)
    return value


def as_held(dtype: np.dtype, value: Any) -> Any:
    """A Python number as a 16-bit float holds it, in which a tensor of such is compared with it: its 0.1 is equal to 0.1. Of other types itself."""
    if dtype.itemsize != 2 or not is_float(dtype) or type(value) not in (int, float):
        return value
    with np.errstate(over="ignore"):  # beyond the type's range is infinite
        return float(dtype.type(float(value)))


def as_factor(dtype: np.dtype, value: bool | int | float | complex, op: str) -> Any:
    """A Python number that elements of `dtype` are multiplied by: truth for bool, cut to a whole one for integers, modulo the width for
    unsigned ones; real where it has no imaginary part.

    Raises NumberRangeError for one that an integer type does not hold, by its size where it is unsigned.
    """
    kind = _by_numpy[dtype].kind
    if isinstance(value, complex) and kind != "complex":
        if value.imag:
            return value
        value = value.real
    # PyTorch multiplies a uint8 by -1 modulo 256
    if kind == "uint" and isinstance(value, int) and -np.iinfo(dtype).max <= value < 0:
        return value % (1 << 8 * dtype.itemsize)
    return as_element(dtype, value, op) if kind in ("bool", "uint", "int") else value


@functools.cache
def _largest(dtype: np.dtype) -> float:
    return float(ml_dtypes.finfo(dtype).max)


def _refuse_beyond(dtype: np.dtype, value: int | float | complex, largest: float, op: str) -> None:
    """Raise NumberRangeError for a finite number beyond the largest of a floating type."""
    if any(abs(part) > largest and part not in (math.inf, -math.inf) for part in (value.real, value.imag)):
        shown = value if isinstance(value, float | complex) or abs(value) < 1 << 80 else "an integer of that size"
        raise NumberRangeError(
            f"{op}: {shown} does not fit {of(dtype).name} (up to {largest:.6g}); give float('inf') or a smaller number, or cast the tensor first"
        )
