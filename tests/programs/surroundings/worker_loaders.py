"""Loaders by workers: forked and spawned, streams shared among them, workers that persist, seeds, samplers, collates."""

import random

import numpy as np
import torch
import torch.utils.data as data
from torch.nn.utils.rnn import pack_padded_sequence, pad_sequence
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset, default_collate, get_worker_info


class Range(IterableDataset):
    def __init__(self, start, end):
        super().__init__()
        assert end > start
        self.start, self.end = start, end

    def __iter__(self):
        info = torch.utils.data.get_worker_info()
        if info is None:
            first, last = self.start, self.end
        else:
            per = int(np.ceil((self.end - self.start) / float(info.num_workers)))
            first = self.start + info.id * per
            last = min(first + per, self.end)
        return iter(range(first, last))


def shard(worker_id):
    info = get_worker_info()
    dataset = info.dataset
    start, end = dataset.start, dataset.end
    per = int(np.ceil((end - start) / float(info.num_workers)))
    dataset.start = start + worker_id * per
    dataset.end = min(dataset.start + per, end)


class Plain(Range):
    def __iter__(self):
        return iter(range(self.start, self.end))


class Words(Dataset):
    def __init__(self, lengths):
        self.lengths = lengths

    def __len__(self):
        return len(self.lengths)

    def __getitem__(self, i):
        return torch.arange(self.lengths[i]) + 10 * i, i % 2


class Counting(Dataset):
    """Counts how often this copy was asked: tells persistent workers from fresh ones."""

    def __init__(self):
        self.asked = 0

    def __len__(self):
        return 4

    def __getitem__(self, i):
        self.asked += 1
        info = get_worker_info()
        return i, self.asked, info.id, info.num_workers, len(info.dataset)


class Noise(Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, i):
        return np.random.randint(0, 1000), random.randint(0, 1000), torch.randint(0, 1000, (1,)).item()


def padded(batch):
    words, labels = zip(*batch)
    lengths = torch.tensor([len(w) for w in words])
    return pad_sequence(words, batch_first=True, padding_value=-1), torch.tensor(labels), lengths


def seed_worker(worker_id):
    worker_seed = torch.initial_seed() % 2**32
    np.random.seed(worker_seed)
    random.seed(worker_seed)


def main():
    print(get_worker_info())
    for context in ("fork",):
        print(context, [b.tolist() for b in DataLoader(Range(3, 11), batch_size=3, num_workers=2, multiprocessing_context=context)])
    print(list(DataLoader(Range(3, 7), num_workers=0)))
    print([int(x) for x in DataLoader(Plain(3, 7), num_workers=2, multiprocessing_context="fork", worker_init_fn=shard)])
    print([x for x in DataLoader(Plain(3, 7), batch_size=None, num_workers=2, multiprocessing_context="fork")])
    for x, y, n in DataLoader(Words([3, 1, 4, 1, 5]), batch_size=2, collate_fn=padded, num_workers=2, multiprocessing_context="fork"):
        print(x.tolist(), y.tolist(), n.tolist())
        print(pack_padded_sequence(x, n, batch_first=True, enforce_sorted=False).batch_sizes.tolist())
    loader = DataLoader(Counting(), batch_size=1, num_workers=2, multiprocessing_context="fork", persistent_workers=True)
    for epoch in range(2):
        print("persistent", [[int(v) for v in b] for b in loader])
    loader = DataLoader(Counting(), batch_size=1, num_workers=2, multiprocessing_context="fork")
    for epoch in range(2):
        print("fresh", [[int(v) for v in b] for b in loader])
    g = torch.Generator()
    g.manual_seed(0)
    runs = []
    for _ in range(2):
        g.manual_seed(0)
        runs.append(
            [
                [v.tolist() for v in b]
                for b in DataLoader(
                    Noise(), batch_size=4, num_workers=2, multiprocessing_context="fork", worker_init_fn=seed_worker, generator=g
                )
            ]
        )
    print("repeats", runs[0] == runs[1], "workers differ", runs[0][0] != runs[0][1])
    for sampler in (
        data.SequentialSampler(range(5)),
        data.RandomSampler(range(5), replacement=True, num_samples=7),
        data.WeightedRandomSampler([0.0, 0.0, 1.0], 4),
        data.BatchSampler(data.SequentialSampler(range(7)), 3, False),
        data.SubsetRandomSampler([4, 2]),
    ):
        print(type(sampler).__name__, len(sampler), len(list(sampler)))
    print(list(data.WeightedRandomSampler([0.0, 0.0, 1.0], 4)))
    for rank in range(2):
        sampler = data.distributed.DistributedSampler(range(7), num_replicas=2, rank=rank, shuffle=False)
        print(rank, len(sampler), list(sampler), list(data.DistributedSampler(range(7), 2, rank, shuffle=False, drop_last=True)))
    shuffled = data.DistributedSampler(TensorDataset(torch.arange(10)), num_replicas=2, rank=0, seed=3)
    shuffled.set_epoch(0)
    first = list(shuffled)
    shuffled.set_epoch(1)
    print(first != list(shuffled), len(shuffled))
    a, b, c = data.random_split(range(10), [0.5, 0.3, 0.2], generator=torch.Generator().manual_seed(42))
    print(len(a), len(b), len(c), sorted([*a, *b, *c]), type(a).__name__)
    print([len(p) for p in data.random_split(range(11), [0.5, 0.5])], [len(p) for p in data.random_split(range(10), [3, 7])])
    from torch.utils.data._utils.collate import collate, default_collate_fn_map

    class Mine:
        def __init__(self, v):
            self.v = v

    def mine(batch, *, collate_fn_map=None):
        return [m.v for m in batch]

    print(
        collate(
            [{"a": Mine(1), "b": torch.tensor(2)}, {"a": Mine(3), "b": torch.tensor(4)}],
            collate_fn_map={**default_collate_fn_map, Mine: mine},
        )
    )
    print(default_collate([("x", 1, 2.5, np.float32(3)), ("y", 2, 3.5, np.float32(4))]))
    print(default_collate([{"A": 0, "B": [1, 2]}, {"A": 100, "B": [3, 4]}]))
    try:
        default_collate([object(), object()])
    except TypeError as e:
        print("TypeError", "object" in str(e))
    loader = DataLoader(TensorDataset(torch.arange(10.0).view(5, 2), torch.arange(5)), batch_size=2, drop_last=True)
    print(
        len(loader),
        loader.batch_size,
        loader.drop_last,
        type(loader.sampler).__name__,
        type(loader.batch_sampler).__name__,
        loader.num_workers,
        loader.pin_memory,
        loader.prefetch_factor,
        loader.timeout,
    )
    for wrong in (
        dict(num_workers=-1),
        dict(batch_size=2, batch_sampler=[[0]]),
        dict(sampler=[0], shuffle=True),
        dict(prefetch_factor=2),
        dict(persistent_workers=True),
        dict(timeout=-1),
        dict(batch_size=None, drop_last=True),
    ):
        try:
            DataLoader(range(4), **wrong)
            print(wrong, "accepted")
        except ValueError as e:
            print(wrong, "ValueError")

    class Broken(Dataset):
        def __len__(self):
            return 4

        def __getitem__(self, i):
            if i == 2:
                raise KeyError(f"no {i}")
            return i

    try:
        for b in DataLoader(Broken(), num_workers=2, multiprocessing_context="fork"):
            print(b)
    except KeyError as e:
        print("KeyError", "worker process 0" in str(e), "no 2" in str(e))


if __name__ == "__main__":
    main()
