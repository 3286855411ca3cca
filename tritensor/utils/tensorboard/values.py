"""Values to be logged, as numbers and arrays: tensors of any device and type, numpy's, Python's."""

from __future__ import annotations

from typing import Any

import numpy as np

from tritensor.ground.errors import DTypeError, ShapeError
from tritensor.io.protobuf import integer, message
from tritensor.tensor.core import Tensor

# tensorflow's numbers for element types (tensorflow/core/framework/types.proto)
DT_FLOAT, DT_STRING = 1, 7
_TYPES = {
    "float32": 1, "float64": 2, "int32": 3, "uint8": 4, "int16": 5, "int8": 6, "complex64": 8, "int64": 9, "bool": 10, "bfloat16": 14,
    "uint16": 17, "complex128": 18, "float16": 19, "uint32": 22, "uint64": 23,
}  # fmt: skip


def describe(x: Any) -> str:
    """A value in a few words, for messages."""
    if isinstance(x, Tensor):
        return f"a Tensor {tuple(x.shape)}"
    if isinstance(x, np.ndarray):
        return f"an array {x.shape} of {x.dtype}"
    said = repr(x)
    return f"{type(x).__name__} {said if len(said) < 60 else said[:57] + '...'}"


def as_number(who: str, tag: Any, value: Any) -> float:
    """One number. A tensor of a GPU is waited for. Raises TypeError or ShapeError, naming tag and value, for anything else."""
    try:
        if isinstance(value, Tensor):
            if value.numel() == 1 and not value.is_complex():
                return float(value.detach().item())
        elif isinstance(value, np.ndarray):
            if value.size == 1:
                return float(value.item())
        elif not isinstance(value, str | bytes):
            return float(value)
    except (TypeError, ValueError):
        pass  # raised below, with all that is not one number
    wrong = ShapeError if isinstance(value, Tensor | np.ndarray) else TypeError
    raise wrong(f"{who}: the value of tag {tag!r} is {describe(value)}, not one real number; give a float, or reduce it: x.mean()")


def as_array(who: str, tag: Any, value: Any) -> np.ndarray:
    """An array on the host; bfloat16 and float8 as float32, which numpy computes in. Raises TypeError, naming tag and value, for what is none."""
    if isinstance(value, Tensor):
        value = value.detach().cpu()
        return value.float().numpy() if value.dtype.name not in _TYPES or value.dtype.name == "bfloat16" else value.numpy()
    try:
        found = np.asarray(
            [as_array(who, tag, v) if isinstance(v, Tensor) else v for v in value] if isinstance(value, list | tuple) else value
        )
    except (TypeError, ValueError) as error:
        raise TypeError(f"{who}: tag {tag!r} was given {describe(value)}, of which no array can be made: {error}") from None
    if found.dtype.kind not in "biufc":
        raise TypeError(f"{who}: tag {tag!r} was given {describe(value)}; give a tensor or an array of numbers")
    return found


def encode_tensor(who: str, tag: Any, value: Any) -> bytes:
    """A TensorProto of a tensor's type, shape and bytes."""
    name = value.dtype.name if isinstance(value, Tensor) else str(np.asarray(value).dtype)
    if name not in _TYPES:
        raise DTypeError(f"{who}: tag {tag!r} was given a tensor of {name}, which tensorboard does not read; cast it: x.float()")
    host = value.detach().cpu() if isinstance(value, Tensor) else np.asarray(value)
    raw = np.ascontiguousarray(host._array if isinstance(host, Tensor) else host)
    if raw.nbytes >= 1 << 31:  # protocol buffers' limit of a message
        raise ShapeError(f"{who}: tag {tag!r} was given {describe(value)} of {raw.nbytes:,} bytes; a record takes less than 2^31")
    return integer(1, _TYPES[name]) + message(2, encode_shape(raw.shape)) + message(4, raw.tobytes())


def encode_shape(shape: Any) -> bytes:
    """A TensorShapeProto."""
    return b"".join([message(2, integer(1, int(n))) for n in shape])
