"""Lookups by class number: embedding picks rows of a table, embedding_bag reduces them bag by bag, one_hot writes them."""

from __future__ import annotations

import sys
import warnings
from typing import Any

import numpy as np

from tritensor.autograd.function import Function
from tritensor.autograd.modes import no_grad
from tritensor.ground.call_site import user_frame, warn
from tritensor.ground.dtypes import bool_, int32, int64
from tritensor.ground.errors import ArgumentError, AssertedArgumentError, DTypeError, ShapeError
from tritensor.ground.transforms import WrappedArray
from tritensor.ops.array import all_values
from tritensor.ops.strided_array import no_values
from tritensor.ops.table import ops
from tritensor.tensor.aliasing.inplace import overwrite
from tritensor.tensor.core import Tensor
from tritensor.tensor.public_api.publish import checked, function

MODES = ("sum", "mean", "max")
_BOOL = bool_.numpy


class _GradientScaling(Function):
    """x itself; its gradient is multiplied by a number for each row."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor, scale: Tensor) -> Tensor:  # type: ignore[override]
        return ops.copy(x)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.save_for_backward(inputs[1])

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:  # type: ignore[override]
        return ops.mul(g, ctx.saved_tensors[0]), None


def _padding_row(name: str, padding_idx: int | None, weight: Tensor) -> int | None:
    """padding_idx counted from the front. Raises AssertedArgumentError for one that is no row."""
    if padding_idx is None or not weight.ndim:
        return None
    if isinstance(padding_idx, bool) or not hasattr(padding_idx, "__index__"):  # numpy's integers are taken
        raise TypeError(f"{name}: padding_idx is {padding_idx!r}; give the number of a row, an int")
    rows = weight.shape[0]
    if not -rows <= padding_idx < rows:
        raise AssertedArgumentError(f"{name}: padding_idx {padding_idx} is out of range for {rows} rows; give one of -{rows} to {rows - 1}")
    return padding_idx % rows  # kernels compare row numbers, and know none below 0


_warned: set[str] = set()


def _warn_dense(name: str) -> None:
    """Warn of sparse=True, the first time that a function meets it, at the user's line."""
    if name not in _warned:
        _warned.add(name)
        at = user_frame(sys._getframe(1))
        said = (
            f"{name}: sparse=True: there are no sparse tensors here, so the weight's gradient is dense, with zeros in the rows that were not picked. "
            "Leave sparse out and step with optim.Adam, or with optim.SGD, which leaves those rows as they are; optim.SparseAdam takes no dense gradient"
        )
        warnings.warn_explicit(said, UserWarning, at.f_code.co_filename, at.f_lineno)


def _scale_by_frequency(name: str, input: Tensor, weight: Tensor, by_frequency: bool, sparse: bool) -> Tensor:
    """The table; by_frequency: with gradients of its rows divided by how often they are picked."""
    if sparse:
        _warn_dense(name)
    if not by_frequency:
        return weight
    with no_grad():
        flat = input.reshape(-1)
        ones = ops.full(shape=(input._array.size,), value=1, dtype=weight._array.dtype, device=weight.device)
        counts = ops.full(shape=(weight.shape[0],), value=0, dtype=weight._array.dtype, device=weight.device).index_add(0, flat, ones)
        share = ops.div(1.0, ops.clamp(counts, 1, None)).unsqueeze(1)  # rows that were not picked have a gradient of 0, divided by 1
    return _GradientScaling.apply(weight, share)  # type: ignore[no-any-return]


def _check_indices(name: str, what: str, indices: Tensor) -> None:
    if indices.dtype not in (int32, int64):
        raise DTypeError(f"{name}: {what} is {indices.dtype.name}; row numbers are int32 or int64, cast it with .long()")


