"""Advanced indexing as ops: index_get and index_put pick and write elements by integer arrays, with numpy's meaning."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tritensor.ground import dtypes
from tritensor.ground.errors import DTypeError, OutOfRangeError, ShapeError
from tritensor.ground.strides import elementwise_strides
from tritensor.kernels.parts.allocation import allocate
from tritensor.kernels.parts.copying import assigned, contiguous, to_c_order, to_strides, write
from tritensor.kernels.parts.filling import filled
from tritensor.kernels.parts.float8 import is_float8, moved_as_bytes
from tritensor.kernels.parts.indices.error_reports import Watch, check_integers, check_range
from tritensor.kernels.parts.indices.rows_by_key import FEW_SUMS, keys_of, numpy_add_rows, numpy_keys, put_rows, take_rows, watch_keys
from tritensor.kernels.parts.view_arithmetic import inverse, zero_tensor
from tritensor.ops.array import CudaArray, element_strides, is_contiguous
from tritensor.ops.table import Sample, Spec, op, ops, refuse_mixed

FLOATS = ("float16", "bfloat16", "float32", "float64", "int64")


class Plan(NamedTuple):
    """`x[..., i, j, ...]` as rows (L, R, D): dimensions in that order, and the sizes of each group."""

    order: tuple[int, ...]  # of x's dimensions
    lead: tuple[int, ...]
    sizes: tuple[int, ...]
    rest: tuple[int, ...]

    @property
    def rows(self) -> tuple[int, int, int]:
        return math.prod(self.lead), math.prod(self.sizes), math.prod(self.rest)


@functools.lru_cache(1024)
def plan(shape: tuple[int, ...], dims: tuple[int, ...], front: bool) -> Plan:
    """The indexed dimensions stay where the first of them is, or come to the front (numpy: when they are not neighbours)."""
    before = () if front else tuple(range(dims[0]))
    after = tuple(d for d in range(len(shape)) if d not in dims and d not in before)
    lead, sizes, rest = (tuple(shape[d] for d in group) for group in (before, dims, after))
    return Plan((*before, *dims, *after), lead, sizes, rest)


def broadcast_indices(name: str, indices: Sequence[Any]) -> tuple[int, ...]:
    """The shape that the index arrays broadcast to."""
    first = tuple(indices[0].shape)
    if all([i.shape == first for i in indices]):
        return first
    try:
        return np.broadcast_shapes(*(tuple(i.shape) for i in indices))
    except ValueError:
        given = ", ".join(str(tuple(i.shape)) for i in indices)
        raise IndexError(f"{name}: indices of shapes {given} do not broadcast together; their sizes must be equal or 1") from None


def got_shape(name: str, x: Any, indices: Sequence[Any], dims: tuple[int, ...], front: bool) -> tuple[int, ...]:
    """Shape of x at the indices."""
    if len(indices) != len(dims) or not indices:
        raise ShapeError(f"{name}: {len(indices)} index arrays for dims {dims}; give one for each")
    for i in indices:
        check_integers(name, i)
    try:
        p = plan(x.shape, dims, front)
    except IndexError:
        raise ShapeError(f"{name}: x {tuple(x.shape)} has no dim {max(dims)}; the index arrays are of dims {dims}") from None
    return (*p.lead, *broadcast_indices(name, indices), *p.rest)


def _numpy_index(indices: Sequence[np.ndarray], lead: int) -> tuple[Any, ...]:
    return (*(slice(None),) * lead, *indices)


def index_order(shape: tuple[int, ...], x: Any, indices: Sequence[Any], p: Plan) -> tuple[int, ...] | None:
    """Strides of an elementwise result of x, which stands still along the indices' dimensions, and of the indices; None is C order."""
    if len(shape) < 2 or all([is_contiguous(a) for a in (x, *indices)]):
        return None
    steps, before, after = element_strides(x), len(p.lead), len(p.rest)
    spread = len(shape) - before - after
    order = [steps[d] for d in p.order]
    still = (*order[:before], *(0,) * spread, *order[len(order) - after :])
    operands = [(shape, still)]
    for i in indices:
        operands.append(((*i.shape, *(1,) * after), (*element_strides(i), *(0,) * after)))
    return elementwise_strides(shape, tuple(operands))


