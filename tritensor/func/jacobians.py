"""Whole Jacobians and Hessians: vjp or jvp mapped over the unit vectors."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from tritensor.func.forward import jvp
from tritensor.func.gradients import Argnums, choose_places, vjp
from tritensor.func.mapping import vmap
from tritensor.ground.errors import ArgumentError, TransformError
from tritensor.ground.pytree import described, tree_flatten, tree_unflatten
from tritensor.ops.table import ops
from tritensor.tensor.core import Tensor


def _units(x: Tensor, first: int, count: int, total: int) -> Tensor:
    """(total, *shape): the unit vectors of x's elements, which stand from `first` on among `total`; zeros elsewhere."""
    eye = ops.eye(rows=total, columns=total, dtype=x._array.dtype, device=x.device)
    part = ops.index_view(eye, index=(slice(None), slice(first, first + count)))
    made: Tensor = ops.reshape(ops.copy(part), shape=(total, *x._array.shape))  # a column slice has gaps, which no reshape allows
    return made


def basis(leaves: list[Tensor]) -> list[Tensor]:
    """For each leaf its part of all unit vectors."""
    counts = [x._array.size for x in leaves]
    total, first, found = sum(counts), 0, []
    for x, n in zip(leaves, counts, strict=True):
        found.append(_units(x, first, n, total))
        first += n
    return found


def _replace_args(args: tuple[Any, ...], places: tuple[int, ...], given: tuple[Any, ...]) -> tuple[Any, ...]:
    found = list(args)
    for i, x in zip(places, given, strict=True):
        found[i] = x
    return tuple(found)


def _bind_part(
    name: str, func: Callable[..., Any], argnums: Argnums, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Any, tuple[Any, ...]]:
    """func as one of the chosen arguments alone, and these."""
    places = choose_places(name, args, argnums)

    def part(*given: Any) -> Any:
        return func(*_replace_args(args, places, given), **kwargs)

    return part, tuple([args[i] for i in places])


def _refuse_complex(name: str, tensors: list[Any], what: str) -> None:
    """A Jacobian is made of real unit vectors."""
    for x in tensors:
        if isinstance(x, Tensor) and x.is_complex():
            raise TransformError(f"{name}: an {what} is {x.dtype.name}; Jacobians are of real numbers, take view_as_real of it")


def _split(rows: Tensor, leaves: list[Tensor], dim: int) -> list[Tensor]:
    """A dimension of all elements as each leaf's own dimensions, a part for each leaf."""
    found, first = [], 0
    for x in leaves:
        n = x._array.size
        part = ops.index_view(rows, index=(*(slice(None),) * dim, slice(first, first + n)))
        shape = part._array.shape
        found.append(ops.reshape(ops.copy(part), shape=(*shape[:dim], *x._array.shape, *shape[dim + 1 :])))
        first += n
    return found


