"""Reductions and scans of Triton's interpreter over whole arrays: with a user's combine function in log2(n) steps, in a tree as on the GPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import triton.language as tl
from triton.runtime import interpreter as upstream


def _tensors(interface: Any, arrays: list[np.ndarray], like: tuple[Any, ...]) -> list[Any]:
    return [interface.to_tensor(np.ascontiguousarray(a), t.dtype) for a, t in zip(arrays, like, strict=True)]


def _combine(interface: Any, left: list[np.ndarray], right: list[np.ndarray], like: tuple[Any, ...]) -> list[np.ndarray]:
    """The user's combine function on whole arrays: flat, so that every rank works, and padded to the sizes Triton allows."""
    shape, size = left[0].shape, left[0].size
    room = 1 << max(size - 1, 0).bit_length()
    flat = [[np.concatenate([v := a.reshape(-1), v[:1].repeat(room - size)]) for a in side] for side in (left, right)]
    got = interface.combine_fn(*_tensors(interface, flat[0], like), *_tensors(interface, flat[1], like))
    got = got if isinstance(got, tuple) else (got,)
    return [np.broadcast_to(g.handle.data, (room,))[:size].reshape(shape).astype(a.dtype) for g, a in zip(got, left, strict=True)]


def _reduce(self: Any, inputs: tuple[Any, ...]) -> list[Any]:
    """Reduce neighbours pairwise along the axis until one is left: a tree in the order of the elements."""
    original = inputs[0].handle.data
    axis = self.axis
    rank = original.ndim
    work = [np.moveaxis(t.handle.data, axis, -1) if axis is not None else t.handle.data.reshape(-1) for t in inputs]
    while work[0].shape[-1] > 1:
        even = work[0].shape[-1] // 2 * 2
        tail = [a[..., even:] for a in work]
        pairs = _combine(self, [a[..., :even:2] for a in work], [a[..., 1:even:2] for a in work], inputs)
        work = [np.concatenate([p, t], axis=-1) if t.size else p for p, t in zip(pairs, tail, strict=True)]
    out = []
    for a, t in zip(work, inputs, strict=True):
        a = a[..., 0]
        if self.keep_dims:
            a = np.expand_dims(a, axis) if axis is not None else a.reshape((1,) * rank)
        out.append(self.to_tensor(a if a.ndim else a.item(), t.dtype))
    return out


def _scan(self: Any, inputs: tuple[Any, ...]) -> list[Any]:
    """Inclusive scan in log2(n) rounds: after round k each element holds the 2^k elements up to it."""
    work = [np.moveaxis(t.handle.data, self.axis, -1).copy() for t in inputs]
    step = 1
    while step < work[0].shape[-1]:
        got = _combine(self, [a[..., :-step] for a in work], [a[..., step:] for a in work], inputs)
        work = [np.concatenate([a[..., :step], g], axis=-1) for a, g in zip(work, got, strict=True)]
        step *= 2
    return [self.to_tensor(np.moveaxis(a, -1, self.axis), t.dtype) for a, t in zip(work, inputs, strict=True)]


def _apply_reduce(self: Any, inputs: tuple[Any, ...]) -> Any:
    function = self.combine_fn
    if function is tl.standard._sum_combine:
        data = inputs[0].handle.data
        moved = data.reshape(-1) if self.axis is None else np.moveaxis(data, self.axis, -1)
        total = np.ascontiguousarray(moved).sum(axis=-1, dtype=data.dtype)  # pairwise: numpy does so only along rows
        if self.keep_dims:
            total = np.expand_dims(total, self.axis) if self.axis is not None else total.reshape((1,) * data.ndim)
        return self.to_tensor(total, inputs[0].dtype)
    if function is tl.standard._elementwise_max or function is tl.standard._elementwise_min:
        best = np.fmax if function is tl.standard._elementwise_max else np.fmin
        axis = self.axis if self.axis is not None else tuple(range(inputs[0].handle.data.ndim))
        return self.to_tensor(best.reduce(inputs[0].handle.data, axis=axis, keepdims=self.keep_dims), inputs[0].dtype)
    return self.generic_reduce(inputs)


def install() -> None:
    """Put them where the interpreter has its own, which go element by element."""
    upstream.ReduceOps.generic_reduce = _reduce
    upstream.ReduceOps.apply_impl = _apply_reduce
    upstream.ScanOps.generic_scan = _scan
