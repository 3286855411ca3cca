"""Stores of wrong elements, by kernel and line: asked of the emulated device while it records stores."""

from __future__ import annotations

from typing import Any

import numpy as np

from tritensor.cuda.emulator import last_writer
from tritensor.ops.array import CudaArray

_ROUNDED = (
    "; its tl.dot rounds float32 to tf32, as tensor cores do: give input_precision='ieee', or a tolerance of some 1e-3 if that is meant"
)


def stored_by(x: Any, at: tuple[int, ...] | None) -> str:
    """ "; stored by _kernel, program (0, 0, 0), softmax.py:31: tl.store(y + i, v)" of an element; "" where nothing is recorded.

    `at` is the element's index in `x`; None: any.
    """
    if at is None or not isinstance(x, CudaArray):
        return ""
    return _describe_store(x, x.data_ptr() + x.itemsize * sum(i * s for i, s in zip(at, x.strides, strict=True)))


def byte_stored_by(base: CudaArray, byte: int) -> str:
    """The same of the byte that stands at a place of a flat buffer."""
    return _describe_store(base, base.data_ptr() + byte - byte % base.itemsize)  # stores are recorded by the first byte of an element


def _describe_store(x: CudaArray, address: int) -> str:
    record = last_writer.current()
    if record is None:
        return ""
    base = x.storage.pointer
    store = record.of(base, address)
    if store is not None:
        return f"; {store}" + _ROUNDED * (store.kernel in record.rounding)
    other = record.last(base)
    return "; no kernel stored there" + (f" (other elements: {other})" if other is not None else "")


def never_stored(x: CudaArray) -> np.ndarray:
    """Which elements of an array no kernel stored to; none where nothing is recorded."""
    record = last_writer.current()
    if record is None or not x.size:
        return np.zeros(x.shape, bool)
    steps = np.meshgrid(*(np.arange(n) * s for n, s in zip(x.shape, x.strides, strict=True)), indexing="ij")
    addresses = x.data_ptr() + x.itemsize * np.asarray(sum(steps, np.zeros(x.shape, np.int64)))
    return ~record.stored(x.storage.pointer, addresses)  # one question for all: one by one takes minutes of a large array
