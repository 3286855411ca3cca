"""Translations of ops that shape, index and make tensors into PyTorch's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tritensor.ground import dtypes
from tritensor.torch_dispatch.overloads import aten, tritensor
from tritensor.torch_dispatch.translations import translation


# -- views
@translation
def _reshape(x: Any, *, shape: Sequence[int]) -> Any:
    return aten.view.default(x, list(shape))


@translation
def _expand(x: Any, *, shape: Sequence[int]) -> Any:
    return aten.expand.default(x, list(shape))


@translation
def _permute(x: Any, *, dims: Sequence[int]) -> Any:
    moved = [i for i, d in enumerate(dims) if d != i]
    if len(moved) != 2:
        return aten.permute.default(x, list(dims))
    return aten.t.default(x) if len(dims) == 2 else aten.transpose.int(x, *moved)


@translation
def _diagonal(x: Any, *, offset: int, dim1: int, dim2: int) -> Any:
    return aten.diagonal.default(x, offset, dim1, dim2)


@translation
def _as_strided(x: Any, *, shape: Sequence[int], strides: Sequence[int], offset: int) -> Any:
    return aten.as_strided.default(x, list(shape), list(strides), offset)


@translation
def _unfold(x: Any, *, dim: int, size: int, step: int) -> Any:
    return aten.unfold.default(x, dim, size, step)


@translation
def _index_view(x: Any, *, index: Any) -> Any:
    parts = index if isinstance(index, tuple) else (index,)
    used = sum(1 for p in parts if p is not None and p is not ...)
    filled: list[Any] = []
    for p in parts:
        filled += [slice(None)] * (x.dim() - used) if p is ... else [p]
    found, d = x, 0
    for p in filled:
        if p is None:
            found = aten.unsqueeze.default(found, d)
        elif isinstance(p, slice):
            if p != slice(None):
                found = _slice(found, d, p)
        else:
            found = aten.select.int(found, d, int(p))
            continue
        d += 1
    return aten.alias.default(x) if found is x else found


def _slice(x: Any, d: int, part: slice) -> Any:
    start, stop, step = part.indices(x.shape[d])
    if step < 0:  # a flip, which no view of PyTorch's is: it is told by the own name
        index = (*[slice(None)] * d, part)
        return tritensor.index_view.default(x, index=index)
    return aten.slice.Tensor(x, d, start, max(stop, start), *([step] if step != 1 else []))


# -- moves
@translation
def _flip(x: Any, *, dims: Sequence[int]) -> Any:
    return aten.flip.default(x, list(dims))


@translation
def _roll(x: Any, *, shifts: Any, dims: Any) -> Any:
    return aten.roll.default(x, list(shifts), list(dims))


@translation
def _cat(*xs: Any, dim: int) -> Any:
    return aten.cat.default(list(xs), *([dim] if dim else []))


@translation
def _stack(*xs: Any, dim: int) -> Any:
    return aten.stack.default(list(xs), *([dim] if dim else []))


@translation
def _tril(x: Any, *, diagonal: int) -> Any:
    return aten.tril.default(x, *([diagonal] if diagonal else []))


@translation
def _triu(x: Any, *, diagonal: int) -> Any:
    return aten.triu.default(x, *([diagonal] if diagonal else []))


@translation
def _constant_pad(x: Any, *, sides: Sequence[Sequence[int]], value: float) -> Any:
    flat = [n for pair in reversed(sides) for n in pair]
    while len(flat) > 2 and not any(flat[-2:]):
        del flat[-2:]
    return aten.constant_pad_nd.default(x, flat, value)


# -- indexing
def _indices(x: Any, indices: Sequence[Any], dims: Sequence[int]) -> list[Any]:
    found: list[Any] = [None] * (max(dims) + 1)
    for d, index in zip(dims, indices, strict=True):
        found[d] = index
    return found


@translation
def _index_get(x: Any, *indices: Any, dims: Sequence[int], front: bool, called: str = "getitem") -> Any:
    if called == "index_select" and len(indices) == 1:
        return aten.index_select.default(x, dims[0], indices[0])
    return aten.index.Tensor(x, _indices(x, indices, dims))


@translation
def _index_put(
    x: Any, value: Any, *indices: Any, dims: Sequence[int], front: bool, accumulate: bool = False, called: str = "setitem"
) -> Any:
    return aten.index_put.default(x, _indices(x, indices, dims), value, *([True] if accumulate else []))


@translation
def _index_assign(x: Any, value: Any, *indices: Any, dims: Sequence[int], front: bool, called: str = "setitem") -> Any:
    aten.index_put_.default(x, _indices(x, indices, dims), value)


@translation
def _gather(x: Any, index: Any, *, dim: int, called: str = "") -> Any:
    return aten.gather.default(x, dim, index)


@translation
def _scatter(x: Any, index: Any, source: Any, *, dim: int, called: str = "") -> Any:
    return aten.scatter.src(x, dim, index, source)


@translation
def _scatter_add(x: Any, index: Any, source: Any, *, dim: int, called: str = "") -> Any:
    return aten.scatter_add.default(x, dim, index, source)


@translation
def _scatter_reduce(x: Any, index: Any, source: Any, *, dim: int, reduce: str, include_self: bool = True, called: str = "") -> Any:
    return aten.scatter_reduce.two(x, dim, index, source, reduce, include_self=include_self)


# -- pooling
@translation
def _max_pool2d(x: Any, *, kernel_size: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool = False) -> Any:
    given = [list(n) if isinstance(n, tuple) else n for n in (kernel_size, stride, padding, dilation)]
    return aten.max_pool2d_with_indices.default(x, *given, *([True] if ceil_mode else []))


# -- tensors of numbers
@translation
def _full(*, shape: Sequence[int], value: Any, dtype: Any, device: Any) -> Any:
    return aten.full.default(list(shape), value, dtype=dtypes.of(dtype), device=device)


@translation
def _arange(*, start: Any, end: Any, step: Any, dtype: Any, device: Any) -> Any:
    if (end - start) * step < 0:  # empty, which PyTorch refuses
        return tritensor.arange.default(start=start, end=end, step=step, dtype=dtype, device=device)
    return aten.arange.start_step(start, end, step, dtype=dtypes.of(dtype), device=device)


@translation
def _eye(*, rows: int, columns: int, dtype: Any, device: Any) -> Any:
    if rows == columns:
        return aten.eye.default(rows, dtype=dtypes.of(dtype), device=device)
    return aten.eye.m(rows, columns, dtype=dtypes.of(dtype), device=device)
