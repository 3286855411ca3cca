"""Processes that multiprocessing forks and that meet in a FileStore alone: no address, no variables."""

import sys

import torch
import torch.distributed as dist
from torch.multiprocessing import start_processes


def work(rank, path):
    store = dist.FileStore(path, 2)
    dist.init_process_group("gloo", rank=rank, world_size=2, store=store)
    total = torch.ones(2) * (rank + 1)
    dist.all_reduce(total)
    store.add("right", int(total.tolist() == [3.0, 3.0]))


if __name__ == "__main__":
    start_processes(work, args=(sys.argv[1],), nprocs=2, start_method="fork")
    print("right", int(dist.FileStore(sys.argv[1]).get("right")))
