"""Division of the world into groups of one size, or as listed; all processes create the groups of all parts."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from tritensor.cuda.availability import gpus
from tritensor.distributed.initialisation import new_group
from tritensor.distributed.process_group import get_process_group_ranks, get_rank, get_world_size
from tritensor.ground.errors import ArgumentError


def new_subgroups(
    group_size: int | None = None, group: Any = None, timeout: timedelta | None = None, backend: str | None = None, pg_options: Any = None,
    group_desc: str | None = None,
) -> tuple[Any, list[Any]]:  # fmt: skip
    """(this process' group, all groups) of group_size neighbours each; of as many as there are GPUs, where no size is given.

    Raises ValueError for a size that does not divide the world.
    """
    if group_size is None:
        if not gpus():
            raise ArgumentError("new_subgroups: group_size is the number of GPUs where it is left out, and there is none; give a number")
        group_size = gpus()
    size = get_world_size(group)
    if group_size <= 0 or group_size > size or size % group_size:
        raise ArgumentError(f"new_subgroups: group_size {group_size} for {size} processes; give a positive number that divides them")
    ranks = get_process_group_ranks(group)
    parts = [ranks[i : i + group_size] for i in range(0, size, group_size)]
    return new_subgroups_by_enumeration(parts, timeout, backend, pg_options, group_desc)


def new_subgroups_by_enumeration(
    ranks_per_subgroup_list: Sequence[Sequence[int]], timeout: timedelta | None = None, backend: str | None = None, pg_options: Any = None,
    group_desc: str | None = None,
) -> tuple[Any, list[Any]]:  # fmt: skip
    """(this process' group or None, all groups), a group for each list of ranks. Raises ValueError for a rank that stands in two of them."""
    if not ranks_per_subgroup_list:
        raise ArgumentError(
            "new_subgroups_by_enumeration: the arg 'ranks_per_subgroup_list' cannot be empty; give a list of lists of ranks"
        )
    listed = [rank for part in ranks_per_subgroup_list for rank in part]
    twice = sorted({rank for rank in listed if listed.count(rank) > 1})
    # A process in two subgroups would have no one group to be returned.
    if twice:
        raise ArgumentError(f"new_subgroups_by_enumeration: ranks {twice} stand in two subgroups; each process belongs to one")
    # All processes make all groups, in one order: new_group is a call of the whole world.
    made = [new_group(list(part), timeout, backend, pg_options, group_desc=group_desc) for part in ranks_per_subgroup_list]
    mine = next((g for g, part in zip(made, ranks_per_subgroup_list, strict=True) if get_rank() in part), None)
    return mine, made
