"""torch's counterparts of products, reductions, sorting, indexing, shaping, and of tensors from nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bench.gpu.peers.forms import Peer, dtype_of, keyword, named


def _prod(t: Any, x: Any, *, dim: Any, keepdim: bool = False) -> Any:
    for d in sorted(dim, reverse=True):
        x = t.prod(x, d, keepdim=keepdim)
    return x


def _cumsum(t: Any, x: Any, *, dim: int, reverse: bool = False) -> Any:
    return t.flip(t.cumsum(t.flip(x, (dim,)), dim), (dim,)) if reverse else t.cumsum(x, dim)


def _sum_of_squares(t: Any, x: Any, *, dim: Any, keepdim: bool = False) -> Any:
    return t.square(t.linalg.vector_norm(x, dim=dim, keepdim=keepdim))


def _sort(t: Any, x: Any, *, dim: int, descending: bool = False) -> Any:
    return tuple(t.sort(x, dim=dim, descending=descending, stable=True))


def _topk(t: Any, x: Any, *, k: int, dim: int, largest: bool = True) -> Any:
    return tuple(t.topk(x, k, dim, largest))


def _embedding(t: Any, weight: Any, index: Any, *, padding_idx: int | None = None) -> Any:
    return t.nn.functional.embedding(index, weight, padding_idx)


def _embedding_bag(t: Any, weight: Any, index: Any, edges: Any, scale: Any = None, *, padding_idx: int | None = None) -> Any:
    return t.nn.functional.embedding_bag(
        index, weight, edges, mode="sum", per_sample_weights=scale, include_last_offset=True, padding_idx=padding_idx
    )


def _key(indices: Any, dims: Any) -> Any:
    return tuple(indices[dims.index(d)] if d in dims else slice(None) for d in range(max(dims) + 1))


def _index_get(t: Any, x: Any, *indices: Any, dims: Any, front: bool) -> Any:
    return x[_key(indices, dims)]


def _index_put(t: Any, x: Any, value: Any, *indices: Any, dims: Any, front: bool, accumulate: bool = False) -> Any:
    places = [indices[dims.index(d)] if d in dims else None for d in range(max(dims) + 1)]
    return t.ops.aten.index_put(x, places, value, accumulate)


def _index_assign(t: Any, x: Any, value: Any, *indices: Any, dims: Any, front: bool) -> Any:
    x[_key(indices, dims)] = value


def _constant_pad(t: Any, x: Any, *, sides: Any, value: Any) -> Any:
    return t.nn.functional.pad(x, [n for side in reversed(sides) for n in side], value=value)


def _overlap_add(t: Any, x: Any, *, step: int, length: int) -> Any:
    count, size = x.shape[-2:]
    columns = x.reshape(-1, count, size).transpose(1, 2)
    whole = t.nn.functional.fold(columns, (1, (count - 1) * step + size), (1, size), stride=(1, step))
    whole = t.nn.functional.pad(whole, (0, length - whole.shape[-1]))
    return whole.reshape(*x.shape[:-2], length)


def _made(f: Callable[..., Any]) -> Peer:
    """A tensor from nothing: seeds and offsets are torch's own affair."""

    def make(t: Any, *, dtype: Any, device: Any, seed: int = 0, offset: int = 0, **attrs: Any) -> Any:
        return f(t, dtype=dtype_of(t, dtype), device=device, **attrs)

    return make


PEERS: dict[str, Peer] = {
    **named("matmul"),
    **keyword(
        "softmax", "log_softmax", "sum", "mean", "var", "amax", "amin", "argmax", "argmin", "any", "all", "tril", "triu", "flip", "roll"
    ),
    "prod": _prod,
    "max_dim": lambda t, x, *, dim, keepdim=False: t.max(x, dim, keepdim=keepdim),
    "min_dim": lambda t, x, *, dim, keepdim=False: t.min(x, dim, keepdim=keepdim),
    "sum_of_squares": _sum_of_squares,
    "cumsum": _cumsum,
    "sort": _sort,
    "topk": _topk,
    "embedding": _embedding,
    "embedding_bag": _embedding_bag,
    "gather": lambda t, x, index, *, dim: t.gather(x, dim, index),
    "scatter": lambda t, x, index, source, *, dim: t.scatter(x, dim, index, source),
    "scatter_add": lambda t, x, index, source, *, dim: t.scatter_add(x, dim, index, source),
    "index_get": _index_get,
    "index_put": _index_put,
    "index_assign": _index_assign,
    "cat": lambda t, *xs, dim: t.cat(xs, dim),
    "stack": lambda t, *xs, dim: t.stack(xs, dim),
    "constant_pad": _constant_pad,
    "overlap_add": _overlap_add,
    "full": _made(lambda t, *, shape, value, **how: t.full(shape, value, **how)),
    "arange": _made(lambda t, *, start, end, step, **how: t.arange(start, end, step, **how)),
    "linspace": _made(lambda t, *, start, end, steps, **how: t.linspace(start, end, steps, **how)),
    "eye": _made(lambda t, *, rows, columns, **how: t.eye(rows, columns, **how)),
    "rand": _made(lambda t, *, shape, **how: t.rand(shape, **how)),
    "randn": _made(lambda t, *, shape, **how: t.randn(shape, **how)),
    "randint": _made(lambda t, *, low, high, shape, **how: t.randint(low, high, shape, **how)),
    "randperm": _made(lambda t, *, n, **how: t.randperm(n, **how)),
}
