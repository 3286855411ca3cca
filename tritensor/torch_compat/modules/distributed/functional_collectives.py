"""torch.distributed._functional_collectives: collectives that give a new tensor, whose values are there when the call returns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

from tritensor.distributed import collectives
from tritensor.distributed.device_mesh import DeviceMesh
from tritensor.distributed.process_group import get_world_size
from tritensor.distributed.reduce_op import ReduceOp
from tritensor.ground.errors import ShapeError
from tritensor.tensor.core import Tensor
from tritensor.tensor.functions.shaping.joining import cat


class AsyncCollectiveTensor:
    """No tensor is one: a collective's values are there when it returns. Raises NotImplementedError when it is made."""

    def __new__(cls, *args: Any, **kwargs: Any) -> NoReturn:
        raise NotImplementedError(
            "AsyncCollectiveTensor: not in tritensor: collectives give tensors whose values are there when the call returns"
        )


def wait_tensor(tensor: Tensor) -> Tensor:
    """The tensor itself: there is nothing to wait for."""
    return tensor


def _group(given: Any) -> Any:
    """A group as it is, a mesh of one dimension as its group, (mesh, dimension) as that dimension's."""
    if isinstance(given, DeviceMesh):
        return given.get_group()
    return given[0].get_group(given[1]) if isinstance(given, tuple) else given


def _reduction(name: str) -> ReduceOp:
    return getattr(ReduceOp, name.upper())  # type: ignore[no-any-return]


def all_reduce(self: Tensor, reduceOp: str, group: Any, tag: str = "") -> Tensor:
    """A new tensor of the same shape: "sum", "avg", "max", ... over the processes of a group."""
    out = self.clone().contiguous()
    collectives.all_reduce(out, _reduction(reduceOp), group=_group(group))
    return out


def broadcast(self: Tensor, src: int, group: Any, tag: str = "") -> Tensor:
    """A new tensor with the values of process `src`."""
    out = self.clone().contiguous()
    collectives.broadcast(out, src, group=_group(group))
    return out


def all_gather_tensor(self: Tensor, gather_dim: int, group: Any, tag: str = "") -> Tensor:
    """The tensors of all processes of a group, one behind the other along a dimension."""
    group = _group(group)
    out = self.new_empty((get_world_size(group) * self.shape[0], *self.shape[1:]))
    collectives.all_gather_into_tensor(out, self.contiguous(), group=group)
    return out if gather_dim == 0 else cat(out.chunk(get_world_size(group)), gather_dim)


def reduce_scatter_tensor(self: Tensor, reduceOp: str, scatter_dim: int, group: Any, tag: str = "") -> Tensor:
    """This process's part, along a dimension, of what all_reduce gives. Raises ShapeError where the processes do not divide the dimension."""
    group = _group(group)
    size = get_world_size(group)
    if self.shape[scatter_dim] % size:
        raise ShapeError(
            f"reduce_scatter_tensor: dimension {scatter_dim} of {tuple(self.shape)} is not a multiple of the {size} processes; give one that is"
        )
    parts = self.contiguous() if scatter_dim == 0 else cat(self.chunk(size, scatter_dim), 0)
    out = parts.new_empty((parts.shape[0] // size, *parts.shape[1:]))
    collectives.reduce_scatter_tensor(out, parts, _reduction(reduceOp), group=group)
    return out


def all_to_all_single(
    self: Tensor, output_split_sizes: Sequence[int] | None, input_split_sizes: Sequence[int] | None, group: Any, tag: str = ""
) -> Tensor:
    """Rows for each process, (n, ...), exchanged: rows from each process, as many as output_split_sizes says."""
    rows = self.shape[0] if output_split_sizes is None else sum(output_split_sizes)
    out = self.new_empty((rows, *self.shape[1:]))
    collectives.all_to_all_single(
        out, self.contiguous(), None if output_split_sizes is None else list(output_split_sizes),
        None if input_split_sizes is None else list(input_split_sizes), group=_group(group),
    )  # fmt: skip
    return out


def all_to_all_single_autograd(
    self: Tensor, output_split_sizes: Sequence[int] | None, input_split_sizes: Sequence[int] | None, group: Any, tag: str = ""
) -> Tensor:
    """all_to_all_single whose gradient takes the way back."""
    from tritensor.distributed.nn import functional

    rows = self.shape[0] if output_split_sizes is None else sum(output_split_sizes)
    out = self.new_empty((rows, *self.shape[1:]))
    to_each, from_each = (None if sizes is None else list(sizes) for sizes in (input_split_sizes, output_split_sizes))
    return functional.all_to_all_single(out, self.contiguous(), from_each, to_each, _group(group))
