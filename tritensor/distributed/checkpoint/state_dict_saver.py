"""Saving a checkpoint: ranks list what they have, divide the writing, write, and the first rank completes it with the metadata."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from copy import deepcopy
from enum import Enum
from typing import Any

from tritensor.distributed.checkpoint.boxes import Box, get_box, is_shard, part_like
from tritensor.distributed.checkpoint.filesystem import FileSystemWriter, choose_storage
from tritensor.distributed.checkpoint.metadata import Metadata, Part, Stored
from tritensor.distributed.checkpoint.states import encode_values, expand_stateful, flatten_state, map_values, path_to_json, refuse_circles
from tritensor.distributed.checkpoint.together import CheckpointRanks
from tritensor.distributed.initialisation import new_group
from tritensor.distributed.process_group import GroupMember, ProcessGroup, require_group
from tritensor.ground.errors import ArgumentError, CheckpointError
from tritensor.ground.process import locks
from tritensor.tensor.core import Tensor

Listing = dict[str, tuple[str, tuple[int, ...], Box, int]]  # by key: type, shape of the whole, box, bytes


class AsyncCheckpointerType(Enum):
    """The writer of an async_save; here a thread."""

    THREAD = "thread"
    PROCESS = "process"


def save(
    state_dict: dict[str, Any], *, checkpoint_id: str | os.PathLike[str] | None = None, storage_writer: FileSystemWriter | None = None,
    planner: Any = None, process_group: Any = None, no_dist: bool = False, use_collectives: bool = True,
) -> Metadata:  # fmt: skip
    """Write a state of all ranks of a group, which all call this, to a folder that all see.

    Tensors that all ranks have are written by one of them, the load shared by bytes; parts (`global_shape`, `global_offset`, as fully_shard
    makes them) each by who has them. Numbers, text, lists, tuples and dicts go into the metadata; nothing is pickled unless the writer allows it.
    The metadata is written last, so that a checkpoint is there whole or not at all, and an older one in the folder until then.

    Args:
        state_dict: nested dicts; what has state_dict() and load_state_dict() (modules, optimizers) stands for its state.
        checkpoint_id: the folder.
        storage_writer: a FileSystemWriter, which knows a folder, in place of checkpoint_id or for it.
        process_group: the ranks; all of them where nothing is given, this process where there are no groups.
        no_dist: this process alone, whatever groups there are.
        use_collectives: PyTorch's; ranks always agree on who writes what.

    Raises on all ranks:
        CheckpointError: values of other kinds; ranks that disagree about a tensor's type or shape; an error of another rank.
        OSError: the folder cannot be written.
    """
    return _save(
        CheckpointRanks("save", process_group, no_dist),
        lambda: (
            choose_storage("save", FileSystemWriter, "storage_writer", checkpoint_id, storage_writer, planner),
            expand_stateful(state_dict),
        ),
    )


def save_state_dict(
    state_dict: dict[str, Any], storage_writer: FileSystemWriter, process_group: Any = None, coordinator_rank: int = 0, no_dist: bool = False,
    planner: Any = None,
) -> Metadata:  # fmt: skip
    """save() under its older name. The first rank writes the metadata, whichever coordinator_rank is."""
    return save(state_dict, storage_writer=storage_writer, planner=planner, process_group=process_group, no_dist=no_dist)


def _save(ranks: CheckpointRanks, given: Callable[[], tuple[FileSystemWriter, dict[str, Any]]]) -> Metadata:
    """Three steps of all ranks. What is wrong with what one of them was `given` is told in the first."""
    # New names each time: the files of the checkpoint that is replaced stay readable until the metadata names the new ones.
    token, kept = secrets.token_hex(4), []

    def look() -> tuple[Listing, dict[str, Any], str, dict[str, list[Any]]]:
        writer, state = given()
        tensors, values, paths = flatten_state(state)
        told_values = encode_values(values, writer.allow_pickle)
        writer.begin()
        kept.append((writer, tensors))
        listing = {key: (t.dtype.name, *get_box(t), t._array.nbytes) for key, t in tensors.items()}
        return listing, told_values, token, {key: path_to_json(state, path) for key, path in paths.items()}

    told = ranks.step(look)
    writer, tensors = kept[0]
    plan = plan_writes([listing for listing, *_ in told], told[0][2])
    values: dict[str, Any] = {}
    steps: dict[str, list[Any]] = {}
    for _, theirs, _, led in reversed(told):  # where ranks differ, the first one's
        values.update(theirs)
        steps.update(led)
    both = sorted(plan.keys() & values.keys())
    # One key cannot be read back as both, and the ranks' states have the same structure in every sound program.
    if both:
        raise CheckpointError(f"save: {both[0]} is a tensor on one rank and none on another; make them alike")
    mine = file_name(told[0][2], ranks.rank)

    def write() -> None:
        found = {p.name: tensors[key] for key, stored in plan.items() for p in stored.parts if p.file == mine}
        # Of few tensors and many ranks some ranks write nothing, and an empty file would have to be opened at load.
        if found:
            writer.write(mine, {name: Tensor.wrap(t._array) for name, t in found.items()})

    ranks.step(write)
    metadata = Metadata(plan, values, steps)
    # A step of its own, after all parts are on the disk: metadata that names a missing file would be a torn checkpoint.
    ranks.step(lambda: writer.finish(metadata) if ranks.rank == 0 else None)
    return metadata


def file_name(token: str, rank: int) -> str:
    """The file of a rank, of another name each time: the old ones stay until the metadata names the new."""
    return f"part-{token}-{rank}.safetensors"


def plan_writes(listings: list[Listing], token: str) -> dict[str, Stored]:
    """The rank that writes each box: one of the ranks that have it, the one that has least to write so far.

    Raises CheckpointError where ranks disagree about a tensor's type or whole shape, or its boxes overlap or leave gaps.
    """
    load = [0] * len(listings)
    plan: dict[str, Stored] = {}
    for key in sorted({k for listing in listings for k in listing}):
        have = {rank: listing[key] for rank, listing in enumerate(listings) if key in listing}
        first = next(iter(have))
        dtype, shape, _, _ = have[first]
        for rank, (their_dtype, their_shape, their_box, _) in have.items():
            if not Box(*their_box).fits_in(their_shape):
                raise CheckpointError(
                    f"save: {key} on rank {rank} is {Box(*their_box)} of {their_shape}, which reaches out of it; correct its global_offset"
                )
            if (their_dtype, their_shape) != (dtype, shape):
                raise CheckpointError(
                    f"save: {key} is {their_dtype} {their_shape} on rank {rank} and {dtype} {shape} on rank {first}; make them alike"
                )
        parts = []
        for box in sorted({Box(*entry[2]) for entry in have.values()}):
            # By bytes so far and then by rank, which all ranks compute alike without another message.
            owner = min((r for r, entry in have.items() if Box(*entry[2]) == box), key=lambda r: (load[r], r))
            # Empty shards (more processes than rows) are not written; a tensor that is empty as a whole must be, to come back.
            if box.size or not shape or 0 in shape:
                load[owner] += have[owner][3]
                parts.append(Part(box, file_name(token, owner), key))
        _check_cover(key, shape, parts)
        plan[key] = Stored(dtype, shape, tuple(parts))
    return plan


def _check_cover(key: str, shape: tuple[int, ...], parts: list[Part]) -> None:
    whole = Box((0,) * len(shape), shape)
    for i, part in enumerate(parts):
        for other in parts[i + 1 :]:
            if part.box.intersect(other.box) is not None:
                raise CheckpointError(f"save: parts {part.box} and {other.box} of {key} {shape} overlap; each element belongs to one part")
    if sum(p.box.size for p in parts) != whole.size:
        raise CheckpointError(
            f"save: the parts of {key} hold {sum(p.box.size for p in parts)} of the {whole.size} elements of {shape}; save all of them"
        )


_making = locks.lock()
_threads: dict[int, ThreadPoolExecutor] = {}
_own: list[tuple[ProcessGroup, Any]] = []  # (the world, the group beside it in which the thread communicates)


def async_save(
    state_dict: dict[str, Any], *, checkpoint_id: str | os.PathLike[str] | None = None, storage_writer: FileSystemWriter | None = None,
    planner: Any = None, process_group: Any = None, async_checkpointer_type: Any = AsyncCheckpointerType.THREAD, async_stager: Any = None,
    no_dist: bool = False, use_collectives: bool = True,
) -> Future[Metadata]:  # fmt: skip
    """save() of the state as it is now, in a thread: its tensors are copied first, then training may go on. `result()` of the Future waits,
    and raises what save() raises; destroy_process_group waits, too, and raises nothing of it.

    The thread communicates in a group of its own, which the first call makes; a `process_group` that is given must be used by nothing else.

    Raises:
        NotImplementedError: a planner, a stager, or a process in place of the thread.
        ValueError: several ranks without a backend for the CPU.
    """
    if async_stager is not None or async_checkpointer_type not in (None, AsyncCheckpointerType.THREAD):
        raise NotImplementedError("async_save: async_stager and processes that write are not in tritensor, a thread does; leave them out")
    ranks = CheckpointRanks("async_save", _get_thread_group() if process_group is None and not no_dist else process_group, no_dist)
    # NCCL calls from a second thread would be queued between those of training, in another order on each rank.
    if ranks.group is not None and ranks.size > 1 and "cpu" not in ranks.group.backends:
        raise ArgumentError(
            f"async_save: backend {ranks.group.backend!r} has no part for the CPU, over which a thread communicates; "
            "init_process_group with 'cpu:mpi,cuda:nccl'"
        )
    state: dict[str, Any] = {}
    failed: list[Exception] = []
    try:
        writer = choose_storage("async_save", FileSystemWriter, "storage_writer", checkpoint_id, storage_writer, planner)
        state = expand_stateful(state_dict)
        refuse_circles(state)
        state = _copy_to_cpu(state)
    except Exception as error:  # told in the first step of all, where the others wait
        failed.append(error)

    def given() -> tuple[FileSystemWriter, dict[str, Any]]:
        if failed:
            raise failed[0]
        return writer, state

    future = _get_thread().submit(_save, ranks, given)
    if ranks.group is not None:
        ranks.group.uses[:] = [use for use in ranks.group.uses if not use.done()] + [future]
    return future


def _get_thread() -> ThreadPoolExecutor:
    """The one thread that saves, of this process: a forked one has none of its parent's."""
    # Two threads that call async_save at once would otherwise make a thread each, and their saves run side by side.
    with _making:
        found = _threads.get(os.getpid())
        if found is None:
            found = _threads[os.getpid()] = ThreadPoolExecutor(1, thread_name_prefix="tritensor checkpoint")
        return found


def _get_thread_group() -> Any:
    """A group of all processes for the thread, made once; None where there are not several."""
    if GroupMember.WORLD is None or GroupMember.WORLD.size() == 1:
        return None
    world = require_group("async_save")
    with _making:
        # After destroy_process_group and a new init the old group is closed.
        if not _own or _own[0][0] is not world:
            _own[:] = [(world, new_group(group_desc="checkpoints"))]
        return _own[0][1]


def _copy_to_cpu(state: Any) -> Any:
    """A copy of all of a state on the CPU, so that what training does meanwhile does not reach it."""

    def copy_value(value: Any) -> Any:
        if not isinstance(value, Tensor):
            return deepcopy(value)
        copy = value.detach().clone() if value.device.type == "cpu" else value.detach().cpu()
        return part_like(value, Tensor.wrap(copy._array)) if is_shard(value) else copy

    return map_values(state, copy_value)
