"""vmap: a function of one example becomes one of a batch, without a loop."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from tritensor.autograd.modes import state
from tritensor.func.wrapping import below, highest, level_of, settle, to_front, wrap
from tritensor.ground.errors import ArgumentError, NoValuesError, TransformError
from tritensor.ground.pytree import broadcast_to_and_flatten, described, outline, tree_flatten, tree_unflatten
from tritensor.ground.transforms import VMAP, Level, running, transform
from tritensor.ops.table import ops
from tritensor.random import Generator, default_generator
from tritensor.tensor.core import Tensor

Dims = Any  # an int, None, or a tree of them


def vmap(
    func: Callable[..., Any], in_dims: Dims = 0, out_dims: Dims = 0, randomness: str = "error", *, chunk_size: int | None = None
) -> Callable[..., Any]:
    """A function that calls func for every example of a batch at once; inside func tensors have the shape of one example.

    Args:
        func: returns tensors, or nested dicts, lists and tuples of them.
        in_dims: the dimension that examples lie along, of all arguments or in a tuple of each, which may be nested as the argument is;
            None for an argument that is the same for all examples.
        out_dims: where that dimension stands in the results; None for one that is the same for all.
        randomness: what random functions do: "error", "different" (each example draws its own), "same" (all have one draw).
        chunk_size: as many examples at a time, which saves memory.

    Arguments by keyword are the same for all examples.

    Raises:
        ValueError: in_dims or out_dims that do not fit, sizes that differ, an output that is no tensor.
        TransformError (a RuntimeError): func asks for a value, such as .item() or `if x > 0`, or draws where randomness is "error".

    >>> x, w = tt.arange(6.0).reshape(3, 2), tt.tensor([1.0, 10.0])
    >>> tt.func.vmap(lambda row: row @ w)(x)  # for each row
    tensor([10., 32., 54.])
    >>> tt.func.vmap(tt.func.grad(lambda row: (row**2).sum()))(x)  # a gradient for each row
    tensor([[ 0.,  2.],
            [ 4.,  6.],
            [ 8., 10.]])
    """
    if randomness not in ("error", "different", "same"):
        raise TransformError(f"vmap: randomness is {randomness!r}; it is 'error', 'different' or 'same'")
    if chunk_size is not None and (isinstance(chunk_size, bool) or not isinstance(chunk_size, int) or chunk_size <= 0):
        raise ArgumentError(f"vmap: chunk_size is {chunk_size!r}; give a positive int, or None for all at once")

    @functools.wraps(func)
    def call(*args: Any, **kwargs: Any) -> Any:
        leaves, dims, spec = _flatten_arguments(in_dims, args)
        size = _find_size(leaves, dims)

        start = default_generator.key, default_generator.offset

        def part(values: list[Any], n: int) -> Any:
            if randomness == "same":  # for the examples of all chunks
                default_generator.key, default_generator.offset = start
            return _call_mapped(func, values, dims, spec, kwargs, n, out_dims, randomness)

        if chunk_size is None or size <= chunk_size:
            return part(leaves, size)
        return _call_in_chunks(part, leaves, dims, size, chunk_size, out_dims)

    return call


def _is_dim(x: Any) -> bool:
    return x is None or isinstance(x, int)


def _flatten_arguments(in_dims: Dims, args: tuple[Any, ...]) -> tuple[list[Any], list[int | None], Any]:
    if (not _is_dim(in_dims) and not isinstance(in_dims, tuple | list)) or isinstance(in_dims, bool):
        raise ArgumentError(f"vmap: in_dims is {described(in_dims)}; give an int, None, or a tuple with one for each argument")
    if not args:
        raise ArgumentError("vmap: there are no arguments; give at least one, and without keyword")
    given = tuple(in_dims) if isinstance(in_dims, list) else in_dims  # a list would be a container of one argument
    leaves, spec = tree_flatten(args)
    dims = broadcast_to_and_flatten(given, spec, is_leaf=lambda x: x is None)
    if dims is None:
        raise ArgumentError(
            f"vmap: in_dims {in_dims} is not nested as the arguments {outline(spec)} are; give one for each, or one for several"
        )
    found: list[int | None] = []
    for x, d in zip(leaves, dims, strict=True):
        if not _is_dim(d) or isinstance(d, bool):
            raise ArgumentError(f"vmap: in_dims holds {d!r}; give ints and None")
        if d is not None and not isinstance(x, Tensor):
            raise ArgumentError(f"vmap: in_dims is {d} for {described(x)}, which has no dimension; give None there")
        found.append(None if d is None else _place_of(x, d))
    if all(d is None for d in found):  # nothing would say how many examples there are
        raise ArgumentError(f"vmap: in_dims {in_dims} maps no tensor; give the dimension of at least one")
    return leaves, found, spec


def _place_of(x: Tensor, d: int) -> int:
    n = len(x._array.shape)
    if not -n <= d < n:
        raise ArgumentError(
            f"vmap: in_dim {d} of vmap: a tensor of shape {tuple(x._array.shape)} has no such dimension; give one from {-n} to {n - 1}"
        )
    return d % n


def _find_size(leaves: list[Any], dims: list[int | None]) -> int:
    sizes = [int(x._array.shape[d]) for x, d in zip(leaves, dims, strict=True) if d is not None]
    if any(n != sizes[0] for n in sizes):
        raise ArgumentError(f"vmap: the mapped dimensions have sizes {sizes}; all tensors must hold as many examples")
    return sizes[0]


def _call_mapped(
    func: Any, values: list[Any], dims: list[int | None], spec: Any, kwargs: dict[str, Any], size: int, out_dims: Dims, randomness: str
) -> Any:
    """One call of func over all examples."""
    with Level(VMAP, state.enabled, size, randomness) as level:
        seen = [x if d is None else wrap(to_front(settle(x), d), level, batched=True) for x, d in zip(values, dims, strict=True)]
        return _outputs(func(*tree_unflatten(seen, spec), **kwargs), out_dims, level)


def _outputs(out: Any, out_dims: Dims, level: Level) -> Any:
    """The results with their examples along out_dims."""
    flat, spec = tree_flatten(out)
    given = tuple(out_dims) if isinstance(out_dims, list) and isinstance(out, tuple) else out_dims
    single = isinstance(given, tuple) and len(given) == 1 and spec.is_leaf()
    dims = [given[0]] if single else broadcast_to_and_flatten(given, spec, is_leaf=lambda x: x is None)
    if dims is None or not all(_is_dim(d) and not isinstance(d, bool) for d in dims):
        raise ArgumentError(f"vmap: out_dims is {out_dims}, the function returned {outline(spec)}; give an int, or one for each output")
    found = []
    for y, d in zip(map(settle, flat), dims, strict=True):
        if not isinstance(y, Tensor):
            raise ArgumentError(f"vmap: the function returned {described(y)}; it must return tensors, or containers of them")
        mine = level_of(y) is level
        value: Any = y._array.value if mine else y
        if d is None:
            if mine and y._array.batched:
                raise ArgumentError("vmap: out_dims is None for an output that differs between the examples; give a dimension")
            found.append(value)
            continue
        if not (mine and y._array.batched):
            # An output that is the same for all is repeated, as in PyTorch.
            value = ops.expand(value, shape=(level.size, *value._array.shape))
        n = len(value._array.shape)
        if not -n <= d < n:
            raise IndexError(f"vmap: out_dim {d} for an output that becomes {n}-dimensional; give one from {-n} to {n - 1}")
        at = d % n
        found.append(value if at == 0 else ops.permute(value, dims=(*range(1, at + 1), 0, *range(at + 1, n))))
    return tree_unflatten(found, spec)


def _call_in_chunks(
    part: Callable[[list[Any], int], Any], values: list[Any], dims: list[int | None], size: int, chunk: int, out_dims: Dims
) -> Any:
    """The same of as many examples at a time, the results joined."""
    pieces: list[list[Any]] = []
    spec: Any = None
    for start in range(0, size, chunk):
        n = min(chunk, size - start)
        given = [
            x if d is None else ops.index_view(x, index=(*(slice(None),) * d, slice(start, start + n)))
            for x, d in zip(values, dims, strict=True)
        ]
        flat, spec = tree_flatten(part(given, n))
        pieces.append(flat)
    single = isinstance(out_dims, tuple) and len(out_dims) == 1 and spec.is_leaf()  # out_dims=(0,) of one output
    along: Sequence[Any] = [out_dims[0]] if single else broadcast_to_and_flatten(out_dims, spec, is_leaf=lambda x: x is None) or []
    joined = []
    for parts, d in zip(zip(*pieces, strict=True), along, strict=True):
        joined.append(parts[0] if d is None else ops.cat(*parts, dim=d % len(parts[0]._array.shape)))
    return tree_unflatten(joined, spec)


_warned: set[str] = set()


def for_each(f: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], error: NoValuesError) -> Any:
    """A function that computes on the host, for one example after the other, which a warning says once; others cannot: the error stands."""
    level: Any = error.level
    name = f.__name__
    flat, spec = tree_flatten((args, kwargs))
    given = [settle(x) for x in flat]
    above = highest(given)
    if level is None or name not in transform.HOST_FUNCTIONS or (above is not None and above.number > level.number):
        raise error
    if above is not level and level.randomness != "different":  # else what differs is what is drawn
        raise error
    if name not in _warned:
        _warned.add(name)
        warnings.warn(f"vmap: {name} computes on the host and runs in a loop over the {level.size} examples, which is slow", stacklevel=3)
    outs = []
    with _draw_one_by_one(level, given) as begin:
        for k in range(level.size):
            one = [
                ops.index_view(x._array.value, index=(k,)) if level_of(x) is level and x._array.batched else below(x, level) for x in given
            ]
            a, named = tree_unflatten(one, spec)
            begin()
            try:
                outs.append(f(*a, **named))
            except NoValuesError as around:
                if around.level is level:
                    raise
                outs.append(for_each(f, a, named, around))
    columns = zip(*[tree_flatten(y)[0] for y in outs], strict=True)
    stacked = []
    for column in columns:
        if len({y._array.shape for y in column}) > 1:  # results of several shapes make no batch
            raise error
        stacked.append(wrap(ops.stack(*column, dim=0), level, batched=True))
    return tree_unflatten(stacked, tree_flatten(outs[0])[1])


@contextmanager
def _draw_one_by_one(level: Level, given: list[Any]) -> Iterator[Callable[[], None]]:
    """What is drawn inside is for one example of a vmap that lets it draw: numbers of its own, or the same for all. Call what this gives before each."""
    before = running.levels
    sources = [default_generator, *[g for g in given if isinstance(g, Generator)]]  # what a function may draw from
    starts = [(g.key, g.offset) for g in sources]

    def begin() -> None:
        if level.randomness == "same":
            for g, (key, offset) in zip(sources, starts, strict=True):
                g.key, g.offset = key, offset

    if level.randomness != "error":
        running.levels = tuple([other for other in before if other is not level])
    try:
        yield begin
    finally:
        running.levels = before