def _in_index_order(y: Any, x: Any, indices: Sequence[Any], p: Plan) -> Any:
    """y in the memory order that `index_order` gives."""
    strides = index_order(y.shape, x, indices, p)
    return contiguous(y) if strides is None else to_strides(y, strides)


# index_get: y[l, b, d] = x[l, (i_0[b], i_1[b], ...), d]
def _index_get(x: np.ndarray, *indices: np.ndarray, dims: tuple[int, ...], front: bool, called: str = "getitem") -> np.ndarray:
    y = np.moveaxis(x, dims, range(len(dims)))[indices]
    return y if front else np.moveaxis(y, *_moves(indices, dims))


def _moves(indices: Sequence[np.ndarray], dims: tuple[int, ...]) -> tuple[range, range]:
    """The dimensions of broadcast indices in front of an array, and where they stand if not in front: at the first indexed dimension."""
    n = np.broadcast(*indices).ndim
    return range(n), range(dims[0], dims[0] + n)


def _index_get_cpu(x: np.ndarray, *indices: np.ndarray, dims: tuple[int, ...], front: bool, called: str = "getitem") -> np.ndarray:
    try:
        # of a few rows take needs a third of advanced indexing's time
        if len(indices) == 1 and not front:
            y = x.take(indices[0], dims[0])
            if x.flags.c_contiguous and (indices[0].ndim < 2 or indices[0].flags.c_contiguous):
                return y
            return _in_index_order(y, x, indices, plan(x.shape, dims, front))
        p = plan(x.shape, dims, front)
        return _in_index_order(x.transpose(p.order)[_numpy_index(indices, len(p.lead))], x, indices, p)
    except IndexError:
        shape = got_shape(called, x, indices, dims, front)
        if 0 in shape:  # as PyTorch: of what nothing is read nothing is asked
            return np.empty(shape, x.dtype)
        _check_indices(called, x, indices, dims)
        raise


def _check_indices(name: str, x: np.ndarray, indices: Sequence[np.ndarray], dims: tuple[int, ...]) -> None:
    """Raise the IndexError that says which value, where one is out of range."""
    for i, dim in zip(indices, dims, strict=True):
        check_range(name, i, x.shape[dim], dim, negative=True)


def _index_get_shape(x: Any, *indices: Any, dims: tuple[int, ...], front: bool, called: str = "getitem") -> Spec:
    shape = got_shape(called, x, indices, dims, front)
    if 0 in x.shape and 0 not in broadcast_indices(called, indices):
        _refuse_into_nothing(called, x, dims)
    return Spec(shape, x.dtype)


def _refuse_into_nothing(name: str, x: Any, dims: tuple[int, ...]) -> None:
    """Raise OutOfRangeError where a dimension that is indexed has no elements."""
    for d in dims:
        if x.shape[d] == 0:
            raise OutOfRangeError(f"{name}: indices into dim {d} of x {tuple(x.shape)}, which has size 0; give empty ones")


def _rows_of(x: CudaArray, p: Plan) -> CudaArray:
    """x as contiguous (L, R, D), copied where its strides do not allow that."""
    return to_c_order(x.transpose(p.order)).reshape(p.rows)


@moved_as_bytes
def _index_get_forward(x: CudaArray, *indices: CudaArray, dims: tuple[int, ...], front: bool, called: str = "getitem") -> CudaArray:
    shape = got_shape(called, x, indices, dims, front)
    if 0 in shape:  # of what nothing is read nothing is asked
        return allocate(shape, x.dtype, x)
    return _taken(x, indices, dims, front, watch_keys("index_get", called, indices, dims, broadcast_indices(called, indices)))


def _taken(x: CudaArray, indices: Sequence[CudaArray], dims: tuple[int, ...], front: bool, watching: Watch | None = None) -> CudaArray:
    p = plan(x.shape, dims, front)
    shape = broadcast_indices("getitem", indices)
    y = take_rows(_rows_of(x, p), keys_of(indices, p.sizes, shape, watching=watching)).reshape((*p.lead, *shape, *p.rest))
    return _in_index_order(y, x, indices, p)


def _index_get_rule(g: Any, indices: tuple[Any, ...], x_shape: tuple[int, ...], dims: tuple[int, ...], front: bool) -> Any:
    if 0 in g._array.shape:  # where nothing was read the indices were not looked at
        return (zero_tensor(x_shape, g),)
    return (ops.index_put(zero_tensor(x_shape, g), g, *indices, dims=dims, front=front, accumulate=True),)


