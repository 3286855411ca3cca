"""numpy's types by ONNX's numbers, and tensors as protobuf messages."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np

from tritensor.ground import dtypes

# TensorProto.DataType
NUMBERS = {
    "float32": 1, "uint8": 2, "int8": 3, "uint16": 4, "int16": 5, "int32": 6, "int64": 7, "bool": 9, "float16": 10, "float64": 11, "uint32": 12,
    "uint64": 13, "complex64": 14, "complex128": 15, "bfloat16": 16, "float8_e4m3fn": 17, "float8_e5m2": 19,
}  # fmt: skip
BOOL, INT64, INT32, FLOAT = (np.dtype(t) for t in (np.bool_, np.int64, np.int32, np.float32))


def type_number(dtype: np.dtype[Any]) -> int:
    """ONNX's number of an element type."""
    return NUMBERS[dtypes.of(dtype).name]


def is_float(dtype: np.dtype[Any]) -> bool:
    return dtypes.of(dtype).is_floating_point


_WIDER = {
    "float16": ("float32",), "bfloat16": ("float32",), "bool": ("int32", "int64"), "int8": ("int32", "int64", "float64"),
    "int16": ("int32", "int64", "float64"), "int32": ("int64", "float64"), "uint8": ("int32", "int64", "float64"),
    "uint16": ("int32", "int64", "float64"), "uint32": ("int64", "float64"), "int64": ("float64",), "uint64": ("float64",),
}  # fmt: skip


_SCHEMA_NAMES = {"float32": "float", "float64": "double"}


@functools.lru_cache(1024)
def _schema_types(kind: str, opset: int) -> tuple[tuple[tuple[str, frozenset[str]], ...], tuple[str, ...]]:
    """For each input of an operator the letter of its type, and the types that this may be (the last one stands for all behind it); for each
    output its letter. Nothing for an operator that onnx does not know."""
    from onnx import defs

    try:
        schema = defs.get_schema(kind, opset)
    except defs.SchemaError:
        return (), ()
    allowed = {t.type_param_str: frozenset(t.allowed_type_strs) for t in schema.type_constraints}
    inputs = tuple([(slot.type_str, allowed.get(slot.type_str, frozenset([slot.type_str]))) for slot in schema.inputs])
    return inputs, tuple([slot.type_str for slot in schema.outputs])


def _schema_type(dtype: np.dtype[Any]) -> str:
    """ "tensor(float)": how a schema writes a type."""
    name = dtypes.of(dtype).name
    return f"tensor({_SCHEMA_NAMES.get(name, name.replace('_', ''))})"


class InputCasts(NamedTuple):
    """The types that an operator's inputs are cast to, and for each output what it has and is cast back to; None where nothing changes."""

    inputs: list[np.dtype[Any] | None]
    outputs: list[tuple[np.dtype[Any], np.dtype[Any]] | None]


def widen_inputs(kind: str, opset: int, given: list[np.dtype[Any] | None]) -> InputCasts | None:
    """How an operator takes inputs of types that it does not have: as the next wider ones. None where it takes them as they are."""
    slots, outputs = _schema_types(kind, opset)
    if not slots:
        return None
    found: dict[str, tuple[np.dtype[Any], np.dtype[Any]]] = {}
    letters = [slots[min(k, len(slots) - 1)] for k in range(len(given))]
    for dtype, (letter, allowed) in zip(given, letters, strict=True):
        if dtype is not None and letter not in found and _schema_type(dtype) not in allowed:
            wider = next((np.dtype(w) for w in _WIDER.get(dtypes.of(dtype).name, ()) if _schema_type(np.dtype(w)) in allowed), None)
            if wider is not None:
                found[letter] = (wider, dtype)
    if not found:
        return None
    cast = [None if d is None else found[letter][0] if letter in found else d for d, (letter, _) in zip(given, letters, strict=True)]
    return InputCasts(cast, [found.get(letter) for letter in outputs])


def raw_bytes(values: np.ndarray) -> np.ndarray:
    """The bytes of values in C order."""
    return np.ascontiguousarray(values).reshape(-1).view(np.uint8)


def tensor_message(name: str, values: np.ndarray) -> Any:
    """A TensorProto of values, as raw little-endian bytes."""
    from onnx import TensorProto

    return TensorProto(name=name, data_type=type_number(values.dtype), dims=values.shape, raw_data=raw_bytes(values).tobytes())