@checked
def embedding(
    input: Tensor, weight: Tensor, padding_idx: int | None = None, max_norm: float | None = None, norm_type: float = 2.0,
    scale_grad_by_freq: bool = False, sparse: bool = False,
) -> Tensor:  # fmt: skip
    """Rows of weight (rows, features) picked by the integers in `input`; row padding_idx gets no gradient.

    Args:
        max_norm: rows that are picked and whose norm_type-norm is larger are first scaled down to it, in the weight itself.
        scale_grad_by_freq: divide each row's gradient by how often it was picked.
        sparse: the gradient stays dense, which a warning says once.
    """
    _check_indices("embedding", "input", input)
    padding = _padding_row("embedding", padding_idx, weight)
    if max_norm is not None:
        with no_grad():
            embedding_renorm_(weight, input, max_norm, norm_type)
    table = _scale_by_frequency("embedding", input, weight, scale_grad_by_freq, sparse)  # after the renorm, which writes the weight itself
    return ops.embedding(table, input, padding_idx=padding)  # type: ignore[no-any-return]


@function(method=False)
def embedding_renorm_(input: Tensor, indices: Tensor, max_norm: float, norm_type: float) -> Tensor:
    """Scale those rows of input (rows, features) that the indices name and whose norm_type-norm is above max_norm to that norm, in place."""
    if input.ndim != 2:
        raise ShapeError(f"embedding_renorm_: input {tuple(input.shape)} has {input.ndim} dimensions; give (rows, features)")
    _check_indices("embedding_renorm_", "indices", indices)
    named = ops.index_put(
        ops.full(shape=(input.shape[0],), value=False, dtype=_BOOL, device=input.device),
        ops.full(shape=(indices._array.size,), value=True, dtype=_BOOL, device=input.device),
        indices.reshape(-1), dims=(0,), front=False, accumulate=False,
    )  # fmt: skip
    length = input.norm(norm_type, 1, keepdim=True)
    # by a mask over the table: an index may occur many times, and its row is scaled once
    above = ops.logical_and(named.unsqueeze(1), ops.gt(length, max_norm))
    return overwrite(input, ops.where(above, input * (max_norm / (length + 1e-7)), input), "embedding_renorm_")


def check_bags(
    input: Tensor, weight: Tensor, offsets: Tensor | None, mode: str, weights: Tensor | None, by_frequency: bool, sparse: bool
) -> None:
    """Raises the class of error that PyTorch has for arguments that do not go together."""
    name = "embedding_bag"
    if mode not in MODES:
        raise ValueError(f"{name}: mode has to be one of sum, mean or max, not {mode!r}")
    if mode == "max" and (by_frequency or sparse):
        raise ValueError(f"{name}: mode 'max' does not support {'scale_grad_by_freq' if by_frequency else 'sparse'}; leave it out")
    if weight.ndim != 2:
        raise ShapeError(f"{name}: weight {tuple(weight.shape)} has {weight.ndim} dimensions; give (rows, features)")
    _check_indices(name, "input", input)
    if not weight.dtype.is_floating_point:
        raise DTypeError(f"{name}: weight is {weight.dtype.name}; it takes float types; cast it with .float()")
    if input.ndim == 2 and offsets is not None:
        raise ValueError(
            f"{name}: input {tuple(input.shape)} is bags of one length, and offsets has to be None then; leave them out or flatten the input"
        )
    if input.ndim == 1:
        if offsets is None or offsets.ndim != 1:
            raise ValueError(f"{name}: input {tuple(input.shape)} has one dimension: give offsets, a vector of where the bags begin")
        _check_indices(name, "offsets", offsets)
    elif input.ndim != 2:
        raise ValueError(f"{name}: input {tuple(input.shape)} has {input.ndim} dimensions; give (bags, length), or (indices,) with offsets")
    if weights is None:
        return
    if weights.shape != input.shape:
        raise ShapeError(f"{name}: per_sample_weights {tuple(weights.shape)} and input {tuple(input.shape)} must have one shape")
    if weights.dtype is not weight.dtype:
        raise DTypeError(f"{name}: per_sample_weights is {weights.dtype.name}, weight {weight.dtype.name}; cast one of them")
    if mode != "sum":
        raise NotImplementedError(
            f"{name}: per_sample_weights go with mode='sum' alone, not {mode!r}; multiply the rows of embedding yourself"
        )


