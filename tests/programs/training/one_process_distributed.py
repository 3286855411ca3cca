"""A script for several processes that is run by itself: process group of one, a wrapped model, a sampler of shares, averaged metrics."""

import os

import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


def fill(model, seed=0):
    """The same weights in every run and library: from numpy's generator."""
    rng = np.random.default_rng(seed)
    with torch.no_grad():
        for p in model.parameters():
            fan = p[0].numel() if p.dim() > 1 else p.numel()
            p.copy_(torch.from_numpy(rng.standard_normal(tuple(p.shape)) / np.sqrt(fan)))
    return model


def setup(rank, world_size):
    os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"] = "localhost", "29571"
    dist.init_process_group("gloo", rank=rank, world_size=world_size)


def average(value):
    t = torch.tensor([value])
    dist.all_reduce(t, op=dist.ReduceOp.SUM)
    return (t / dist.get_world_size()).item()


def main(rank, world_size):
    setup(rank, world_size)
    rng = np.random.default_rng(0)
    x = torch.tensor(rng.standard_normal((32, 4)), dtype=torch.float32)
    data = TensorDataset(x, x.sum(1, keepdim=True))
    sampler = DistributedSampler(data, num_replicas=world_size, rank=rank, shuffle=False)
    loader = DataLoader(data, batch_size=8, sampler=sampler)
    model = DDP(fill(nn.Linear(4, 1)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for epoch in range(3):
        sampler.set_epoch(epoch)
        for a, b in loader:
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(a), b)
            loss.backward()
            optimizer.step()
        if dist.get_rank() == 0:
            print(f"epoch {epoch} loss {average(loss.item()):.4f}")
    gathered = [torch.zeros(1, 4) for _ in range(dist.get_world_size())]
    dist.all_gather(gathered, model.module.weight.detach())
    print(len(gathered), list(model.state_dict()), dist.get_backend())
    objects = [None]
    dist.all_gather_object(objects, {"rank": rank})
    dist.barrier()
    print(objects)
    dist.destroy_process_group()
    print(dist.is_initialized())


if __name__ == "__main__":
    main(int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1)))
