"""A tour of torch.distributed as tutorials give it: every collective, rings of messages, groups, objects, what errors say."""

import datetime
import os
import sys

import torch
import torch.distributed as dist


def say(rank, *words):
    print(f"[{rank}]", *words, flush=True)


def ring_all_reduce(send, recv):
    rank, size = dist.get_rank(), dist.get_world_size()
    send_buff, recv_buff, accum = send.clone(), send.clone(), send.clone()
    left, right = ((rank - 1) + size) % size, (rank + 1) % size
    for i in range(size - 1):
        if i % 2 == 0:
            req = dist.isend(send_buff, right)
            dist.recv(recv_buff, left)
            accum[:] += recv_buff[:]
        else:
            req = dist.isend(recv_buff, right)
            dist.recv(send_buff, left)
            accum[:] += send_buff[:]
        req.wait()
    recv[:] = accum[:]


def main():
    dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=60))
    rank, size = dist.get_rank(), dist.get_world_size()
    sys.stdout = open(os.path.join(os.environ["SAID"], f"{rank}.txt"), "w")  # each rank writes a file: lines of a terminal are mixed
    say(rank, dist.is_available(), dist.is_initialized(), dist.get_backend(), size, dist.get_rank(dist.group.WORLD))
    x = torch.arange(6.0).reshape(2, 3) + rank
    for op in (dist.ReduceOp.SUM, dist.ReduceOp.PRODUCT, dist.ReduceOp.MIN, dist.ReduceOp.MAX):
        y = x.clone()
        say(rank, dist.all_reduce(y, op=op), y.tolist())
    for dtype in (torch.uint8, torch.int8, torch.int32, torch.int64, torch.float16, torch.bfloat16, torch.float64):
        y = torch.tensor([1, 2, 3]).to(dtype) + rank
        dist.all_reduce(y)
        say(rank, y)
    y = x.clone()
    dist.broadcast(y, 0)
    say(rank, y.tolist())
    y = x.clone()
    dist.reduce(y, 1)
    if rank == 1:
        say(rank, y.tolist())
    parts = [torch.zeros(2, 3) for _ in range(size)]
    dist.all_gather(parts, x)
    say(rank, parts)
    whole = torch.zeros(2 * size, 3)
    dist.all_gather_into_tensor(whole, x)
    say(rank, whole.tolist())
    parts = [torch.zeros(2, 3) for _ in range(size)] if rank == 0 else None
    dist.gather(x, parts, dst=0)
    say(rank, parts)
    out = torch.zeros(3)
    dist.scatter(out, [torch.full((3,), float(i)) for i in range(size)] if rank == 1 else None, src=1)
    say(rank, out.tolist())
    out = torch.zeros(size)
    dist.all_to_all_single(out, torch.arange(float(size)) + 10 * rank)
    say(rank, out.tolist())
    received = torch.zeros(3)
    ring_all_reduce(x[0], received)
    say(rank, received.tolist())
    work = dist.all_reduce(x.clone(), async_op=True)
    say(rank, work.wait(), work.is_completed())
    got = [None] * size
    dist.all_gather_object(got, {"rank": rank, "name": "r" * rank})
    say(rank, got)
    things = [rank, "text", {1: 2}] if rank == 0 else [None] * 3
    dist.broadcast_object_list(things, src=0)
    say(rank, things)
    mine = [None]
    dist.scatter_object_list(mine, ["a", {"b": 1}][:size] if rank == 0 else None, src=0)
    say(rank, mine)
    group = dist.new_group([1])
    if rank == 1:
        z = torch.ones(2)
        dist.all_reduce(z, group=group)
        say(rank, z.tolist(), dist.get_rank(group), dist.get_world_size(group), dist.get_process_group_ranks(group))
    else:
        say(rank, dist.get_rank(group), group == dist.GroupMember.NON_GROUP_MEMBER)
    tensor = torch.zeros(2)
    ops = [dist.P2POp(dist.isend, torch.full((2,), float(rank)), (rank + 1) % size), dist.P2POp(dist.irecv, tensor, (rank - 1) % size)]
    for req in dist.batch_isend_irecv(ops):
        req.wait()
    say(rank, tensor.tolist())
    for kind, call in (
        (TypeError, lambda: dist.all_reduce([1.0])),
        (RuntimeError, lambda: dist.all_gather([torch.zeros(2)] * size, torch.zeros(3))),
        (ValueError, lambda: dist.scatter(torch.zeros(1), [torch.zeros(1)] * size, src=1 - rank)),
        (ValueError, lambda: dist.gather(torch.zeros(1), [torch.zeros(1)] * size, dst=1 - rank)),
        (ValueError, lambda: dist.send(torch.zeros(1), rank)),
        (ValueError, lambda: dist.init_process_group("gloo")),
        (ValueError, lambda: dist.new_group([0, 5])),
    ):
        try:
            call()
        except Exception as error:
            say(rank, kind.__name__, isinstance(error, kind))
        else:
            say(rank, "no error")
    dist.barrier()
    dist.destroy_process_group()
    say(rank, dist.is_initialized(), os.environ["WORLD_SIZE"], os.environ["LOCAL_RANK"])


if __name__ == "__main__":
    main()
