"""ShardedParameter: the rows of a parameter that one process keeps, with their position in the whole."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from tritensor.distributed.backends.one_process import copy_into
from tritensor.distributed.collectives import all_gather_into_tensor
from tritensor.distributed.process_group import ProcessGroup
from tritensor.ground.errors import ArgumentError
from tritensor.io.safe_globals import add_value_class
from tritensor.nn.parameter import Parameter
from tritensor.ops.array import Array, device_of, empty
from tritensor.tensor.core import Tensor
from tritensor.tensor.host_values import new_instance
from tritensor.tensor.overriding.protocol import disabled_torch_function
from tritensor.tensor.size import Size


class Shard(NamedTuple):
    """The placement of a tensor over the processes: cut along a dimension into equal parts, the last ones smaller or empty."""

    dim: int = 0

    def is_shard(self, dim: int | None = None) -> bool:
        """Whether it is cut, along that dimension where one is given."""
        return dim is None or dim == self.dim

    def is_replicate(self) -> bool:
        """False."""
        return False

    def is_partial(self, reduce_op: str | None = None) -> bool:
        """False."""
        return False

    @staticmethod
    def local_shard_size_and_offset(curr_local_size: int, num_chunks: int, rank: int) -> tuple[int, int]:
        """(size, first index) of a process's part of a dimension."""
        start, size = find_rows(curr_local_size, num_chunks, rank)
        return size, start


def find_rows(rows: int, size: int, rank: int) -> tuple[int, int]:
    """(first row, number of rows) of a process: parts of ceil(rows / size), as chunk cuts them; the last processes may have none."""
    part = -(-rows // size)
    start = min(rank * part, rows)
    return start, min(start + part, rows) - start


class Sharded:
    """Part of a tensor of `global_shape`, whose first element is the whole's at `global_offset`. Unlike a DTensor's, `shape` is the part's.

    Attributes:
        global_shape: shape of the whole tensor.
        global_offset: for each dimension, where the part begins.
        placements: `(Shard(0),)`.
    """

    __slots__ = ()
    __torch_function__ = disabled_torch_function
    _array: Array
    global_shape: Size
    global_offset: tuple[int, ...]
    placements: tuple[Shard, ...] = (Shard(0),)
    # clip_grad_norm_ and get_total_norm for lists with shards among them, which those of nn.utils ask for
    clips: Any = None
    norms: Any = None

    @property
    def process_group(self) -> ProcessGroup | None:
        """The processes that hold the parts, None of a shard that came out of a file."""
        found = getattr(self, "known", None)
        return None if found is None else found[0]

    @property
    def device_mesh(self) -> Any:
        """The mesh that fully_shard was given, or None."""
        found = getattr(self, "known", None)
        return None if found is None else found[1]

    def to_local(self) -> Tensor:
        """The part as a plain tensor, memory shared."""
        return Tensor.wrap(self._array)

    def full_tensor(self) -> Tensor:
        """The whole tensor, on all processes, which must all call it. Raises ValueError for one that came out of a file."""
        group = self.process_group
        if group is None:
            raise ArgumentError("full_tensor: this shard came out of a file and knows no processes; load it into a sharded module first")
        rows, rest = self.global_shape[0], tuple(self.global_shape[1:])
        part = -(-rows // group.size())
        mine, whole = (empty((n, *rest), self._array.dtype, device_of(self._array)) for n in (part, part * group.size()))
        # Processes without rows send padding alone.
        if self._array.size:
            copy_into(mine[: self._array.shape[0]], self._array)
        all_gather_into_tensor(Tensor.wrap(whole), Tensor.wrap(mine), group)
        return Tensor.wrap(whole[:rows])

    def like(self, array: Array, kind: Any = None) -> Any:
        """The same part of another tensor, a gradient say: a ShardedTensor, or one of another class of shards."""
        kind = kind or ShardedTensor
        found: Any = new_instance(kind, array)
        found.global_shape, found.global_offset = self.global_shape, self.global_offset
        found.known = getattr(self, "known", None)
        return found  # type: ignore[no-any-return]

    def as_part(self, state: Any) -> Any:
        """State kept beside the part: a tensor of its shape becomes the same part of a whole, memory shared; another value stays what it is."""
        # By its shape: moments have the part's, step counters have no dimensions.
        if isinstance(state, Tensor) and not isinstance(state, Sharded) and state.ndim and state._array.shape == self._array.shape:
            return self.like(state._array)
        return state

    def detach(self) -> ShardedTensor:
        """The same memory outside the graph; it knows where it belongs."""
        found = self.like(self._array)
        found._version_counter = Tensor.detach(self)._version_counter  # type: ignore[arg-type]
        return found

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        # A tied parameter stays one parameter in the copy.
        if id(self) not in memo:
            array = empty(self._array.shape, self._array.dtype, device_of(self._array))
            if array.size:
                copy_into(array, self._array)
            found = self.like(array, type(self))
            found._tracked = self._tracked  # type: ignore[attr-defined]
            memo[id(self)] = found
        return memo[id(self)]


class ShardedTensor(Sharded, Tensor):  # type: ignore[misc]
    """A shard of a gradient, or what state_dict gives of a sharded parameter."""

    __slots__ = ("known",)  # (process group, mesh): no attribute of __dict__, so that copies and files go without them


add_value_class(ShardedTensor)  # it is a value: a file of a process' own shards is read as any other state_dict


class ShardedParameter(Sharded, Parameter):  # type: ignore[misc]
    """A parameter's shard: what a sharded module holds between its uses, and what optimizers step."""

    __slots__ = ("known",)

    _heading = "Sharded parameter, the rows of this process:\n"

    def __new__(cls, array: Array, shape: Sequence[int], start: int, group: ProcessGroup, mesh: Any, requires_grad: bool) -> Any:
        made: Any = new_instance(cls, array)  # type: ignore[type-var]
        made._tracked = requires_grad
        made.global_shape, made.global_offset = Size(shape), (start, *[0] * (len(shape) - 1))
        made.known = (group, mesh)
        return made


def get_row_size(shape: Sequence[int]) -> int:
    """The number of elements of a row."""
    return math.prod(shape[1:])
