"""Datasets and samplers: weights against imbalance, batches of like length, k folds, an iterable stream, a custom collate."""

import numpy as np
import torch
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import (
    BatchSampler,
    ConcatDataset,
    DataLoader,
    Dataset,
    IterableDataset,
    Sampler,
    SequentialSampler,
    Subset,
    SubsetRandomSampler,
    TensorDataset,
    WeightedRandomSampler,
)


class Words(Dataset):
    def __init__(self, lengths):
        self.lengths = lengths

    def __len__(self):
        return len(self.lengths)

    def __getitem__(self, index):
        return torch.full((self.lengths[index],), index), index % 2


class BucketSampler(Sampler):
    def __init__(self, lengths, size):
        self.batches = np.array_split(np.argsort(lengths, kind="stable"), -(-len(lengths) // size))

    def __iter__(self):
        return iter([b.tolist() for b in self.batches])

    def __len__(self):
        return len(self.batches)


def collate(batch):
    words, labels = zip(*batch)
    return pad_sequence(words, batch_first=True, padding_value=-1), torch.tensor(labels), torch.tensor([len(w) for w in words])


class Stream(IterableDataset):
    def __iter__(self):
        for i in range(5):
            yield {"number": i, "square": torch.tensor(float(i * i))}


data = Words([3, 1, 4, 1, 5, 2, 6, 5])
for x, y, n in DataLoader(data, batch_sampler=BucketSampler(data.lengths, 3), collate_fn=collate):
    print(tuple(x.shape), y.tolist(), n.tolist())
labels = torch.tensor([0] * 90 + [1] * 10)
weights = 1.0 / torch.bincount(labels).float()[labels]
torch.manual_seed(0)
drawn = labels[list(WeightedRandomSampler(weights, num_samples=1000, replacement=True))]
print("balanced:", 0.4 < drawn.float().mean().item() < 0.6)
for batch in DataLoader(Stream(), batch_size=2):
    print(batch["number"].tolist(), batch["square"].tolist())
print(list(BatchSampler(SequentialSampler(range(7)), batch_size=3, drop_last=True)))
both = ConcatDataset([TensorDataset(torch.arange(3)), TensorDataset(torch.arange(10, 14))])
print(len(both), both[4], [x.tolist() for (x,) in DataLoader(both, batch_size=4)])
folds = np.array_split(np.arange(10), 5)
for k, fold in enumerate(folds[:2]):
    train = Subset(range(10), [i for i in range(10) if i not in fold])
    print(k, len(train), sorted(SubsetRandomSampler(fold.tolist())))
