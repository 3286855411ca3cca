"""Types as classes, as old scripts write them: FloatTensor(2, 3), isinstance(x, LongTensor), x.type("...IntTensor"), the default type."""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

from tritensor import cuda
from tritensor.ground import dtypes
from tritensor.ground.call_site import qualified_name
from tritensor.ground.device import as_device, default, set_default
from tritensor.ground.device import device as Device
from tritensor.ground.dtypes import DType
from tritensor.ground.errors import ArgumentError, DTypeError, ShapeError
from tritensor.ops.array import empty, from_host
from tritensor.tensor.core import Tensor, new_tensor
from tritensor.tensor.functions.shaping.moving import to
from tritensor.tensor.parsing.data import parse_values
from tritensor.tensor.public_api.publish import function, public
from tritensor.tensor.size import Size

_LEGACY = {
    "Float": dtypes.float32, "Double": dtypes.float64, "Half": dtypes.float16, "BFloat16": dtypes.bfloat16, "Byte": dtypes.uint8,
    "Char": dtypes.int8, "Short": dtypes.int16, "Int": dtypes.int32, "Long": dtypes.int64, "Bool": dtypes.bool_,
}  # fmt: skip
_NAMES = {d: name for name, d in _LEGACY.items()} | {
    dtypes.complex64: "ComplexFloat", dtypes.complex128: "ComplexDouble", dtypes.uint16: "UInt16", dtypes.uint32: "UInt32",
    dtypes.uint64: "UInt64", dtypes.float8_e4m3fn: "Float8_e4m3fn", dtypes.float8_e5m2: "Float8_e5m2",
}  # fmt: skip


class _TensorType(builtins.type):
    """The class of `FloatTensor` and its kin: no tensor is an instance of one by birth, those of its type and device are when asked."""

    dtype: DType
    is_cuda: bool

    def __instancecheck__(cls, x: object) -> bool:
        return isinstance(x, Tensor) and x.dtype is cls.dtype and x.is_cuda == cls.is_cuda and not x.is_meta

    def __call__(cls, *data: Any, device: Any = None) -> Tensor:
        """Uninitialised of a shape, or a copy of a sequence, a numpy array or a tensor of this type."""
        on = as_device(device if device is not None else "cuda" if cls.is_cuda else "cpu")
        # The class says the kind of device: only its number may be chosen.
        if (on.type == "cuda") != cls.is_cuda:
            raise ArgumentError(f"{cls.__name__}: device is {on}, where the type does not live; use tensor(..., device=)")
        # FloatTensor(x) shares x's memory, and refuses other types rather than casting.
        if len(data) == 1 and isinstance(data[0], Tensor):
            if not isinstance(data[0], cls):
                raise DTypeError(f"{cls.__name__}: the tensor is {data[0].dtype.name} on {data[0].device}; use .type({cls.__name__})")
            return new_tensor(data[0]._array)
        if len(data) == 1 and not isinstance(data[0], int | np.integer | Size):
            if isinstance(data[0], bool | float | complex | str) or data[0] is None:
                raise TypeError(f"{cls.__name__}: {data[0]!r} is no sequence; give a list of values, or sizes")
            return new_tensor(from_host(parse_values(cls.__name__, data[0], cls.dtype), on))
        shape = tuple(data[0]) if len(data) == 1 and isinstance(data[0], Size) else data or (0,)
        if not all(isinstance(n, int | np.integer) for n in shape):
            raise TypeError(f"{cls.__name__}: {data} is no shape; give sizes, or one list of values")
        if min(shape, default=0) < 0:
            raise ShapeError(f"{cls.__name__}: shape {shape} has a negative size")
        return new_tensor(empty(tuple(int(n) for n in shape), cls.dtype.numpy, on))

    def __repr__(cls) -> str:
        return f"<class '{cls.__module__}.{cls.__name__}'>"


_types: dict[tuple[DType, bool], _TensorType] = {}
for _name, _dtype in _LEGACY.items():
    for _module in ("tritensor", "tritensor.cuda"):
        _class = _TensorType(f"{_name}Tensor", (), {"__module__": _module, "__doc__": f"Tensors of {_dtype.name}."})
        _class.dtype, _class.is_cuda = _dtype, _module.endswith("cuda")
        _types[_dtype, _class.is_cuda] = _class
        if _class.is_cuda:
            setattr(cuda, _class.__name__, _class)
        else:
            public[_class.__name__] = _class  # type: ignore[assignment]
