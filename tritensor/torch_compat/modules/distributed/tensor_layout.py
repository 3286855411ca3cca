"""torch.distributed.tensor._utils: which part of a whole tensor this process holds under placements over a mesh."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tritensor.distributed.device_mesh import DeviceMesh
from tritensor.distributed.fsdp.sharded_parameter import find_rows


def compute_local_shape_and_global_offset(
    global_shape: Sequence[int], mesh: DeviceMesh, placements: Sequence[Any], skip_offset: bool = False
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """(shape of this process's part, where in the whole it begins); ((0,), ()) for a process outside of the mesh.

    A dimension that several placements cut is cut by each in turn, from the mesh's first dimension on, into parts as chunk makes them.
    """
    place = mesh.get_coordinate()
    if place is None:
        return (0,), ()
    shape, offset = list(global_shape), [0] * len(global_shape)
    for parts, at, placement in zip(mesh.shape, place, placements, strict=True):
        if placement.is_shard():
            dim = placement.dim % len(shape)
            start, rows = find_rows(shape[dim], parts, at)
            # an empty part stands behind the whole, as in PyTorch
            offset[dim] = offset[dim] + start if rows else global_shape[dim]
            shape[dim] = rows
    return tuple(shape), () if skip_offset else tuple(offset)
