"""Tensor descriptors and dependent launches of sm_90 in Triton's interpreter, checked as pointers are (see sanitizer.py)."""

from __future__ import annotations

from typing import Any

import numpy as np
import triton.language as tl
from triton.language.extra import cuda as extra
from triton.runtime import interpreter as upstream

from tritensor.cuda.compiler.tensor_descriptor import TensorDescriptor


def _keep_argument(kind: Any) -> None:
    """Make the addresses of a tile keep the argument that they came from; which of them lie in the array is said by a handle, in Triton 3.6 as later."""
    pointers = kind.materialize_pointers

    def materialize_pointers(self: Any, offsets: list[Any]) -> tuple[Any, Any]:
        found, mask = pointers(self, offsets)
        if "argument" in self.base.attr:
            found.attr["argument"] = self.base.attr["argument"]
        return found, upstream.TensorHandle(mask, tl.int1) if isinstance(mask, np.ndarray) else mask

    kind.materialize_pointers = materialize_pointers


_keep_argument(upstream.TensorDescHandle)
if hasattr(upstream, "BlockPointerHandle"):  # Triton 3.9 has no block pointers any more
    _keep_argument(upstream.BlockPointerHandle)


def _do_nothing(_semantic: Any = None) -> None:
    """A kernel begins when the one before it has ended: there is nothing to wait for, and nobody to let go ahead."""


extra.gdc_wait = extra.gdc_launch_dependents = _do_nothing


def _number(value: int, kind: Any) -> Any:
    dtype = np.dtype(np.int32 if kind is tl.int32 else np.int64)
    return tl.tensor(upstream.TensorHandle(np.array([value], dtype), kind), kind)


def described(base: Any, descriptor: TensorDescriptor) -> Any:
    """The interpreter's value for a descriptor; `base` is its value for the array."""
    found = upstream.interpreter_semantic.make_tensor_descriptor(
        base=base,
        shape=[_number(n, tl.int32) for n in descriptor.shape],
        strides=[*[_number(n, tl.int64) for n in descriptor.strides[:-1]], tl.constexpr(1)],
        block_shape=[tl.constexpr(n) for n in descriptor.block_shape],
        padding_option=descriptor.padding,
    )
    if descriptor.rounds:
        found.handle.round_f32_to_tf32 = True
    return found