_by_name = {f"{t.__module__}.{t.__name__}": t for t in _types.values()}


def _type_name(x: Tensor) -> str:
    """`tritensor.FloatTensor`: what x.type() says."""
    return qualified_name(f"{'cuda.' if x.is_cuda else 'meta.' if x.is_meta else ''}{_NAMES[x.dtype]}Tensor")


def _parse_type(name: str, given: Any) -> Any:
    """The class meant by a class, a name of one, `Tensor`; or a DType."""
    if isinstance(given, _TensorType | DType):
        return given
    # torch.Tensor is the class of the default floating type.
    if given is Tensor:
        return _types[dtypes.default_float(), False]
    if isinstance(given, str):
        found = _by_name.get("tritensor." + given.removeprefix("torch.").removeprefix("tritensor."))
        # Without a module the name means the type alone, on x's device.
        if found is not None and "." in given:
            return found
        for d, short in _NAMES.items():
            if given.removeprefix("torch.").removeprefix("tritensor.") == f"{short}Tensor":
                return d
    raise ArgumentError(f"{name}: {given!r} is no type of tensors; give a dtype, or a name like 'tritensor.FloatTensor'")


@function(free=False)
def type(x: Tensor, dtype: Any = None, non_blocking: bool = False) -> Any:
    """The name of x's type and device, `tritensor.cuda.FloatTensor`; or, given a type (a dtype, a typed class, such a name), x as that.

    Raises ValueError for what names no type.
    """
    if dtype is None:
        return _type_name(x)
    wanted = _parse_type("type", dtype)
    if isinstance(wanted, DType):
        return to(x, dtype=wanted, non_blocking=non_blocking)
    # A tensor on cuda:1 stays there: the class names no number.
    on = None if wanted.is_cuda == x.is_cuda else "cuda" if wanted.is_cuda else "cpu"
    return to(x, device=on, dtype=wanted.dtype, non_blocking=non_blocking)


@function(free=False)
def new(x: Tensor, *data: Any, device: Any = None) -> Tensor:
    """Of x's type and device: uninitialised of a shape, or a copy of a sequence; see new_empty and new_tensor, which say which.

    Raises DTypeError for a type that has no typed class (complex, float8, uint16 and wider).
    """
    if (x.dtype, x.is_cuda) not in _types:
        raise DTypeError(f"new: {x.dtype.name} has no typed class; use new_empty or new_tensor")
    return _types[x.dtype, x.is_cuda](*data, device=x.device if device is None else device)


@function(method=False)
def typename(obj: Any) -> str:
    """The name of a tensor's type, or of an object's class with its module."""
    if isinstance(obj, Tensor):
        return _type_name(obj)
    kind = obj if hasattr(obj, "__qualname__") else obj.__class__
    module = getattr(kind, "__module__", None)
    return kind.__qualname__ if module in (None, "builtins", "__builtin__") else f"{module}.{kind.__qualname__}"


@function(method=False)
def set_default_tensor_type(t: Any) -> None:
    """Make a typed class (or its name) say the default floating type, and on which device tensors are made.

    Raises TypeError for a type that is not floating.
    """
    wanted = _parse_type("set_default_tensor_type", t)
    # PyTorch refuses integer types as the default, too.
    if not isinstance(wanted, _TensorType) or wanted.dtype.kind != "float":
        raise TypeError(
            f"set_default_tensor_type: {t!r} is not a floating typed class; give one like DoubleTensor, or use set_default_dtype"
        )
    dtypes.set_default_float(wanted.dtype)
    set_default("cuda" if wanted.is_cuda else None)


@function(method=False)
def set_default_device(device: Any) -> None:
    """Make tensors on `device`, where none is asked for, on this thread; None is the CPU again. `with device(...)` does so for a block."""
    set_default(device)


@function(method=False)
def get_default_device() -> Device:
    """The device on which tensors are made where none is asked for."""
    return default()