def bag_edges(input: Tensor, offsets: Tensor, include_last_offset: bool) -> Tensor:
    """Where each bag begins and the last one ends, int64 (bags + 1,). Raises ArgumentError for offsets that do not fit; waits for the device."""
    if offsets.is_meta:
        return _append_end(input, offsets, include_last_offset)
    n = input.shape[0]
    known = np.asarray(offsets.tolist() if type(offsets._array) is WrappedArray else all_values(offsets._array), np.int64)
    if include_last_offset and not known.size:
        raise ArgumentError("embedding_bag: include_last_offset: offsets is empty; give at least the end of the last bag")
    if known.size and known[0] != 0:
        raise ArgumentError(f"embedding_bag: offsets[0] has to be 0, the first bag begins at the first index, but it is {known[0]}")
    if known.size and known[-1] > n:
        raise ArgumentError(f"embedding_bag: offsets[-1] is {known[-1]}, the input has {n} indices; it must not be larger")
    if (known[1:] < known[:-1]).any():
        raise ArgumentError(f"embedding_bag: offsets {known[:8].tolist()} go down; give them in rising order")
    return _append_end(input, offsets, include_last_offset)


def _append_end(input: Tensor, offsets: Tensor, include_last_offset: bool) -> Tensor:
    """The offsets, and where the last bag ends."""
    edges = offsets if offsets.dtype is int64 else ops.cast(offsets, dtype=int64.numpy)
    if include_last_offset:
        return edges  # type: ignore[no-any-return]
    return ops.cat(edges, ops.full(shape=(1,), value=input.shape[0], dtype=int64.numpy, device=input.device), dim=0)  # type: ignore[no-any-return]


def bag_numbers(input: Tensor, edges: Tensor) -> Tensor:
    """To which bag each index belongs, int64 (indices,); those behind the last bag are counted to it."""
    places = ops.arange(start=0, end=input.shape[0], step=1, dtype=int64.numpy, device=input.device)
    starts = edges[:-1]
    bag = ops.searchsorted(starts, places, right=True) - 1 if len(starts) else places * 0
    return ops.cast(bag, dtype=int64.numpy)  # type: ignore[no-any-return]


@checked
def embedding_bag(
    input: Tensor, weight: Tensor, offsets: Tensor | None = None, max_norm: float | None = None, norm_type: float = 2, scale_grad_by_freq: bool = False,
    mode: str = "mean", sparse: bool = False, per_sample_weights: Tensor | None = None, include_last_offset: bool = False, padding_idx: int | None = None,
) -> Tensor:  # fmt: skip
    """The sum, mean or maximum of the rows that each bag of indices names: (bags, features); an empty bag gives 0.

    Args:
        input: row numbers (bags, length), or (indices,), whose bags begin at `offsets`; include_last_offset: their last number is where the last bag ends.
        per_sample_weights: of input's shape: each row times its number, mode "sum" only.
        padding_idx: a row that counts nothing in any bag and gets no gradient.
        max_norm, norm_type, scale_grad_by_freq, sparse: as for `embedding`.
    """
    # older PyTorch had the weight first, and today's still swaps the two
    if isinstance(input, Tensor) and isinstance(weight, Tensor) and weight.dtype in (int32, int64) and input.dtype.is_floating_point:
        warn("embedding_bag: the weight came first, as long ago; give the indices first")
        input, weight = weight, input
    check_bags(input, weight, offsets, mode, per_sample_weights, scale_grad_by_freq, sparse)
    padding = _padding_row("embedding_bag", padding_idx, weight)
    if max_norm is not None:
        with no_grad():
            embedding_renorm_(weight, input, max_norm, norm_type)
    length = None
    if offsets is None:
        bags, length = input.shape
        edges = ops.arange(start=0, end=bags + 1, step=1, dtype=int64.numpy, device=input.device) * length
        input = input.reshape(bags * length)
        if per_sample_weights is not None:
            per_sample_weights = per_sample_weights.reshape(bags * length)
    else:
        edges = bag_edges(input, offsets, include_last_offset)
    if mode == "max":
        return _max_of_bags(input, weight, edges, padding, length)
    table = _scale_by_frequency("embedding_bag", input, weight, scale_grad_by_freq, sparse)
    total = ops.embedding_bag(table, input, edges, per_sample_weights, padding_idx=padding, length=length or None)
    return total if mode == "sum" else ops.div(total, _count_rows(input, weight, edges, padding))  # type: ignore[no-any-return]


