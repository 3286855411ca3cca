"""embedding: rows of a table by integer index; the gradient adds to the rows in a fixed order, so it repeats bit for bit."""

from __future__ import annotations

from typing import Any

import numpy as np

from tritensor.ground import dtypes
from tritensor.ground.errors import ShapeError
from tritensor.kernels.parts.copying import to_c_order
from tritensor.kernels.parts.filling import filled
from tritensor.kernels.parts.float8 import moved_as_bytes
from tritensor.kernels.parts.indices.error_reports import check_integers, check_range
from tritensor.kernels.parts.indices.rows_by_key import keys_of, numpy_add_rows, put_rows, take_rows, watch_keys
from tritensor.kernels.parts.view_arithmetic import zero_tensor
from tritensor.ops.array import CudaArray
from tritensor.ops.table import Sample, Spec, Work, op, ops


# y[b, d] = weight[index[b], d]
def reference(weight: np.ndarray, index: np.ndarray, *, padding_idx: int | None = None) -> np.ndarray:
    return weight[index]


def cpu(weight: np.ndarray, index: np.ndarray, *, padding_idx: int | None = None) -> np.ndarray:
    check_range("embedding", index, weight.shape[0], 0, negative=False)
    return weight.take(index, 0)


def shape(weight: Any, index: Any, *, padding_idx: int | None = None) -> Spec:
    check_integers("embedding", index)
    if len(weight.shape) != 2:
        raise ShapeError(f"embedding: weight {tuple(weight.shape)} is not (number of rows, width); give two dimensions")
    if padding_idx is not None and not 0 <= padding_idx < weight.shape[0]:
        raise IndexError(f"embedding: padding_idx {padding_idx} is out of range for {weight.shape[0]} rows")
    return Spec((*index.shape, weight.shape[1]), weight.dtype)


@moved_as_bytes
def forward(weight: CudaArray, index: CudaArray, *, padding_idx: int | None = None) -> CudaArray:
    rows, width = weight.shape
    watching = watch_keys("embedding", "embedding", (index,), (0,), index.shape)
    keys = keys_of((index,), (rows,), index.shape, wrap=False, watching=watching)
    return take_rows(to_c_order(weight).reshape((1, rows, width)), keys).reshape((*index.shape, width))


# dweight[k, d] = sum of g[b, d] over the b with index[b] = k; the padding row gets none
def rule(g: Any, index: Any, weight_shape: tuple[int, ...], padding_idx: int | None) -> Any:
    if padding_idx is not None:
        keep = ops.reshape(ops.ne(index, padding_idx), shape=(*index._array.shape, 1))
        g = ops.where(keep, g, 0.0)
    return ops.index_put(zero_tensor(weight_shape, g), g, index, dims=(0,), front=False, accumulate=True)


def backward(g: CudaArray, index: CudaArray, weight_shape: tuple[int, ...], padding_idx: int | None) -> CudaArray:
    rows, width = weight_shape
    target = filled((1, rows, width), g.dtype, g.device, 0)
    keys = keys_of((index,), (rows,), index.shape, skip=padding_idx, wrap=False)
    put_rows(target, keys, to_c_order(g).reshape((1, keys.size, width)), add=True)
    return target.reshape((rows, width))


def cpu_backward(g: np.ndarray, index: np.ndarray, weight_shape: tuple[int, ...], padding_idx: int | None) -> np.ndarray:
    acc_type = dtypes.accumulator(g.dtype)
    target = np.zeros((1, *weight_shape), acc_type)
    keys = index.reshape(-1).astype(np.int64, copy=False)
    source = g.reshape(1, keys.size, -1) if g.size else np.zeros((1, keys.size, weight_shape[1]), g.dtype)
    # the padding row learns nothing
    if padding_idx is not None:
        kept = keys != padding_idx
        keys, source = keys[kept], source[:, kept]
    numpy_add_rows(target, keys, source.astype(acc_type, copy=False))
    return target[0].astype(g.dtype, copy=False)


def samples(rng: np.random.Generator) -> list[Sample]:
    return [
        Sample(rng.standard_normal((7, 3)), np.array([[1, 0, 6], [1, 1, 2]]), padding_idx=None),
        Sample(rng.standard_normal((7, 3)), np.array([2, 2, 5, 0], np.int32), padding_idx=2, smooth=False),  # no gradient by intent
        Sample(rng.standard_normal((20, 5)), rng.integers(0, 20, (3, 90)), padding_idx=None),
        Sample(rng.standard_normal((4, 3)), np.array(2), padding_idx=None),
        Sample(rng.standard_normal((4, 3)), np.zeros((0, 2), np.int64), padding_idx=None),
        Sample(rng.standard_normal((5, 1)), rng.integers(0, 5, 800), padding_idx=None, smooth=False),  # long sums
    ]


op(
    "embedding", reference, cpu=cpu, shape=shape, forward=forward, rule=(rule, None), backward=(backward, None),
    cpu_backward=(cpu_backward, None), samples=samples, reports=True,
    sizes=lambda rng: [Sample(rng.standard_normal((50257, 768)), rng.integers(0, 50257, (8, 1024)), padding_idx=None)],
    work=lambda weight, index, *, padding_idx=None: Work(0, index.size * (index.dtype.itemsize + 2 * weight.shape[1] * weight.dtype.itemsize)),
    doc="Rows of weight (rows, width) at integer indices; the row `padding_idx` gets no gradient.",
)  # fmt: skip
