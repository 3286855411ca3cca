"""Messages between two processes: send and receive, waited for or not, and several that begin as one."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

from tritensor.distributed.arguments import check_tensor, describe_tensors, empty_output, find_root, to_contiguous, write_back
from tritensor.distributed.backends.interface import Backend, Pending
from tritensor.distributed.collectives import finish_call
from tritensor.distributed.process_group import GroupMember, ProcessGroup, is_outside, require_group
from tritensor.distributed.work import Work
from tritensor.ground.errors import ArgumentError
from tritensor.tensor.core import Tensor


def _find_peer(name: str, what: str, role: str, given: int | None, inside: int | None, group: ProcessGroup) -> int:
    if given is None and inside is None:
        raise ArgumentError(f"{name}: no {what} is given; give the rank of the {role} process")
    number = find_root(name, what, given, inside, group)
    # A blocking send to oneself would wait for a receive that never begins.
    if number == group.rank():
        raise ArgumentError(
            f"{name}: {what} must not be the rank of this process itself, {group.ranks[number]}"
            + (", and there is no other process in the group" if group.size() == 1 else "")
        )
    return number


def isend(tensor: Tensor, dst: int | None = None, group: Any = None, tag: int = 0, group_dst: int | None = None) -> Work | None:
    """Send a tensor to another process, and go on. The tensor must stay as it is until the Work is done."""
    return _send("isend", tensor, dst, group, tag, group_dst, True)


def send(tensor: Tensor, dst: int | None = None, group: Any = None, tag: int = 0, group_dst: int | None = None) -> None:
    """Send a tensor to another process, and wait until it may be written again."""
    _send("send", tensor, dst, group, tag, group_dst, False)


def _send(name: str, tensor: Tensor, dst: int | None, group: Any, tag: int, group_dst: int | None, async_op: bool) -> Work | None:
    if is_outside(group):
        return None
    check_tensor(name, "tensor", tensor)
    world = require_group(name, group)
    to = _find_peer(name, "dst", "receiving", dst, group_dst, world)
    backend = world.backend_of(name, tensor)
    call = world.begin_pairwise(name, f"{describe_tensors(tensor)} to {world.ranks[to]}")
    return finish_call(backend, backend.send(call, to, tag, to_contiguous(tensor)), call, async_op, [tensor])


def irecv(tensor: Tensor, src: int | None = None, group: Any = None, tag: int = 0, group_src: int | None = None) -> Work | None:
    """Receive a tensor from another process, and go on. The tensor holds it once the Work is done."""
    if is_outside(group):
        return None
    backend, pending, finish, call = _receive("irecv", tensor, src, group, tag, group_src)
    return finish_call(backend, pending, call, True, [tensor], finish)


def recv(tensor: Tensor, src: int | None = None, group: Any = None, tag: int = 0, group_src: int | None = None) -> int:
    """Receive a tensor from another process, from any where no src is given. The number in the world of who sent, -1 outside of the group."""
    if is_outside(group):
        return -1
    backend, pending, finish, call = _receive("recv", tensor, src, group, tag, group_src)
    finish_call(backend, pending, call, False, [tensor], finish)
    return require_group("recv", group).ranks[pending.source()]


def _receive(
    name: str, tensor: Tensor, src: int | None, group: Any, tag: int, group_src: int | None
) -> tuple[Backend, Pending, Callable[[], None], Any]:
    check_tensor(name, "tensor", tensor)
    world = require_group(name, group)
    # "From any process" is from none here: the call would wait for ever.
    if world.size() == 1:
        _find_peer(name, "src", "sending", 0 if src is None and group_src is None else src, group_src, world)
    source = None if src is None and group_src is None else _find_peer(name, "src", "sending", src, group_src, world)
    backend = world.backend_of(name, tensor)
    call = world.begin_pairwise(name, f"{describe_tensors(tensor)} from {'any' if source is None else world.ranks[source]}")
    out = empty_output(tensor)
    return backend, backend.receive(call, source, tag, out), lambda: write_back(name, tensor, out), call


class P2POp:
    """One message of batch_isend_irecv: `op` is isend or irecv, `peer` the other process' number in the world (`group_peer`: in the group)."""

    def __init__(
        self, op: Callable[..., Any], tensor: Tensor, peer: int | None = None, group: Any = None, tag: int = 0, group_peer: int | None = None
    ) -> None:  # fmt: skip
        # send and recv would block before the batch is complete.
        if op not in (isend, irecv):
            raise ArgumentError(f"P2POp: op is {op!r}; give tritensor.distributed.isend or irecv itself")
        check_tensor("P2POp", "tensor", tensor)
        self.op, self.tensor, self.peer, self.group, self.tag, self.group_peer = op, tensor, peer, group, tag, group_peer


def batch_isend_irecv(p2p_op_list: Sequence[P2POp]) -> list[Work]:
    """Begin several messages as one, in whatever order the other processes list theirs; a Work for each."""
    if not p2p_op_list or not all(isinstance(p, P2POp) for p in p2p_op_list):
        raise ArgumentError("batch_isend_irecv: give a list of P2POp, at least one")
    groups = {id(GroupMember.WORLD if p.group is None else p.group) for p in p2p_op_list}
    # A batch begins as one call of one communicator.
    if len(groups) > 1:
        raise ArgumentError("batch_isend_irecv: the messages are of different groups; make a batch for each group")
    if is_outside(p2p_op_list[0].group):
        return []
    world = require_group("batch_isend_irecv", p2p_op_list[0].group)
    for p in p2p_op_list:  # before the first of them begins
        if p.op is isend or p.peer is not None or p.group_peer is not None:
            _find_peer("batch_isend_irecv", "peer", "other", p.peer, p.group_peer, world)
    with contextlib.ExitStack() as stack:
        # NCCL starts a bracketed batch together; begun one by one, messages in a circle would wait for each other.
        for backend in {id(b): b for b in (world.backend_of("batch_isend_irecv", p.tensor) for p in p2p_op_list)}.values():
            stack.enter_context(backend.together())
        begun = [p.op(p.tensor, p.peer, p.group, p.tag, p.group_peer) for p in p2p_op_list]
    return [w for w in begun if w is not None]