def _index_get_backward(g: CudaArray, indices: tuple[CudaArray, ...], x_shape: tuple[int, ...], dims: tuple[int, ...], front: bool) -> Any:
    if 0 in g.shape:
        return (filled(x_shape, g.dtype, g.device, 0),)
    p = plan(x_shape, dims, front)
    target = filled(p.rows, g.dtype, g.device, 0)
    return (_put(target, g, indices, p, add=True),)


def _index_get_cpu_backward(
    g: np.ndarray, indices: tuple[np.ndarray, ...], x_shape: tuple[int, ...], dims: tuple[int, ...], front: bool
) -> Any:
    if len(indices) == 1 and g.dtype.char in "fd" and 0 < max(g.size, math.prod(x_shape)) <= FEW_SUMS:
        return (_add_few(g, indices[0], x_shape, dims[0]),)
    zeros = np.zeros(x_shape, g.dtype)
    return (_index_put_cpu(zeros, g, *indices, dims=dims, front=front, accumulate=True) if g.size else zeros,)


def _add_few(g: np.ndarray, index: np.ndarray, shape: tuple[int, ...], dim: int) -> np.ndarray:
    """Zeros of a shape to which g is added where an index has been, few elements, in float64."""
    keys = index.reshape(-1).astype(np.intp, copy=False)
    if keys.size and int(np.minimum.reduce(keys)) < 0:
        keys = np.where(keys < 0, keys + shape[dim], keys)
    size, width = math.prod(shape), math.prod(shape[dim + 1 :])
    at = keys if width == 1 else keys[:, None] * width + np.arange(width)
    if dim:
        at = np.arange(0, size, shape[dim] * width).reshape(-1, *(1,) * at.ndim) + at
    return np.bincount(at.reshape(-1), g.reshape(-1), size).reshape(shape).astype(g.dtype, copy=False)


def _index_get_samples(rng: np.random.Generator) -> list[Sample]:
    x = rng.standard_normal((4, 5, 3))
    return [
        Sample(x, np.array([2, 0, 2, -1]), dims=(0,), front=False),
        Sample(x, np.array([[1, 4], [4, 4]]), dims=(1,), front=False),
        Sample(x, np.array([0, 3, 0]), np.array([[1], [2]], np.int32), dims=(0, 1), front=False),
        Sample(x, np.array([0, 3, 0]), np.array(1), dims=(0, 2), front=True),
        Sample(x, np.zeros((0,), np.int64), dims=(1,), front=False),
        Sample(rng.standard_normal(20), rng.integers(0, 20, 300), dims=(0,), front=False),
    ]


op(
    "index_get", _index_get, cpu=_index_get_cpu, shape=_index_get_shape, forward=_index_get_forward, samples=_index_get_samples, dtypes=FLOATS,
    reports=True, layout="own", rule=_index_get_rule, backward=_index_get_backward, cpu_backward=_index_get_cpu_backward,
    doc="Elements of x at integer arrays along `dims`; the arrays broadcast together, negative values count from the end.",
)  # fmt: skip


# index_put: y = x, y[l, (i_0[b], ...), d] = value[l, b, d], or += with accumulate; of equal positions the last one stays
def _index_put(
    x: np.ndarray, value: np.ndarray, *indices: np.ndarray, dims: tuple[int, ...], front: bool, accumulate: bool = False, called: str = "setitem"
) -> np.ndarray:  # fmt: skip
    y = x.copy()
    if not accumulate:
        _index_assign(y, value, *indices, dims=dims, front=front)
        return y
    to, here = _moves(indices, dims)
    np.add.at(np.moveaxis(y, dims, range(len(dims))), indices, value if front else np.moveaxis(value, here, to))
    return y


