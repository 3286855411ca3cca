"""Collective communication of Python objects, as bytes: JSON where it holds all of an object, else pickle."""

from __future__ import annotations

import json
import pickle
from typing import Any

import numpy as np

from tritensor.distributed import collectives
from tritensor.distributed.arguments import find_root
from tritensor.distributed.point_to_point import recv, send
from tritensor.distributed.process_group import ProcessGroup, is_outside, require_group
from tritensor.ground.device import device
from tritensor.ground.errors import ArgumentError
from tritensor.ground.thread_state import here
from tritensor.ops.array import from_host, to_host
from tritensor.tensor.core import Tensor

DEEPEST = 20  # lists and dicts in one another that JSON is given


def is_plain(value: Any, depth: int = 0) -> bool:
    """Whether JSON gives back the same: None, truth values, numbers, text, lists and dicts by text of those, not deep in one another."""
    kind = type(value)
    if depth > DEEPEST:  # or a list that holds itself
        return False
    # Exact types: JSON would bring back a subclass as the plain one.
    if kind is list:
        return all(is_plain(v, depth + 1) for v in value)
    if kind is dict:
        return all(type(k) is str and is_plain(v, depth + 1) for k, v in value.items())
    return value is None or kind in (bool, int, float, str)


def to_bytes(name: str, value: Any) -> np.ndarray:
    """An object in bytes, the first of which says how. Raises TypeError for what pickle refuses."""
    # JSON reads back without running code.
    if is_plain(value):
        return np.frombuffer(b"J" + json.dumps(value).encode("utf-8", "surrogatepass"), np.uint8)
    try:
        return np.frombuffer(b"P" + pickle.dumps(value), np.uint8)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise TypeError(f"{name}: {type(value).__name__} cannot be pickled ({error}); give an object that can") from error


def from_bytes(data: np.ndarray) -> Any:
    """The object that `to_bytes` made them of. Pickled ones run what their sender says: the other processes of a group are trusted."""
    raw = data.tobytes()
    return json.loads(raw[1:].decode("utf-8", "surrogatepass")) if raw[:1] == b"J" else pickle.loads(raw[1:])


def _to_tensor(world: ProcessGroup, values: np.ndarray) -> Tensor:
    return Tensor.wrap(from_host(values, world.get_control_device(device("cuda", here.index))))


def _gather_bytes(name: str, obj: Any, world: ProcessGroup, group: Any) -> list[Any]:
    """Every process' object, on all of them: first how long each is, then the bytes, each filled up to the longest."""
    data = to_bytes(name, obj)
    lengths = _to_tensor(world, np.zeros(world.size(), np.int64))
    collectives.all_gather_into_tensor(lengths, _to_tensor(world, np.array([data.size])), group)
    sizes = to_host(lengths._array)
    mine = np.zeros(int(sizes.max()), np.uint8)
    mine[: data.size] = data
    whole = _to_tensor(world, np.zeros((world.size(), mine.size), np.uint8))
    collectives.all_gather_into_tensor(whole, _to_tensor(world, mine), group)
    return [from_bytes(row[:n]) for row, n in zip(to_host(whole._array), sizes, strict=True)]


def all_gather_object(object_list: list[Any], obj: Any, group: Any = None) -> None:
    """Write every process' object into object_list, which has an entry for each process."""
    if is_outside(group):
        return
    world = require_group("all_gather_object", group)
    if len(object_list) < world.size():
        raise ArgumentError(
            f"all_gather_object: object_list has {len(object_list)} entries for {world.size()} process{'es' * (world.size() > 1)}; "
            "give [None] * world size"
        )
    object_list[: world.size()] = _gather_bytes("all_gather_object", obj, world, group)


def gather_object(
    obj: Any, object_gather_list: list[Any] | None = None, dst: int | None = None, group: Any = None, group_dst: int | None = None
) -> None:
    """Write every process' object into object_gather_list on process dst."""
    if is_outside(group):
        return
    world = require_group("gather_object", group)
    root = find_root("gather_object", "dst", dst, group_dst, world)
    if world.rank() == root and not object_gather_list:
        raise ArgumentError(
            "gather_object: argument object_gather_list must be specified on the destination rank; give [None] * world size"
        )
    if world.rank() == root and len(object_gather_list or ()) < world.size():
        raise ArgumentError(
            f"gather_object: object_gather_list has {len(object_gather_list or ())} entries for {world.size()} processes; give [None] * world size"
        )
    if world.rank() != root and object_gather_list:
        raise ArgumentError(
            "gather_object: argument object_gather_list must NOT be specified on non-destination ranks; give None, or change the destination rank"
        )
    found = _gather_bytes("gather_object", obj, world, group)
    if world.rank() == root:
        assert object_gather_list is not None
        object_gather_list[: world.size()] = found


