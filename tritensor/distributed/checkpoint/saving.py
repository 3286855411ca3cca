"""Saving: ranks tell one another what they have, agree on who writes what, write, and the first one writes that all is there."""

from __future__ import annotations

import os
import secrets
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from tritensor.distributed.checkpoint.boxes import Box, box_of, is_shard, part_like
from tritensor.distributed.checkpoint.metadata import Metadata, Part, Stored
from tritensor.distributed.checkpoint.states import flat, states_of
from tritensor.distributed.checkpoint.storage import FileSystemWriter
from tritensor.distributed.checkpoint.together import Ranks
from tritensor.errors import ArgumentError, CheckpointError
from tritensor.tensor.core import Tensor

Listing = dict[str, tuple[str, tuple[int, ...], Box, int]]  # by key: type, shape of the whole, box, bytes


def save(
    state_dict: dict[str, Any], *, checkpoint_id: str | os.PathLike[str] | None = None, storage_writer: FileSystemWriter | None = None,
    planner: Any = None, process_group: Any = None, no_dist: bool = False, use_collectives: bool = True,
) -> Metadata:  # fmt: skip
    """Write a state of all ranks of a group, which all call this, to a folder that all see.

    Tensors that all ranks have are written by one of them, the load shared by bytes; parts (`global_shape`, `global_offset`, as fully_shard
    makes them) each by who has them. Numbers, text, lists, tuples and dicts go into the metadata; nothing is pickled. The metadata is written last,
    so that a checkpoint is there whole or not at all, and an older one in the folder until then.

    Args:
        state_dict: nested dicts; what has state_dict() and load_state_dict() (modules, optimizers) stands for its state.
        checkpoint_id: the folder, or give a FileSystemWriter.
        no_dist: this process alone, whatever groups there are.

    Raises on all ranks:
        CheckpointError: values of other kinds; ranks that disagree about a tensor's type or shape; an error of another rank.
        OSError: the folder cannot be written.
    """
    if planner is not None:
        raise NotImplementedError("save: planner is not in tritensor; leave it out")
    ranks = Ranks("save", process_group, no_dist)
    writer = _writer("save", checkpoint_id, storage_writer)
    return _save(ranks, writer, states_of(state_dict))


def _writer(name: str, checkpoint_id: Any, writer: FileSystemWriter | None) -> FileSystemWriter:
    if (checkpoint_id is None) == (writer is None):
        raise ArgumentError(f"{name}: give checkpoint_id, a folder, or storage_writer, one of the two")
    return FileSystemWriter(checkpoint_id) if writer is None else writer


def _save(ranks: Ranks, writer: FileSystemWriter, state: dict[str, Any]) -> Metadata:
    token = secrets.token_hex(4)

    def look() -> tuple[Listing, dict[str, Any], str]:
        tensors, values, _ = flat(state)
        writer.begin()
        listing = {key: (t.dtype.name, *box_of(t), t.array.nbytes) for key, t in tensors.items()}
        return listing, values, token

    told = ranks.step(look)
    plan = planned([listing for listing, _, _ in told], told[0][2])
    values: dict[str, Any] = {}
    for _, theirs, _ in reversed(told):  # where ranks differ, the first one's
        values.update(theirs)
    tensors = flat(state)[0]
    mine = name_of(told[0][2], ranks.rank)

    def write() -> None:
        found = {p.name: tensors[key] for key, stored in plan.items() for p in stored.parts if p.file == mine}
        if found:
            writer.write(mine, {name: Tensor.wrap(t.array) for name, t in found.items()})

    ranks.step(write)
    metadata = Metadata(plan, values)
    ranks.step(lambda: writer.finish(metadata) if ranks.rank == 0 else None)
    return metadata


def name_of(token: str, rank: int) -> str:
    """The file of a rank, of another name each time: the old ones stay until the metadata names the new."""
    return f"part-{token}-{rank}.safetensors"


def planned(listings: list[Listing], token: str) -> dict[str, Stored]:
    """Who writes what: each box by one of the ranks that have it, the one that has least to write so far.

    Raises CheckpointError where ranks disagree about a tensor's type or whole shape, or its boxes overlap or leave gaps.
    """
    load = [0] * len(listings)
    plan: dict[str, Stored] = {}
    for key in sorted({k for listing in listings for k in listing}):
        have = {rank: listing[key] for rank, listing in enumerate(listings) if key in listing}
        first = next(iter(have))
        dtype, shape, _, _ = have[first]
        for rank, (their_dtype, their_shape, _, _) in have.items():
            if (their_dtype, their_shape) != (dtype, shape):
                raise CheckpointError(
                    f"save: {key} is {their_dtype} {their_shape} on rank {rank} and {dtype} {shape} on rank {first}; make them alike"
                )
        parts = []
        for box in sorted({Box(*entry[2]) for entry in have.values()}):
            owner = min((r for r, entry in have.items() if Box(*entry[2]) == box), key=lambda r: (load[r], r))
            if box.size or not shape or 0 in shape:
                load[owner] += have[owner][3]
                parts.append(Part(box, name_of(token, owner), key))
        _check_cover(key, shape, parts)
        plan[key] = Stored(dtype, shape, tuple(parts))
    return plan


def _check_cover(key: str, shape: tuple[int, ...], parts: list[Part]) -> None:
    whole = Box((0,) * len(shape), shape)
    for i, part in enumerate(parts):
        for other in parts[i + 1 :]:
            if part.box.common(other.box) is not None:
                raise CheckpointError(f"save: parts {part.box} and {other.box} of {key} {shape} overlap; each element belongs to one part")
    if sum(p.box.size for p in parts) != whole.size:
        raise CheckpointError(
            f"save: the parts of {key} hold {sum(p.box.size for p in parts)} of the {whole.size} elements of {shape}; save all of them"
        )


_threads: list[ThreadPoolExecutor] = []


def async_save(
    state_dict: dict[str, Any], *, checkpoint_id: str | os.PathLike[str] | None = None, storage_writer: FileSystemWriter | None = None,
    planner: Any = None, process_group: Any = None, async_checkpointer_type: Any = None, async_stager: Any = None, no_dist: bool = False,
    use_collectives: bool = True,
) -> Future[Metadata]:  # fmt: skip
    """save() of the state as it is now, in a thread: its tensors are copied first, then training may go on. `result()` of the Future waits.

    On several ranks give a process_group of its own (new_group()): the thread communicates beside the program.
    """
    if planner is not None or async_stager is not None:
        raise NotImplementedError("async_save: planner and async_stager are not in tritensor; leave them out")
    ranks = Ranks("async_save", process_group, no_dist)
    if ranks.size > 1 and process_group is None:
        raise ArgumentError(
            "async_save: give process_group=new_group(): calls of a thread and of the program in one group would be mixed up"
        )
    writer = _writer("async_save", checkpoint_id, storage_writer)
    state = _copied(states_of(state_dict))
    if not _threads:
        _threads.append(ThreadPoolExecutor(1, thread_name_prefix="tritensor checkpoint"))
    return _threads[0].submit(_save, ranks, writer, state)


def _copied(state: Any) -> Any:
    if isinstance(state, Tensor):
        copy = state.detach().clone()
        return part_like(state, Tensor.wrap(copy.array)) if is_shard(state) else copy
    if isinstance(state, dict):
        return {k: _copied(v) for k, v in state.items()}
    if isinstance(state, list | tuple):
        return type(state)(_copied(v) for v in state)
    return state
