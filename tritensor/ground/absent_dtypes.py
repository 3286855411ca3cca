"""Names of element types that no tensor here can hold: libraries write them in tables; using one raises by name."""

from __future__ import annotations

from typing import Any, NoReturn

from tritensor.ground.dtypes import DType
from tritensor.ground.errors import DTypeError


class AbsentDType(DType):
    """An element type that is known by name, size and kind. Asking for its numbers, as every function that makes or casts a tensor does, raises DTypeError."""

    __slots__ = ()

    def __init__(self, name: str, kind: str, signed: bool, itemsize: int = 1) -> None:
        self.name = name
        self.kind = kind if signed or kind == "float8" else "uint"
        self.itemsize = itemsize
        self.triton = None

    @property
    def numpy(self) -> NoReturn:  # type: ignore[override]
        """Raises DTypeError."""
        others = (
            "complex64 and complex128 hold complex numbers"
            if self.kind == "complex"
            else "of 8 bits there are float8_e4m3fn, float8_e5m2, int8 and uint8"
        )
        raise DTypeError(f"dtype: tensors here cannot hold {self}; {others}")

    @property
    def is_signed(self) -> bool:
        """Whether values may be negative."""
        return self.kind != "uint" and self.name != "float8_e8m0fnu"


def __getattr__(name: str) -> Any:
    if name in FLOATS:
        made = AbsentDType(name, "float8", True)
    elif name in INTEGERS:
        made = AbsentDType(name, "int", name[0] == "i")
    elif name == "complex32":
        made = AbsentDType(name, "complex", True, 4)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = made  # one object for each name
    return made


FLOATS = ("float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu", "float4_e2m1fn_x2")
INTEGERS = tuple(f"{u}int{bits}" for u in ("", "u") for bits in range(1, 8))