def _check_list(name: str, object_list: Any, writes: bool) -> None:
    if not isinstance(object_list, list if writes else list | tuple) or not object_list:
        raise ArgumentError(f"{name}: object_list is {object_list!r:.80}; give a list of at least one object, as long on all processes")


def broadcast_object_list(
    object_list: list[Any], src: int | None = None, group: Any = None, device: Any = None, group_src: int | None = None
) -> None:
    """Give all processes the objects of process src, in lists of one length: on src itself they stay what they are."""
    if is_outside(group):
        return
    world = require_group("broadcast_object_list", group)
    root = find_root("broadcast_object_list", "src", src, group_src, world)
    sends = world.rank() == root
    _check_list("broadcast_object_list", object_list, not sends)
    data = [to_bytes("broadcast_object_list", one) for one in object_list] if sends else []
    sizes = _to_tensor(world, np.array([d.size for d in data] if sends else [0] * len(object_list), np.int64))
    collectives.broadcast(sizes, group=group, group_src=root)
    lengths = to_host(sizes._array)
    raw = _to_tensor(world, np.concatenate([*data, np.zeros(0, np.uint8)]) if sends else np.zeros(int(lengths.sum()), np.uint8))
    collectives.broadcast(raw, group=group, group_src=root)
    # The source keeps its own objects, not copies of them, as in PyTorch.
    if not sends:
        object_list[:] = [from_bytes(part) for part in np.split(to_host(raw._array), np.cumsum(lengths)[:-1])]


def scatter_object_list(
    scatter_object_output_list: list[Any], scatter_object_input_list: list[Any] | None = None, src: int | None = None, group: Any = None,
    group_src: int | None = None,
) -> None:  # fmt: skip
    """Give each process its object of process src's list, as the first entry of scatter_object_output_list."""
    if is_outside(group):
        return
    name = "scatter_object_list"
    world = require_group(name, group)
    root = find_root(name, "src", src, group_src, world)
    if not isinstance(scatter_object_output_list, list) or not scatter_object_output_list:
        raise ArgumentError(f"{name}: Expected argument scatter_object_output_list to be a list of size at least 1; give [None]")
    sends = world.rank() == root
    if sends and (not scatter_object_input_list or len(scatter_object_input_list) != world.size()):
        raise ArgumentError(f"{name}: scatter_object_input_list holds one object for each process: give {world.size()}")
    data = [to_bytes(name, one) for one in scatter_object_input_list or ()] if sends else []
    lengths = _to_tensor(world, np.array([d.size for d in data] if sends else [0] * world.size(), np.int64))
    collectives.broadcast(lengths, group=group, group_src=root)
    sizes = to_host(lengths._array)
    # scatter sends parts of one size, so each is filled up to the longest.
    room = int(sizes.max())
    parts = [_to_tensor(world, np.concatenate([d, np.zeros(room - d.size, np.uint8)])) for d in data]
    out = _to_tensor(world, np.zeros(room, np.uint8))
    collectives.scatter(out, parts or None, group=group, group_src=root)
    scatter_object_output_list[0] = from_bytes(to_host(out._array)[: sizes[world.rank()]])


def send_object_list(
    object_list: list[Any], dst: int | None = None, group: Any = None, device: Any = None, group_dst: int | None = None, use_batch: bool = False
) -> None:  # fmt: skip
    """Send objects to another process, which calls recv_object_list."""
    if is_outside(group):
        return
    world = require_group("send_object_list", group)
    _check_list("send_object_list", object_list, False)
    data = [to_bytes("send_object_list", one) for one in object_list]
    send(_to_tensor(world, np.array([d.size for d in data], np.int64)), dst, group, group_dst=group_dst)
    send(_to_tensor(world, np.concatenate([*data, np.zeros(0, np.uint8)])), dst, group, group_dst=group_dst)


def recv_object_list(
    object_list: list[Any], src: int | None = None, group: Any = None, device: Any = None, group_src: int | None = None, use_batch: bool = False
) -> int:  # fmt: skip
    """Receive as many objects as the list has entries, in their place. The number in the world of who sent, -1 outside of the group."""
    if is_outside(group):
        return -1
    world = require_group("recv_object_list", group)
    _check_list("recv_object_list", object_list, True)
    sizes = _to_tensor(world, np.zeros(len(object_list), np.int64))
    sender = recv(sizes, src, group, group_src=group_src)
    lengths = to_host(sizes._array)
    raw = _to_tensor(world, np.zeros(int(lengths.sum()), np.uint8))
    recv(raw, sender, group)
    object_list[:] = [from_bytes(part) for part in np.split(to_host(raw._array), np.cumsum(lengths)[:-1])]
    return sender
