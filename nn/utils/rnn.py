"""Sequences of unequal lengths: packed ones, which recurrent layers take, padded ones, and lists of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from tritensor.ground.errors import ArgumentError, DeviceError, ShapeError
from tritensor.ops.table import ops
from tritensor.tensor.core import Tensor
from tritensor.tensor.public_api.publish import rename_function


def _cast(name: str, kind: str) -> Any:
    """A method of PackedSequence that casts data, under the name that PyTorch has for a type."""

    def cast(self: PackedSequence) -> PackedSequence:
        return self.to(dtype=kind)

    return rename_function(cast, name, f"The same with data of {kind}.")


class PackedSequence_(NamedTuple):
    """The fields of a PackedSequence."""

    data: Any
    batch_sizes: Any
    sorted_indices: Any
    unsorted_indices: Any


class PackedSequence(PackedSequence_):
    """Sequences without padding: `data` holds the first elements of all, then the second ones, ..., the longest sequence first; `batch_sizes` (on the
    CPU) says how many there are at each step; `sorted_indices` is the order in which they were sorted, `unsorted_indices` the way back.

    Make one by pack_padded_sequence or pack_sequence.
    """

    def __new__(cls, data: Any, batch_sizes: Any = None, sorted_indices: Any = None, unsorted_indices: Any = None) -> Any:
        # computed once here, not by each layer that puts its states back in order
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        if batch_sizes is None:
            if not isinstance(data, list | tuple) or len(data) != 2:
                raise AssertionError("PackedSequence: Expected data to be a list or tuple of length 2; give (data, batch_sizes)")
            data, batch_sizes = data  # PyTorch's older form, a pair in one argument
        elif batch_sizes.device.type != "cpu":
            raise ArgumentError(
                "PackedSequence: batch_sizes should always be on CPU; make the sequence with pack_sequence or pack_padded_sequence"
            )
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def _replace_data(self, data: Tensor) -> PackedSequence:
        moved = [None if i is None else i.to(data.device) for i in (self.sorted_indices, self.unsorted_indices)]
        return type(self)(data, self.batch_sizes, *moved)

    def to(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """data.to(...), the indices on its device; self where nothing changes."""
        data = self.data.to(*args, **kwargs)  # batch_sizes stay on the CPU, where loops over steps read them
        return self if data is self.data else self._replace_data(data)

    def cuda(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """Moved to a GPU, as Tensor.cuda does."""
        data = self.data.cuda(*args, **kwargs)
        return self if data is self.data else self._replace_data(data)

    def cpu(self) -> PackedSequence:
        """Moved to the CPU."""
        return self.to("cpu")

    def pin_memory(self) -> PackedSequence:
        """data and indices in pinned memory."""
        pinned = [None if i is None else i.pin_memory() for i in (self.sorted_indices, self.unsorted_indices)]
        return type(self)(self.data.pin_memory(), self.batch_sizes, *pinned)

    double, float, half = _cast("double", "float64"), _cast("float", "float32"), _cast("half", "float16")
    long, int, short, char, byte = (
        _cast(name, kind)
        for name, kind in zip(("long", "int", "short", "char", "byte"), ("int64", "int32", "int16", "int8", "uint8"), strict=True)
    )

    @property
    def is_cuda(self) -> bool:
        """Whether data is on a GPU."""
        return bool(self.data.is_cuda)  # data's: batch_sizes never are

    def is_pinned(self) -> bool:
        """Whether data is in pinned memory."""
        return bool(self.data.is_pinned())


def invert_permutation(permutation: Tensor | None) -> Tensor | None:
    """The permutation that undoes a 1-d one; None of None."""
    return None if permutation is None else permutation.argsort()  # the order that sorts a permutation is its inverse


def _to_lengths(name: str, lengths: Any) -> list[int]:
    if isinstance(lengths, Tensor):
        if lengths.device.type != "cpu":
            raise DeviceError(
                f"{name}: 'lengths' argument should be a 1D CPU int64 tensor, but got one on {lengths.device}; move it with .cpu()"
            )
        if lengths.ndim != 1:
            raise ShapeError(f"{name}: 'lengths' argument should be a 1D CPU int64 tensor, but got {lengths.ndim}D; reshape it")
        return [int(n) for n in lengths.tolist()]
    try:
        return [int(n) for n in lengths]  # also numpy's integers, and tensors of one
    except (TypeError, ValueError):
        # the user's line is shown, not the loop above
        raise TypeError(f"{name}: lengths is {lengths!r}; give a list of ints or a 1-d integer tensor") from None


class _Padded(NamedTuple):
    """The first two dimensions of a padded batch, of which rows are numbered as if they were one."""

    batch: int
    time: int
    batch_first: bool

    def rows(self, which: np.ndarray, at: np.ndarray) -> np.ndarray:
        """The numbers of the rows of sequences `which` at steps `at`."""
        return which * self.time + at if self.batch_first else at * self.batch + which

    def fill(self, data: Tensor, places: np.ndarray, value: float) -> Tensor:
        """The padded batch with data at these rows, and the value elsewhere."""
        sizes = (self.batch, self.time) if self.batch_first else (self.time, self.batch)
        padded = data.new_full((self.time * self.batch, *data.shape[1:]), value).index_copy(0, _to_device_of(places, data), data)
        return padded.reshape(*sizes, *data.shape[1:])  # type: ignore[no-any-return]


def _unpack_order(batch_sizes: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
    """(sequence, step) of each packed element."""
    at = np.repeat(np.arange(len(batch_sizes)), batch_sizes)
    return np.concatenate([np.arange(n) for n in batch_sizes]) if len(batch_sizes) else np.zeros(0, np.int64), at


def _to_device_of(x: np.ndarray, like: Tensor) -> Tensor:
    # worked out on the host, moved once: indices of many small ops on a GPU would be as many launches
    return Tensor.wrap(x.astype(np.int64, copy=False)).to(like.device)


def pack_padded_sequence(input: Tensor, lengths: Any, batch_first: bool = False, enforce_sorted: bool = True) -> PackedSequence:
    """Pack a padded batch (time, batch, ...), or (batch, time, ...) where batch_first, of the given lengths; differentiable.

    With enforce_sorted=False the sequences are sorted first. Raises ShapeError or ArgumentError for lengths that do not fit, or are not sorted.

    >>> packed = nn.utils.rnn.pack_padded_sequence(tt.tensor([[1, 2], [3, 0]]), [2, 1], batch_first=True)
    >>> packed.data, packed.batch_sizes  # step by step, without padding
    (tensor([1, 3, 2]), tensor([2, 1]))
    """
    name = "pack_padded_sequence"
    if not isinstance(input, Tensor):
        raise TypeError(f"{name}: input is a {type(input).__name__}; give a padded tensor")
    if input.ndim < 2:
        raise ShapeError(f"{name}: input {tuple(input.shape)} must have at least 2 dimensions, time and batch")
    given = _to_lengths(name, lengths)
    time, batch = input.shape[1 if batch_first else 0], input.shape[0 if batch_first else 1]
    if len(given) != batch:
        raise ShapeError(
            f"{name}: Expected `len(lengths)` to be equal to batch_size, but got {len(given)} (batch_size={batch}); give one for each sequence"
        )
    if not batch:
        raise ShapeError(f"{name}: Cannot pack empty tensors; input {tuple(input.shape)} holds no sequence")
    if min(given) <= 0:
        raise ArgumentError(f"{name}: Length of all samples has to be greater than 0, but lengths are {given}; leave empty sequences out")
    if max(given) > time:
        raise ArgumentError(f"{name}: lengths {given} go beyond input's {time} time steps; give lengths of at most {time}")
    order = None
    if not enforce_sorted:
        order = sorted(range(batch), key=lambda k: -given[k])  # stable: equal lengths keep their order, as in PyTorch
        given = [given[k] for k in order]
    elif any(a < b for a, b in zip(given, given[1:], strict=False)):
        raise ArgumentError(
            f"{name}: `lengths` array must be sorted in decreasing order when `enforce_sorted` is True, but is {given}; pass enforce_sorted=False, "
            "which sorts, or sort the batch"
        )
    # how many sequences reach each step: one comparison of all with all is faster than a loop over steps, which may be thousands
    sizes = np.count_nonzero(np.asarray(given)[None, :] > np.arange(given[0] if given else 0)[:, None], axis=1)
    which, at = _unpack_order(sizes.tolist())
    which = which if order is None else np.asarray(order)[which]  # the rows of a sorted sequence are those of the given one
    places = _Padded(batch, time, batch_first).rows(which, at)
    # one gather, whose gradient is one scatter
    data = input.reshape(time * batch, *input.shape[2:]).index_select(0, _to_device_of(places, input))
    return PackedSequence(
        data, Tensor.wrap(sizes.astype(np.int64)), None if order is None else _to_device_of(np.asarray(order), input), None
    )


def pad_packed_sequence(
    sequence: PackedSequence, batch_first: bool = False, padding_value: float = 0.0, total_length: int | None = None
) -> tuple[Tensor, Tensor]:
    """(padded, lengths): the inverse of pack_padded_sequence, in the order from before sorting; at least total_length steps. Differentiable."""
    if not isinstance(sequence, PackedSequence):
        raise TypeError(f"pad_packed_sequence: sequence is a {type(sequence).__name__}; give a PackedSequence")
    data, batch_sizes, _, back = sequence
    sizes = [int(n) for n in batch_sizes.tolist()]
    time, batch = len(sizes), sizes[0]
    if total_length is not None:
        if total_length < time:
            raise ArgumentError(
                "pad_packed_sequence: Expected total_length to be at least the length of the longest sequence in input, but got "
                f"total_length={total_length} and max sequence length being {time}; give at least {time}"
            )
        time = total_length
    whole = _Padded(batch, time, batch_first)
    padded = whole.fill(data, whole.rows(*_unpack_order(sizes)), padding_value)
    # how many steps still have the k-th sequence
    lengths = Tensor.wrap(np.count_nonzero(np.arange(batch)[:, None] < np.asarray(sizes)[None, :], axis=1).astype(np.int64))
    if back is None:
        return padded, lengths
    return padded.index_select(0 if batch_first else 1, back), lengths[back.cpu()]  # lengths stay on the CPU, as in PyTorch


def pad_sequence(
    sequences: Tensor | Iterable[Tensor], batch_first: bool = False, padding_value: float = 0.0, padding_side: str = "right"
) -> Tensor:
    """Sequences (length, ...) as one padded tensor (longest, batch, ...), or (batch, longest, ...) where batch_first; differentiable.

    Args:
        sequences: tensors that may differ in their first size alone.
        padding_value: what is filled in, at the end, or at the beginning where padding_side is "left".

    >>> nn.utils.rnn.pad_sequence([tt.tensor([1, 2]), tt.tensor([3])], batch_first=True)
    tensor([[1, 2],
            [3, 0]])
    """
    if not isinstance(sequences, Iterable):
        raise ArgumentError(
            f"pad_sequence: Expected iterable for input sequences, but got arg of type: {type(sequences).__name__}; give a list of tensors"
        )
    given = list(sequences)
    if padding_side not in ("left", "right"):
        raise ArgumentError(f"pad_sequence: padding_side is {padding_side!r}; give 'left' or 'right'")
    if not given:
        raise ShapeError("pad_sequence: received an empty list of sequences; give at least one")
    for k, s in enumerate(given):
        if not isinstance(s, Tensor):
            raise TypeError(f"pad_sequence: sequences[{k}] is a {type(s).__name__}; give a tensor")
        if not s.ndim or tuple(s.shape[1:]) != tuple(given[0].shape[1:]):
            raise ShapeError(
                f"pad_sequence: sequences[{k}] is {tuple(s.shape)}, sequences[0] {tuple(given[0].shape)}; they may differ in their first size alone"
            )
    lengths = [s.shape[0] for s in given]
    time, batch = max(lengths), len(given)
    # the padding stands before a sequence, not behind it, on the left
    shift = [0 if padding_side == "right" else time - n for n in lengths]
    at = np.concatenate([np.arange(n) + first for n, first in zip(lengths, shift, strict=True)])
    which = np.repeat(np.arange(batch), lengths)
    whole = _Padded(batch, time, batch_first)
    return whole.fill(ops.cat(*given, dim=0), whole.rows(which, at), padding_value)


def unpad_sequence(padded_sequences: Tensor, lengths: Any, batch_first: bool = False) -> list[Tensor]:
    """The sequences of a padded batch, each a view of its own length."""
    given = _to_lengths("unpad_sequence", lengths)
    by_batch = padded_sequences if batch_first else padded_sequences.transpose(0, 1)  # a view, so that the sequences are views of the batch
    if by_batch.shape[0] != len(given):
        raise ShapeError(
            f"unpad_sequence: padded_sequences {tuple(padded_sequences.shape)} hold {by_batch.shape[0]} sequences, lengths {len(given)}; "
            "give one length for each"
        )
    return [by_batch[k, :n] for k, n in enumerate(given)]


def pack_sequence(sequences: Iterable[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """Pack tensors (length, ...), the longest first unless enforce_sorted=False."""
    given = list(sequences)
    return pack_padded_sequence(pad_sequence(given), [s.shape[0] for s in given], enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """The tensors of which a PackedSequence was packed."""
    return unpad_sequence(*pad_packed_sequence(packed_sequences, batch_first=True), batch_first=True)
