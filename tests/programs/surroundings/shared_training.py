"""Processes that share tensors: Hogwild training, a queue of tensors, started processes, a pool, events and locks."""

import os
import time

import torch
import torch.multiprocessing as mp
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 16)
        self.out = nn.Linear(16, 2)

    def forward(self, x):
        return F.log_softmax(self.out(torch.relu(self.fc(x))), dim=1)


def data():
    g = torch.linspace(-1, 1, 64).view(-1, 1)
    x = torch.cat([g, g.sin(), g**2, g.cos()], 1)
    return x, (x[:, 0] > 0).long()


def train(rank, seed, model, counter, lock):
    torch.manual_seed(seed + rank)
    loader = DataLoader(TensorDataset(*data()), batch_size=16, shuffle=True)
    optimizer = optim.SGD(model.parameters(), lr=0.1, momentum=0.5)
    for epoch in range(6):
        for x, y in loader:
            optimizer.zero_grad()
            loss = F.nll_loss(model(x), y)
            loss.backward()
            optimizer.step()
            with lock:
                counter.value += 1


def producer(queue, done, n):
    for i in range(n):
        queue.put((i, torch.full((2, 3), float(i))))
    queue.put(None)
    done.wait()


def consumer(queue, results):
    total = torch.zeros(2, 3)
    while True:
        item = queue.get()
        if item is None:
            break
        total += item[1]
    results.put(total.clone())
    time.sleep(0.3)


def add_one(rank, tensor, world):
    tensor[rank] += rank + 1
    assert world == 2 and os.getpid() != os.getppid()


def failing(rank):
    if rank == 1:
        raise ValueError("rank one fails")


def square(t):
    return t * t


def main():
    torch.manual_seed(1)
    ctx = mp.get_context("fork")
    print(mp.get_all_start_methods()[:2], mp.get_sharing_strategy(), sorted(mp.get_all_sharing_strategies()))
    model = Net()
    model.share_memory()
    print(all(p.is_shared() for p in model.parameters()), torch.zeros(2).is_shared(), torch.zeros(2).share_memory_().is_shared())
    x, y = data()
    before = F.nll_loss(model(x), y).item()
    counter, lock = ctx.Value("i", 0), ctx.Lock()
    processes = []
    for rank in range(2):
        p = ctx.Process(target=train, args=(rank, 1, model, counter, lock))
        p.start()
        processes.append(p)
    for p in processes:
        p.join()
    print("learned", F.nll_loss(model(x), y).item() < before, counter.value, [p.exitcode for p in processes])
    queue, results, done = ctx.Queue(), ctx.SimpleQueue(), ctx.Event()
    a = ctx.Process(target=producer, args=(queue, done, 5))
    b = ctx.Process(target=consumer, args=(queue, results))
    a.start(), b.start()
    print(results.get())
    done.set()
    a.join(), b.join()
    shared = torch.zeros(2).share_memory_()
    mp.start_processes(add_one, args=(shared, 2), nprocs=2, join=True, start_method="fork")
    print(shared)
    try:
        mp.start_processes(failing, nprocs=2, start_method="fork")
    except mp.ProcessRaisedException as e:
        print(type(e).__name__, "rank one fails" in str(e), e.error_index)
    with ctx.Pool(2) as pool:
        print(pool.map(square, [torch.tensor([1.0, 2.0]), torch.tensor(3)]))
        print(sum(pool.imap_unordered(square, torch.arange(4))))
    left, right = mp.Pipe()
    left.send({"t": torch.arange(3), "n": "x"})
    print(right.recv())
    print(mp.current_process().name, mp.cpu_count() > 0)


if __name__ == "__main__":
    main()
