"""A script that says torch, spawns processes and has spawned workers read its data."""

import torch
import torch.multiprocessing as mp
from torch.utils.data import DataLoader, Dataset


class Numbers(Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, i):
        return torch.full((3,), float(i))


def mark(rank, x):
    x[rank] = rank + 1


if __name__ == "__main__":
    x = torch.zeros(2).share_memory_()
    mp.spawn(mark, (x,), 2)
    print(x)
    print([b.sum().item() for b in DataLoader(Numbers(), batch_size=4, num_workers=1, multiprocessing_context="spawn")])
    # without a word about it workers are forked, as PyTorch does on Linux: a lambda will do
    print([b.sum().item() for b in DataLoader(Numbers(), batch_size=4, num_workers=1, collate_fn=lambda s: torch.stack(s))])