def _max_of_bags(input: Tensor, weight: Tensor, edges: Tensor, padding: int | None, length: int | None) -> Tensor:
    """The largest element of each column in each bag, the first of equal ones, 0 in an empty bag."""
    # no row to gather: the op of sums gives zeros of the right shape, and refuses indices
    if not weight.shape[0]:
        return ops.embedding_bag(weight, input, edges, padding_idx=None, length=length or None)  # type: ignore[no-any-return]
    with no_grad():
        row = ops.bag_tops(weight, input, edges, padding_idx=padding, length=length or None)
        some = ops.ge(row, 0)
    return ops.where(some, ops.gather(weight, ops.clamp(row, 0, None), dim=0), 0.0)  # type: ignore[no-any-return]


def _count_rows(input: Tensor, weight: Tensor, edges: Tensor, padding: int | None) -> Tensor:
    """How many rows count in each bag, (bags, 1) of weight's type; 1 for none."""
    if padding is None:
        sizes = ops.cast(ops.sub(edges[1:], edges[:-1]), dtype=weight._array.dtype).unsqueeze(1)
    else:
        # a column of ones summed by the same op leaves out what the op leaves out
        ones = ops.full(shape=(weight.shape[0], 1), value=1, dtype=weight._array.dtype, device=weight.device)
        sizes = ops.embedding_bag(ones, input, edges, padding_idx=padding)
    return ops.clamp(sizes, 1, None)  # type: ignore[no-any-return]


@checked
def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """int64 (..., num_classes), 1 at the class and 0 elsewhere; num_classes=-1 is one more than the largest class."""
    if tensor.dtype.kind not in ("int", "uint"):
        raise DTypeError(f"one_hot: tensor is {tensor.dtype.name}; class labels are integers, cast it with .long()")
    if tensor.numel() == 0 and num_classes <= 0:
        raise ShapeError("one_hot: an empty tensor needs num_classes")
    if num_classes == -1 and type(tensor._array) is WrappedArray:
        tensor.max().item()  # which says that there are no numbers to look at
    if tensor.is_meta and num_classes == -1:
        raise no_values("one_hot", "the largest class is the size of the result")
    labels = all_values(tensor._array) if tensor.numel() and not tensor.is_meta else None
    low, high = (int(labels.min()), int(labels.max())) if labels is not None and labels.size else (0, -1)
    classes = high + 1 if num_classes == -1 else num_classes
    if low < 0:
        raise ArgumentError(f"one_hot: labels run from {low} to {high}; class values must be non-negative: give 0 for the first class")
    if high >= classes:
        raise ArgumentError(
            f"one_hot: labels run from {low} to {high}, num_classes is {classes}; give labels of 0 to {classes - 1}, or more classes"
        )
    numbers = ops.arange(start=0, end=classes, step=1, dtype=tensor._array.dtype, device=tensor.device)
    return ops.cast(ops.eq(tensor.contiguous().unsqueeze(-1), numbers), dtype=int64.numpy)
