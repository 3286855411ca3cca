"""Arguments of collectives: checks with their messages, contiguous memory to send, and results written back to the caller's tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tritensor.autograd.node import version_of
from tritensor.autograd.saved import copy_for_borrowers
from tritensor.distributed.backends.one_process import copy_array, copy_into
from tritensor.distributed.process_group import ProcessGroup
from tritensor.ground.errors import ArgumentError, ShapeError
from tritensor.ops.array import Array, device_of, empty, empty_like, is_contiguous
from tritensor.tensor.core import Tensor


def check_tensor(name: str, what: str, t: Any) -> None:
    """Raise TypeError for what is no tensor."""
    if not isinstance(t, Tensor):
        raise TypeError(
            f"{name}: Invalid function argument: expected parameter `{what}` of type Tensor, but got {type(t).__name__} instead"
        )


def check_tensors(name: str, what: str, given: Any) -> None:
    """Raise TypeError for what is no list of tensors."""
    if not isinstance(given, list | tuple) or not all(isinstance(t, Tensor) for t in given):
        raise TypeError(f"{name}: Invalid function argument: expected parameter `{what}` of type List[Tensor]; give a list of tensors")


def find_root(name: str, what: str, given: int | None, inside: int | None, group: ProcessGroup) -> int:
    """The number in the group of the process that sends or receives, named by its number in the world, or in the group. Raises ValueError
    for one that is no member."""
    # src counts in the world and group_src in the group: in a subgroup both may be valid and mean two processes.
    if given is not None and inside is not None:
        raise ArgumentError(f"{name}: {what} and group_{what} are both given; give one")
    if given is None and inside is None:
        # The group's first process, which need not be the world's rank 0.
        given = group.ranks[0]
    number = inside if inside is not None else given
    ranks = tuple(range(group.size())) if inside is not None else group.ranks
    if number not in ranks:
        raise ArgumentError(
            f"{name}: {what} {number} is not part of {group!r}; give one of its ranks" + (", 0" if group.size() == 1 else "")
        )
    assert number is not None
    return ranks.index(number)


def check_parts(name: str, what: str, given: Sequence[Tensor], group: ProcessGroup, like: Tensor) -> None:
    """Raise where a list does not hold a tensor like another one for each process."""
    # Checked here, since a list of the wrong length would read or write behind the memory that the backend is given.
    if len(given) != group.size():
        raise ArgumentError(
            f"{name}: {what} holds {len(given)} tensors for {group.size()} process{'es' * (group.size() > 1)}; give one for each"
        )
    for part in given:
        if part.shape != like.shape or part.dtype != like.dtype:
            raise ShapeError(
                f"{name}: {what} is {part.dtype.name} {tuple(part.shape)}, the tensor {like.dtype.name} {tuple(like.shape)}; give one like it"
            )


def describe_tensors(*tensors: Tensor) -> str:
    """ "float32 (4, 3)": what must be alike on all ranks."""
    return " ".join([f"{t.dtype.name} {t._array.shape}" for t in tensors])


def to_contiguous(t: Tensor) -> Array:
    """The tensor's own memory where it is C-contiguous, else a copy that is."""
    return t._array if is_contiguous(t._array) else copy_array(t._array)


def to_writable(t: Tensor) -> Array:
    """in_one_piece of a tensor that receives as it sends."""
    # Nodes that borrowed this memory for their saved values get copies before it is written.
    copy_for_borrowers(t)
    return to_contiguous(t)


def empty_output(t: Tensor) -> Array:
    """Memory to receive in: the tensor's own, or some to copy from afterwards (see `write_back`)."""
    copy_for_borrowers(t)
    return t._array if is_contiguous(t._array) else empty_like(t._array)


def write_back(name: str, t: Tensor, array: Array) -> None:
    """The tensor has been written through `array`, which is its own memory, or is copied there now."""
    # A strided tensor was received in a piece of its own; views of it must see the values.
    if array is not t._array:
        copy_for_borrowers(t)
        copy_into(t._array, array.reshape(t._array.shape))
    version_of(t).bump(name)


def stack_arrays(tensors: Sequence[Tensor]) -> Array:
    """A new array (n, *shape) of n tensors of one shape."""
    out = empty_stack(tensors)
    for i, t in enumerate(tensors):
        copy_into(out[i : i + 1].reshape(t._array.shape), t._array)  # a view also of a tensor without dimensions
    return out


def empty_stack(tensors: Sequence[Tensor]) -> Array:
    """An uninitialised array (n, *shape) for n tensors of one shape."""
    first = tensors[0]._array
    return empty((len(tensors), *first.shape), first.dtype, device_of(first))


def write_all(name: str, tensors: Sequence[Tensor], whole: Array) -> None:
    """Part i of `whole` is the new value of tensor i."""
    for i, t in enumerate(tensors):
        copy_for_borrowers(t)
        copy_into(t._array, whole[i])
        version_of(t).bump(name)
