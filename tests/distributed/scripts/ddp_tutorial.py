"""DistributedDataParallel as tutorials give it: a toy model, a checkpoint that rank 0 writes, gradient accumulation, uneven inputs, a metric."""

import os
import sys
import tempfile

import numpy as np
import torch
import torch.distributed as dist
from torch import nn, optim
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


class ToyModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.net1 = nn.Linear(10, 10)
        self.relu = nn.ReLU()
        self.net2 = nn.Linear(10, 5)
        self.unused = nn.Linear(2, 2)

    def forward(self, x):
        return self.net2(self.relu(self.net1(x)))


def fill(model, seed):
    rng = np.random.default_rng(seed)
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(torch.from_numpy(rng.standard_normal(tuple(p.shape)) * 0.3))
    return model


def data(rank, n=16):
    rng = np.random.default_rng(rank)
    return torch.tensor(rng.standard_normal((n, 10)), dtype=torch.float32), torch.tensor(rng.standard_normal((n, 5)), dtype=torch.float32)


def checkpointed(rank, folder):
    model = DDP(fill(ToyModel(), rank), find_unused_parameters=True)  # rank 0's weights win
    path = os.path.join(folder, "model.pt")
    if rank == 0:
        torch.save(model.state_dict(), path)
    dist.barrier()
    state = torch.load(path, map_location="cpu")
    model.load_state_dict(state)
    loss_fn, optimizer = nn.MSELoss(), optim.SGD(model.parameters(), lr=0.01)
    for _ in range(3):
        optimizer.zero_grad()
        x, y = data(rank)
        loss_fn(model(x), y).backward()
        optimizer.step()
    print(
        f"[{rank}]",
        sorted(state)[:2],
        round(sum(p.sum().item() for p in model.parameters()), 4),
        model.module.unused.weight.grad,
        flush=True,
    )


def accumulated(rank):
    net = fill(ToyModel(), 0)
    net.unused.requires_grad_(False)
    model = DDP(net)
    x, y = data(rank)
    for i, (a, b) in enumerate(zip(x.split(4), y.split(4))):
        if i < 3:
            with model.no_sync():
                nn.functional.mse_loss(model(a), b).backward()
        else:
            nn.functional.mse_loss(model(a), b).backward()
    print(f"[{rank}]", [round(p.grad.norm().item(), 4) for p in model.parameters() if p.requires_grad], flush=True)


def uneven(rank):
    net = fill(ToyModel(), 0)
    net.unused.requires_grad_(False)
    model = DDP(net)
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    x, y = data(rank)
    with model.join():
        for a, b in zip(x[: 8 + 4 * rank].split(4), y.split(4)):
            optimizer.zero_grad()
            nn.functional.mse_loss(model(a), b).backward()
            optimizer.step()
    print(f"[{rank}]", round(sum(p.sum().item() for p in model.parameters()), 4), flush=True)


def epochs(rank, size):
    x, y = data(7, 24)
    dataset = TensorDataset(x, y)
    sampler = DistributedSampler(dataset, shuffle=False)
    loader = DataLoader(dataset, batch_size=4, sampler=sampler)
    net = fill(ToyModel(), 0)
    net.unused.requires_grad_(False)
    model = DDP(net)
    optimizer = optim.Adam(model.parameters(), lr=0.01)
    scheduler = optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.5)
    for epoch in range(2):
        sampler.set_epoch(epoch)
        total = torch.zeros(2)
        for a, b in loader:
            optimizer.zero_grad(set_to_none=True)
            loss = nn.functional.mse_loss(model(a), b)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            total += torch.tensor([loss.item() * len(a), len(a)])
        scheduler.step()
        dist.all_reduce(total)
        if rank == 0:
            print(f"[{rank}] epoch {epoch} loss {(total[0] / total[1]).item():.4f}", flush=True)
    norm = DDP(nn.Sequential(nn.Linear(10, 4), nn.BatchNorm1d(4)))
    norm(x[rank::size]).sum().backward()
    print(f"[{rank}]", [tuple(b.shape) for b in norm.buffers()], norm.module[1].num_batches_tracked.item(), flush=True)


def main():
    dist.init_process_group(backend="gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    sys.stdout = open(os.path.join(os.environ["SAID"], f"{rank}.txt"), "w")  # each rank writes a file: lines of a terminal are mixed
    names = [tempfile.mkdtemp()] if rank == 0 else [None]
    dist.broadcast_object_list(names, src=0)
    checkpointed(rank, names[0])
    accumulated(rank)
    uneven(rank)
    epochs(rank, size)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
