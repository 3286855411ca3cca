"""Processes that multiprocessing.spawn starts, as tutorials do: an address, a rank, a DistributedDataParallel."""

import os
import sys

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn, optim
from torch.nn.parallel import DistributedDataParallel as DDP


def setup(rank, world_size, port):
    os.environ["MASTER_ADDR"] = "localhost"
    os.environ["MASTER_PORT"] = port
    dist.init_process_group("gloo", rank=rank, world_size=world_size)


def demo(rank, world_size, port):
    setup(rank, world_size, port)
    sys.stdout = open(os.path.join(os.environ["SAID"], f"{rank}.txt"), "w")
    model = nn.Linear(3, 2)
    with torch.no_grad():
        model.weight.fill_(0.5)
        model.bias.fill_(rank)
    model = DDP(model)
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    model(torch.ones(4, 3) * (rank + 1)).pow(2).mean().backward()
    optimizer.step()
    print(rank, dist.get_world_size(), [[round(v, 5) for v in p.flatten().tolist()] for p in model.parameters()], flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(demo, args=(2, sys.argv[1] if len(sys.argv) > 1 else "29517"), nprocs=2, join=True)
