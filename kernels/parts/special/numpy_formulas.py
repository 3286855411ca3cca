"""numpy's side of a formula: the reference of an elementwise op made of the formula itself, evaluated in blocks that stay in the cache."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tritensor.ground.device import cpu
from tritensor.kernels.parts import backends
from tritensor.kernels.parts.cpu import blocks
from tritensor.kernels.parts.pointwise_samples import Domain
from tritensor.ops.array import empty_elementwise
from tritensor.ops.table import Sample


def unary(formula: Any) -> Callable[..., Any]:
    """The reference of a formula of one input."""
    plain = backends.twin(formula, backends.on_numpy)

    def block(x: np.ndarray, out: np.ndarray) -> None:
        np.copyto(out, plain(x), casting="same_kind")

    reference = blocks.blocked(block)
    reference.__module__ = backends.body(formula).__module__
    return reference


def binary(formula: Any, function: Callable[..., Any] | None = None, block: Callable[..., None] | None = None) -> Callable[..., Any]:
    """The reference of a formula of two inputs, arrays of one type that broadcast or numbers. `function` stands for its twin where numpy has a
    better way, `block(a, b, out)` as well, which writes its result."""
    plain = function or backends.twin(formula, backends.on_numpy)

    def assigned(a: np.ndarray, b: np.ndarray, out: np.ndarray) -> None:
        out[...] = plain(a, b)

    return blockwise(block or assigned, backends.body(formula))


def blockwise(block: Callable[..., None], body: Any) -> Callable[..., Any]:
    """The reference of an elementwise function of several inputs, of block(*inputs, out) on arrays of one float type that hold as many elements as out
    or one; `body` is the Python function whose inputs' names and module it takes."""

    def reference(*inputs: Any, out: np.ndarray | None = None) -> Any:
        given = tuple(x for x in inputs if isinstance(x, np.ndarray))
        dtype = given[0].dtype
        shape = np.broadcast_shapes(*[x.shape for x in given])
        if out is None:
            out = np.asarray(empty_elementwise(shape, dtype, cpu, given))
        wide = np.dtype(np.float32) if blocks.is_narrow(dtype) else dtype
        lanes = [_lane(x, shape, wide) for x in inputs]
        apart = out.flags.c_contiguous and not any(np.may_share_memory(out, x) for x in lanes)
        target = out.reshape(-1) if apart else np.empty(out.size, wide)
        with blocks.SILENT():
            for start in range(0, target.size, blocks.BLOCK):
                part = slice(start, start + blocks.BLOCK)
                values = [x[part].astype(wide, copy=False) if x.size != 1 else x.astype(wide, copy=False) for x in lanes]
                if target.dtype == wide:
                    block(*values, target[part])
                else:
                    room = np.empty(target[part].shape, wide)
                    block(*values, room)
                    target[part] = room
        if not apart:
            out[...] = target.reshape(shape)
        return out

    reference.__signature__ = blocks.signature(body.__code__.co_varnames[: body.__code__.co_argcount])  # type: ignore[attr-defined]
    reference.__module__ = body.__module__
    return reference


def _lane(x: Any, shape: tuple[int, ...], wide: np.dtype) -> np.ndarray:
    """An operand as one sequence of the result's elements; one that is the same everywhere as a sequence of one."""
    if not isinstance(x, np.ndarray):
        return np.full(1, x, wide)
    if x.size == 1:
        return x.reshape(1)
    return np.broadcast_to(x, shape).reshape(-1) if x.shape != shape else x.reshape(-1)


_ODD = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 1e-30, 2.5, -2.5, 40.0, 1e4])


def few(*domains: Domain, odd: bool = True, extra: Callable[[np.random.Generator], Sequence[Sample]] | None = None) -> Any:
    """Samples of a long formula: the shared kernel's paths are reached by those of short ones."""

    def samples(rng: np.random.Generator) -> list[Sample]:
        found = [Sample(*[d.draw(rng, (3, 5)) for d in domains])]
        if len(domains) > 1:
            found += [Sample(*[d.draw(rng, s) for d, s in zip(domains, ((4, 1), (3,)), strict=True)])]
        elif odd:
            found.append(Sample(_ODD, smooth=False))
        return found + (list(extra(rng)) if extra is not None else [])

    return samples
