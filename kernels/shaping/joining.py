"""cat and stack: arrays laid side by side along a dimension, old or new."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any, cast

import numpy as np

from tritensor.ground.device import cpu
from tritensor.ground.errors import ShapeError
from tritensor.ground.strides import image_strides, is_channels_last
from tritensor.kernels.parts.allocation import allocate
from tritensor.kernels.parts.copying import write
from tritensor.kernels.shaping.cat_kernel import side_by_side
from tritensor.ops.array import Array, CudaArray, element_strides, empty
from tritensor.ops.table import Sample, Spec, op, ops

ANY = ("float16", "bfloat16", "float32", "float64", "int64", "bool")


def _check(name: str, xs: tuple[Any, ...], dim: int | None) -> None:
    """One dtype and, but for dim, one shape."""
    if not xs:
        raise ShapeError(f"{name}: no tensors were given; it needs at least one")
    first = xs[0]
    for i, x in enumerate(xs[1:], 1):
        if x.shape == first.shape:
            continue
        if len(x.shape) != len(first.shape) or any(d != dim and m != n for d, (m, n) in enumerate(zip(x.shape, first.shape, strict=True))):
            where = "" if dim is None else f" outside dim {dim}"
            raise ShapeError(f"{name}: tensor {i} is {tuple(x.shape)}, tensor 0 is {tuple(first.shape)}; their sizes must agree{where}")


def _parts_of(shapes: Iterable[tuple[int, ...]], dim: int) -> list[tuple[slice, ...]]:
    """Where in their concatenation arrays of these shapes stand."""
    lead, found, start = (slice(None),) * dim, [], 0
    for shape in shapes:
        stop = start + shape[dim]
        found.append((*lead, slice(start, stop)))
        start = stop
    return found


# cat: y[.., o_k + i, ..] = x_k[.., i, ..], o_k = n_0 + ... + n_(k-1)
def _cat(*xs: np.ndarray, dim: int) -> np.ndarray:
    return np.concatenate(xs, dim)


def _cat_cpu(*xs: np.ndarray, dim: int) -> np.ndarray:
    strides = _image_strides(xs, dim)
    # in the layout that the op promises: numpy's would follow the inputs' strides
    if strides is None:
        y = np.concatenate(xs, dim)
        return y if y.flags.c_contiguous else np.array(y, order="C")
    y = cast(np.ndarray, empty(_cat_shape(*xs, dim=dim).shape, xs[0].dtype, cpu, strides))
    return np.concatenate(xs, dim, out=y)


def _planned_cat(*xs: np.ndarray, dim: int) -> Callable[..., np.ndarray] | None:
    if _image_strides(xs, dim) is not None or not np.concatenate(xs, dim).flags.c_contiguous:
        return None
    join = np.concatenate
    return (lambda a, b: join((a, b), dim)) if len(xs) == 2 else (lambda *xs: join(xs, dim))


_cat_cpu.planned = _planned_cat  # type: ignore[attr-defined]


def _image_strides(xs: tuple[Any, ...], dim: int) -> tuple[int, ...] | None:
    """Strides of the result where all inputs are images, channels last; None where it lies in C order."""
    if len(xs[0].shape) not in (4, 5) or not all([is_channels_last(x.shape, element_strides(x)) for x in xs]):
        return None
    operands = tuple([(x.shape, element_strides(x)) for x in xs])
    return image_strides(_cat_shape(*xs, dim=dim).shape, operands)


def _cat_shape(*xs: Any, dim: int) -> Spec:
    if xs and not xs[0].shape:
        raise ShapeError("cat: 0-dimensional tensors cannot be joined; use stack")
    _check("cat", xs, dim)
    shape = list(xs[0].shape)
    shape[dim] = sum(x.shape[dim] for x in xs)
    return Spec(tuple(shape), xs[0].dtype)


def _cat_forward(*xs: CudaArray, dim: int) -> CudaArray:
    """One launch where the parts are few and lie in C order; else one for each."""
    y = allocate(_cat_shape(*xs, dim=dim).shape, xs[0].dtype, xs[0].device, _image_strides(xs, dim))
    # strided or many parts: a copy for each
    if side_by_side(xs, y, [math.prod(x.shape[dim:]) for x in xs]):
        return y
    for x, part in zip(xs, _parts_of([x.shape for x in xs], dim), strict=True):
        write(y[part], x)
    return y


def _cat_gradient(g: Array, xs_shape: tuple[tuple[int, ...], ...], dim: int, needs: tuple[bool, ...]) -> tuple[Array | None, ...]:
    """Slices of g: views, no launch."""
    return tuple([g[part] if need else None for part, need in zip(_parts_of(xs_shape, dim), needs, strict=True)])


def _cat_rule(g: Any, xs_shape: tuple[tuple[int, ...], ...], dim: int, needs: tuple[bool, ...]) -> tuple[Any, ...]:
    return tuple([ops.index_view(g, index=part) if need else None for part, need in zip(_parts_of(xs_shape, dim), needs, strict=True)])


def _cat_samples(rng: np.random.Generator) -> list[Sample]:
    return [
        Sample(rng.standard_normal((2, 3)), rng.standard_normal((4, 3)), rng.standard_normal((1, 3)), dim=0),
        Sample(rng.standard_normal((2, 3, 2)), rng.standard_normal((2, 5, 2)), dim=1),
        Sample(rng.standard_normal((2, 3)), np.zeros((2, 0)), dim=1),
        Sample(rng.standard_normal((3,)), dim=0),
        Sample(*[rng.standard_normal((2, 2, 3, n)).transpose(0, 3, 1, 2) for n in (3, 2)], dim=1),  # channels last
    ]


op(
    "cat", _cat, cpu=_cat_cpu, shape=_cat_shape, forward=_cat_forward, samples=_cat_samples, promote="same", dtypes=ANY,
    rule=_cat_rule, backward=_cat_gradient, cpu_backward=_cat_gradient, layout="own",
    doc="Tensors joined along an existing dimension.",
)  # fmt: skip


# stack: y[.., k, ..] = x_k[..]
def _stack(*xs: np.ndarray, dim: int) -> np.ndarray:
    return np.stack(xs, dim)


def _stack_cpu(*xs: np.ndarray, dim: int) -> np.ndarray:
    strides = _stack_strides(xs, dim)
    if strides is None:
        at = (*(slice(None),) * dim, None)
        return np.ascontiguousarray(np.concatenate([x[at] for x in xs], dim))
    y = cast(np.ndarray, empty(_stack_shape(*xs, dim=dim).shape, xs[0].dtype, cpu, strides))
    return np.stack(xs, dim, out=y)


def _planned_stack(*xs: np.ndarray, dim: int) -> Callable[..., np.ndarray] | None:
    at = (*(slice(None),) * dim, None)
    if _stack_strides(xs, dim) is not None or not np.concatenate([x[at] for x in xs], dim).flags.c_contiguous:
        return None
    return lambda *xs: np.concatenate([x[at] for x in xs], dim)


_stack_cpu.planned = _planned_stack  # type: ignore[attr-defined]


def _stack_strides(xs: tuple[Any, ...], dim: int) -> tuple[int, ...] | None:
    """Those of cat, cut where the arrays meet; None where the result lies in C order."""
    joined = _image_strides(xs, dim) if dim < len(xs[0].shape) else None
    return joined and (*joined[:dim], xs[0].shape[dim] * joined[dim], *joined[dim:])


def _stack_shape(*xs: Any, dim: int) -> Spec:
    _check("stack", xs, None)
    shape = xs[0].shape
    return Spec((*shape[:dim], len(xs), *shape[dim:]), xs[0].dtype)


def _stack_forward(*xs: CudaArray, dim: int) -> CudaArray:
    """One launch where the parts are few and lie in C order; else one for each."""
    y = allocate(_stack_shape(*xs, dim=dim).shape, xs[0].dtype, xs[0].device, _stack_strides(xs, dim))
    if side_by_side(xs, y, [math.prod(x.shape[dim:]) for x in xs]):
        return y
    for k, x in enumerate(xs):
        write(y[(*(slice(None),) * dim, k)], x)
    return y


def _stack_gradient(g: Array, dim: int, needs: tuple[bool, ...]) -> tuple[Array | None, ...]:
    at: tuple[Any, ...] = (slice(None),) * dim
    taken = [g[(*at, k)] if need else None for k, need in enumerate(needs)]
    return tuple([np.asarray(x) if isinstance(x, np.generic) else x for x in taken])


def _stack_samples(rng: np.random.Generator) -> list[Sample]:
    return [
        Sample(rng.standard_normal((2, 3)), rng.standard_normal((2, 3)), rng.standard_normal((2, 3)), dim=0),
        Sample(rng.standard_normal((2, 3)), rng.standard_normal((2, 3)), dim=2),
        Sample(rng.standard_normal(()), rng.standard_normal(()), dim=0),
        Sample(np.zeros((0, 2)), np.zeros((0, 2)), dim=1),
        Sample(*[rng.standard_normal((2, 2, 3, 4)).transpose(0, 3, 1, 2) for _ in range(2)], dim=1),  # channels last
    ]


op(
    "stack", _stack, cpu=_stack_cpu, shape=_stack_shape, forward=_stack_forward, samples=_stack_samples, promote="same", dtypes=ANY,
    backward=_stack_gradient, cpu_backward=_stack_gradient, layout="own",
    doc="Tensors of one shape joined along a new dimension.",
    rule=lambda g, dim, needs: tuple([ops.index_view(g, index=(*(slice(None),) * dim, k)) if need else None for k, need in enumerate(needs)]),
)  # fmt: skip