def jacrev(
    func: Callable[..., Any],
    argnums: Argnums = 0,
    *,
    has_aux: bool = False,
    chunk_size: int | None = None,
    _preallocate_and_copy: bool = False,
) -> Callable[..., Any]:
    """A function that gives the Jacobian of func by the argument `argnums`, a row for each element of the output, by vjp.

    Args:
        argnums: place of the argument, or a tuple of places, which gives a tuple for each output.
        has_aux: func returns (output, whatever); the result is (Jacobian, whatever).
        chunk_size: as many rows at a time, which saves memory.

    Raises:
        TransformError: argnums names no argument. ValueError: chunk_size is not positive.

    >>> tt.func.jacrev(lambda p: tt.stack([p.sum(), p.prod()]))(tt.tensor([2.0, 3.0]))
    tensor([[1., 1.],
            [3., 2.]])
    """
    if chunk_size is not None and (isinstance(chunk_size, bool) or not isinstance(chunk_size, int) or chunk_size <= 0):
        raise ArgumentError(f"jacrev: chunk_size is {chunk_size!r}; give a positive int, or None for all at once")

    @functools.wraps(func)
    def call(*args: Any, **kwargs: Any) -> Any:
        part, chosen = _bind_part("jacrev", func, argnums, args, kwargs)
        output, pull, *aux = vjp(part, *chosen, has_aux=has_aux)
        outs, out_spec = tree_flatten(output)
        _refuse_complex("jacrev", tree_flatten(chosen)[0], "input")
        _refuse_complex("jacrev", outs, "output")

        def one(*units: Any) -> Any:
            found = pull(tree_unflatten(units, out_spec))
            return tree_flatten(found)[0]

        rows = vmap(one, chunk_size=chunk_size)(*basis(outs))  # for each leaf of the arguments (all elements of the outputs, *shape)
        per_leaf = [_split(r, outs, 0) for r in rows]
        _, arg_spec = tree_flatten(chosen)
        jacobians = []
        for k in range(len(outs)):
            one_output = tree_unflatten([pieces[k] for pieces in per_leaf], arg_spec)
            jacobians.append(one_output if isinstance(argnums, tuple) else one_output[0])
        found = tree_unflatten(jacobians, out_spec)
        return (found, aux[0]) if has_aux else found

    return call


def jacfwd(func: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False, *, randomness: str = "error") -> Callable[..., Any]:
    """A function that gives the Jacobian of func by the argument `argnums`, a column for each element of the input, by jvp.

    Args:
        argnums: place of the argument, or a tuple of places, which gives a tuple for each output.
        has_aux: func returns (output, whatever); the result is (Jacobian, whatever).
        randomness: what random functions in func do, as of vmap.

    Raises:
        TransformError: argnums names no argument.
    """

    @functools.wraps(func)
    def call(*args: Any, **kwargs: Any) -> Any:
        part, chosen = _bind_part("jacfwd", func, argnums, args, kwargs)
        leaves, spec = tree_flatten(chosen)
        for x in leaves:
            if not isinstance(x, Tensor):
                raise TypeError(f"jacfwd: {described(x)} is among what to differentiate by; give tensors, others as further arguments")
        _refuse_complex("jacfwd", leaves, "input")
        held: list[Any] = []

        def one(*units: Any) -> Any:
            _, moved, *aux = jvp(part, chosen, tree_unflatten(units, spec), has_aux=has_aux)
            flat, out_spec = tree_flatten(moved)
            _refuse_complex("jacfwd", flat, "output")
            held[:] = [out_spec]  # vmap calls it once, whatever the number of columns
            return (flat, aux[0]) if has_aux else flat

        if not leaves:
            raise TransformError("jacfwd: the argument holds no tensor; give at least one")
        made = vmap(one, randomness=randomness, out_dims=(-1, 0) if has_aux else -1)(*basis(leaves))
        columns, aux = made if has_aux else (made, None)  # (*shape of the output, all elements of the arguments)
        jacobians = []
        for c in columns:
            one_output = tree_unflatten(_split(c, leaves, len(c._array.shape) - 1), spec)
            jacobians.append(one_output if isinstance(argnums, tuple) else one_output[0])
        found = tree_unflatten(jacobians, held[0])
        if not has_aux:
            return found
        flat, aux_spec = tree_flatten(aux)
        return found, tree_unflatten([ops.index_view(x, index=(0,)) for x in flat], aux_spec)  # the same for every column: the first one's

    return call


def hessian(func: Callable[..., Any], argnums: Argnums = 0) -> Callable[..., Any]:
    """A function that gives the Hessian of func by the argument `argnums`: jacfwd of jacrev, forward over reverse.

    >>> tt.func.hessian(lambda p: p[0] ** 2 * p[1])(tt.tensor([1.0, 2.0]))
    tensor([[4., 2.],
            [2., 0.]])
    """
    return jacfwd(jacrev(func, argnums), argnums)  # forward over reverse: one gradient, moved along each input
