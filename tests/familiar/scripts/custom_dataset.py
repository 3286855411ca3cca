"""A Dataset of one's own with transforms, samplers, Subset, ConcatDataset, an IterableDataset, and what the DataLoader makes of dicts."""

import numpy as np
import torch
from torch.utils.data import ConcatDataset, DataLoader, Dataset, IterableDataset, Subset
from torch.utils.data.sampler import BatchSampler, Sampler, SequentialSampler


class Landmarks(Dataset):
    """Points and their label."""

    def __init__(self, n, transform=None):
        self.points = np.arange(n * 6, dtype=np.float64).reshape(n, 3, 2)
        self.transform = transform

    def __len__(self):
        return len(self.points)

    def __getitem__(self, idx):
        if torch.is_tensor(idx):
            idx = idx.tolist()
        sample = {"points": self.points[idx], "label": idx % 2, "name": f"sample{idx}"}
        return self.transform(sample) if self.transform else sample


class Rescale(object):
    def __init__(self, factor):
        assert isinstance(factor, (int, float))
        self.factor = factor

    def __call__(self, sample):
        return {**sample, "points": sample["points"] * self.factor}


class ToTensor(object):
    def __call__(self, sample):
        return {**sample, "points": torch.from_numpy(sample["points"]).permute(1, 0).contiguous()}


class Compose:
    def __init__(self, transforms):
        self.transforms = transforms

    def __call__(self, x):
        for t in self.transforms:
            x = t(x)
        return x


class EveryOther(Sampler):
    def __init__(self, data_source):
        self.data_source = data_source

    def __iter__(self):
        return iter(range(0, len(self.data_source), 2))

    def __len__(self):
        return (len(self.data_source) + 1) // 2


class Countdown(IterableDataset):
    def __iter__(self):
        yield from (torch.full((2,), float(i)) for i in range(5, 0, -1))


dataset = Landmarks(8, transform=Compose([Rescale(0.5), ToTensor()]))
for i, batch in enumerate(DataLoader(dataset, batch_size=3, shuffle=False, num_workers=0)):
    print(i, batch["points"].size(), batch["points"].dtype, batch["label"], batch["name"])
for batch in DataLoader(Landmarks(7), sampler=EveryOther(range(7)), batch_size=2):
    print(batch["label"].tolist(), batch["points"].sum().item())
both = ConcatDataset([Subset(dataset, [1, 3]), Landmarks(2, ToTensor())])
print(len(both), [s["points"].shape[0] for s in both], both[3]["name"])
print(list(BatchSampler(SequentialSampler(range(5)), batch_size=2, drop_last=True)))
for batch in DataLoader(Countdown(), batch_size=2):
    print(batch)