def _index_put_cpu(
    x: np.ndarray, value: np.ndarray, *indices: np.ndarray, dims: tuple[int, ...], front: bool, accumulate: bool = False, called: str = "setitem"
) -> np.ndarray:  # fmt: skip
    p = plan(x.shape, dims, front)
    # nothing is added: numpy's own assignment, of which the last of equal positions stays
    if not accumulate:
        y = x.copy()
        _index_assign_cpu(y, value, *indices, dims=dims, front=front, called=called)
        return y
    keys = numpy_keys(called, indices, p.sizes, dims)
    acc_type = dtypes.accumulator(x.dtype) if dtypes.is_float(x.dtype) else x.dtype
    target = np.array(x.transpose(p.order), acc_type, order="C").reshape(p.rows)
    numpy_add_rows(target, keys, value.reshape(p.rows[0], keys.size, p.rows[2]).astype(acc_type, copy=False))
    y = target.reshape(*p.lead, *p.sizes, *p.rest).transpose(inverse(p.order))
    return y.astype(x.dtype, order="C", copy=False)


def _index_put_shape(
    x: Any, value: Any, *indices: Any, dims: tuple[int, ...], front: bool, accumulate: bool = False, called: str = "setitem"
) -> Spec:
    want = got_shape(called, x, indices, dims, front)
    if tuple(value.shape) != want:
        raise ShapeError(f"{called}: value {tuple(value.shape)} for indexed elements of shape {want}")
    if 0 in x.shape and 0 not in want:
        _refuse_into_nothing(called, x, dims)
    refuse_mixed("index_put", ("x", x), ("value", value))
    if accumulate and is_float8(x.dtype):
        raise DTypeError(f"index_put: {dtypes.of(x.dtype).name} is a storage type; add in .to(float16), bfloat16 or float32")
    return Spec(tuple(x.shape), x.dtype)


def _put(
    target: CudaArray, value: CudaArray, indices: Sequence[CudaArray], p: Plan, *, add: bool, watching: Watch | None = None
) -> CudaArray:
    """Write value's rows into a fresh target (L, R, D); returns it in x's shape."""
    shape = broadcast_indices("setitem", indices)
    keys = keys_of(indices, p.sizes, shape, watching=watching)
    put_rows(target, keys, to_c_order(value).reshape((p.rows[0], keys.size, p.rows[2])), add=add)
    return target.reshape((*p.lead, *p.sizes, *p.rest)).transpose(inverse(p.order))


@moved_as_bytes
def _index_put_forward(
    x: CudaArray, value: CudaArray, *indices: CudaArray, dims: tuple[int, ...], front: bool, accumulate: bool = False, called: str = "setitem"
) -> CudaArray:  # fmt: skip
    return to_c_order(_put_in_copy(x, value, indices, dims, front, accumulate, _watch_put("index_put", called, indices, dims)))


def _watch_put(op: str, called: str, indices: Sequence[CudaArray], dims: tuple[int, ...]) -> Watch:
    return watch_keys(op, called, indices, dims, broadcast_indices(called, indices))


def _put_in_copy(
    x: CudaArray, value: CudaArray, indices: Sequence[CudaArray], dims: tuple[int, ...], front: bool, add: bool,
    watching: Watch | None = None,
) -> CudaArray:  # fmt: skip
    p = plan(x.shape, dims, front)
    permuted = x.transpose(p.order)
    target = assigned(allocate(permuted.shape, permuted.dtype, permuted.device), permuted).reshape(p.rows)
    return _put(target, value, indices, p, add=add, watching=watching)


def _index_put_rule(
    g: Any, indices: tuple[Any, ...], value_shape: tuple[int, ...], dims: tuple[int, ...], front: bool, accumulate: bool, needs: tuple[bool, ...]
) -> Any:  # fmt: skip
    kept = None
    if needs[0]:
        zeros = ops.expand(zero_tensor((), g), shape=value_shape)
        kept = g if accumulate else ops.index_put(g, zeros, *indices, dims=dims, front=front, accumulate=False)
    # Where positions repeat without accumulate, every value that was aimed there gets the gradient, as in PyTorch.
    return kept, ops.index_get(g, *indices, dims=dims, front=front) if needs[1] else None


def _index_put_backward(
    g: CudaArray, indices: tuple[CudaArray, ...], value_shape: tuple[int, ...], dims: tuple[int, ...], front: bool, accumulate: bool,
    needs: tuple[bool, ...],
) -> Any:  # fmt: skip
    kept = None
    if needs[0]:
        zeros = filled((), g.dtype, g.device, 0).expand(value_shape)
        kept = g if accumulate else _put_in_copy(g, zeros, indices, dims, front, False)
    return kept, _taken(g, indices, dims, front) if needs[1] else None


