"""Collective communication of Python objects among one process: what arrives is a copy that went through pickle, as it would from another."""

from __future__ import annotations

import pickle
from typing import Any

from tritensor.distributed.collectives import _root
from tritensor.distributed.group import asks_outside, joined
from tritensor.errors import ArgumentError


def _copy(name: str, value: Any) -> Any:
    try:
        return pickle.loads(pickle.dumps(value))
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise TypeError(f"{name}: {type(value).__name__} cannot be pickled ({error}); give an object that can") from error


def all_gather_object(object_list: list[Any], obj: Any, group: Any = None) -> None:
    """Write every process' object into object_list, which has an entry for each process."""
    if asks_outside(group):
        return
    world = joined("all_gather_object", group)
    if len(object_list) < world.size():
        raise ArgumentError(
            f"all_gather_object: object_list has {len(object_list)} entries for {world.size()} process; give [None] * world size"
        )
    object_list[0] = _copy("all_gather_object", obj)


def gather_object(
    obj: Any, object_gather_list: list[Any] | None = None, dst: int | None = None, group: Any = None, group_dst: int | None = None
) -> None:
    """Write every process' object into object_gather_list on process dst."""
    if asks_outside(group):
        return
    world = joined("gather_object", group)
    _root("gather_object", "dst", 0 if dst is None and group_dst is None else dst, group_dst, world)
    if not object_gather_list:
        raise ArgumentError("gather_object: argument object_gather_list must be specified on the destination rank; give [None]")
    object_gather_list[0] = _copy("gather_object", obj)


def broadcast_object_list(
    object_list: list[Any], src: int | None = None, group: Any = None, device: Any = None, group_src: int | None = None
) -> None:
    """Give all processes the objects of process src: they stay what they are on src itself."""
    if asks_outside(group):
        return
    world = joined("broadcast_object_list", group)
    _root("broadcast_object_list", "src", 0 if src is None and group_src is None else src, group_src, world)
    for one in object_list:
        _copy("broadcast_object_list", one)


def scatter_object_list(
    scatter_object_output_list: list[Any], scatter_object_input_list: list[Any] | None = None, src: int | None = None, group: Any = None,
    group_src: int | None = None,
) -> None:  # fmt: skip
    """Give each process its object of process src's list, as the first entry of scatter_object_output_list."""
    if asks_outside(group):
        return
    world = joined("scatter_object_list", group)
    _root("scatter_object_list", "src", 0 if src is None and group_src is None else src, group_src, world)
    if not isinstance(scatter_object_output_list, list) or not scatter_object_output_list:
        raise ArgumentError(
            "scatter_object_list: Expected argument scatter_object_output_list to be a list of size at least 1; give [None]"
        )
    if not scatter_object_input_list or len(scatter_object_input_list) != world.size():
        raise ArgumentError(f"scatter_object_list: scatter_object_input_list holds one object for each process: give {world.size()}")
    scatter_object_output_list[0] = _copy("scatter_object_list", scatter_object_input_list[0])
