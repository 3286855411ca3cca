"""numpy's types as ONNX numbers them, and tensors as protobuf messages."""

from __future__ import annotations

from typing import Any

import numpy as np

from tritensor import dtypes

# TensorProto.DataType
NUMBERS = {
    "float32": 1, "uint8": 2, "int8": 3, "uint16": 4, "int16": 5, "int32": 6, "int64": 7, "bool": 9, "float16": 10, "float64": 11, "uint32": 12,
    "uint64": 13, "complex64": 14, "complex128": 15, "bfloat16": 16, "float8_e4m3fn": 17, "float8_e5m2": 19,
}  # fmt: skip
BOOL, INT64, INT32, FLOAT = (np.dtype(t) for t in (np.bool_, np.int64, np.int32, np.float32))


def number(dtype: np.dtype[Any]) -> int:
    """ONNX's number of an element type."""
    return NUMBERS[dtypes.of(dtype).name]


def is_float(dtype: np.dtype[Any]) -> bool:
    return dtypes.of(dtype).is_floating_point


def message(name: str, values: np.ndarray) -> Any:
    """A TensorProto of values, as raw little-endian bytes."""
    from onnx import TensorProto

    return TensorProto(name=name, data_type=number(values.dtype), dims=values.shape, raw_data=np.ascontiguousarray(values).tobytes())