def _index_put_cpu_backward(
    g: np.ndarray, indices: tuple[np.ndarray, ...], value_shape: tuple[int, ...], dims: tuple[int, ...], front: bool, accumulate: bool,
    needs: tuple[bool, ...],
) -> Any:  # fmt: skip
    kept = None
    if needs[0]:
        kept = g if accumulate else _index_put_cpu(g, np.broadcast_to(g.dtype.type(0), value_shape), *indices, dims=dims, front=front)
    return kept, _index_get_cpu(g, *indices, dims=dims, front=front) if needs[1] else None


def _index_put_samples(rng: np.random.Generator) -> list[Sample]:
    x, pair = rng.standard_normal((4, 5, 3)), (np.array([0, 3, 1]), np.array([[1], [2]], np.int32))
    return [
        Sample(x, rng.standard_normal((3, 5, 3)), np.array([2, 0, -1]), dims=(0,), front=False, accumulate=False),
        Sample(x, rng.standard_normal((4, 2, 2, 3)), np.array([[1, 4], [4, 4]]), dims=(1,), front=False, accumulate=True),
        Sample(x, rng.standard_normal((2, 3, 3)), *pair, dims=(0, 1), front=False, accumulate=False),
        Sample(x, rng.standard_normal((3, 5)), np.array([0, 3, 0]), np.array(1), dims=(0, 2), front=True, accumulate=True),
        Sample(x, rng.standard_normal((2, 5)), np.array([0, 3]), np.array(1), dims=(0, 2), front=True, accumulate=False),
        Sample(x, np.zeros((4, 0, 3)), np.zeros((0,), np.int64), dims=(1,), front=False, accumulate=True),
        Sample(rng.standard_normal(20), rng.standard_normal(300), rng.integers(0, 20, 300), dims=(0,), front=False, accumulate=True),
    ]


op(
    "index_put", _index_put, cpu=_index_put_cpu, shape=_index_put_shape, forward=_index_put_forward, samples=_index_put_samples, dtypes=FLOATS,
    reports=True, rule=_index_put_rule, backward=_index_put_backward, cpu_backward=_index_put_cpu_backward,
    doc="A copy of x with `value` written (or added) at integer arrays along `dims`.",
)  # fmt: skip


# index_assign: the same, overwriting x itself
def _index_assign(
    x: np.ndarray, value: np.ndarray, *indices: np.ndarray, dims: tuple[int, ...], front: bool, called: str = "setitem"
) -> None:
    to, here = _moves(indices, dims)
    np.moveaxis(x, dims, range(len(dims)))[indices] = value if front else np.moveaxis(value, here, to)


def _index_assign_cpu(
    x: np.ndarray, value: np.ndarray, *indices: np.ndarray, dims: tuple[int, ...], front: bool, called: str = "setitem"
) -> None:
    p = plan(x.shape, dims, front)
    try:
        x.transpose(p.order)[_numpy_index(indices, len(p.lead))] = value
    except IndexError:
        _check_indices(called, x, indices, dims)
        raise


@moved_as_bytes
def _index_assign_forward(
    x: CudaArray, value: CudaArray, *indices: CudaArray, dims: tuple[int, ...], front: bool, called: str = "setitem"
) -> None:
    watching = _watch_put("index_assign", called, indices, dims)
    p = plan(x.shape, dims, front)
    permuted = x.transpose(p.order)
    # written in place; a value that lies in x itself would be overwritten while it is read
    if permuted.is_contiguous() and value.storage is not x.storage:
        _put(permuted.reshape(p.rows), value, indices, p, add=False, watching=watching)
    else:
        write(x, _put_in_copy(x, value, indices, dims, front, False, watching))


op(
    "index_assign", _index_assign, cpu=_index_assign_cpu, forward=_index_assign_forward,
    dtypes=FLOATS, mutates=("x",), differentiable=False, reports=True,
    doc="Write `value` into x itself at integer arrays along `dims`; of equal positions the last one stays.",
    shape=lambda x, value, *indices, dims, front, called='setitem': _index_put_shape(x, value, *indices, dims=dims, front=front, called=called),
    samples=lambda rng: [Sample(*s.inputs, dims=s.attrs["dims"], front=s.attrs["front"]) for s in _index_put_samples(rng)],
)  # fmt: skip
