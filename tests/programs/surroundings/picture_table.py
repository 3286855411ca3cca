"""A dataset of one's own: a folder of pictures and a table of landmarks, callable transforms, a loader by workers."""

import os
import tempfile

import numpy as np
import pandas as pd
import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset
from torchvision import transforms, utils


class Landmarks(Dataset):
    """Pictures with points."""

    def __init__(self, csv_file, root_dir, transform=None):
        self.frame = pd.read_csv(csv_file)
        self.root_dir = root_dir
        self.transform = transform

    def __len__(self):
        return len(self.frame)

    def __getitem__(self, idx):
        if torch.is_tensor(idx):
            idx = idx.tolist()
        name = os.path.join(self.root_dir, self.frame.iloc[idx, 0])
        image = np.array(Image.open(name).convert("RGB"))
        points = self.frame.iloc[idx, 1:]
        points = np.array(points, dtype=float).reshape(-1, 2)
        sample = {"image": image, "landmarks": points}
        if self.transform:
            sample = self.transform(sample)
        return sample


class Rescale(object):
    def __init__(self, output_size):
        assert isinstance(output_size, (int, tuple))
        self.output_size = output_size

    def __call__(self, sample):
        image, points = sample["image"], sample["landmarks"]
        h, w = image.shape[:2]
        if isinstance(self.output_size, int):
            if h > w:
                new_h, new_w = self.output_size * h / w, self.output_size
            else:
                new_h, new_w = self.output_size, self.output_size * w / h
        else:
            new_h, new_w = self.output_size
        new_h, new_w = int(new_h), int(new_w)
        img = np.array(Image.fromarray(image).resize((new_w, new_h)))
        return {"image": img, "landmarks": points * [new_w / w, new_h / h]}


class RandomCrop(object):
    def __init__(self, size):
        self.output_size = (size, size)

    def __call__(self, sample):
        image, points = sample["image"], sample["landmarks"]
        h, w = image.shape[:2]
        new_h, new_w = self.output_size
        top = torch.randint(0, h - new_h + 1, (1,)).item()
        left = torch.randint(0, w - new_w + 1, (1,)).item()
        image = image[top : top + new_h, left : left + new_w]
        return {"image": image, "landmarks": points - [left, top]}


class ToTensor(object):
    def __call__(self, sample):
        image, points = sample["image"], sample["landmarks"]
        return {"image": torch.from_numpy(image.transpose((2, 0, 1))), "landmarks": torch.from_numpy(points)}


class Pairs(Dataset):
    """The quick start's: labels in a table, pictures read as tensors."""

    def __init__(self, annotations_file, img_dir, transform=None, target_transform=None):
        self.img_labels = pd.read_csv(annotations_file, names=["file", "label"])
        self.img_dir, self.transform, self.target_transform = img_dir, transform, target_transform

    def __len__(self):
        return len(self.img_labels)

    def __getitem__(self, idx):
        image = transforms.functional.pil_to_tensor(Image.open(os.path.join(self.img_dir, self.img_labels.iloc[idx, 0])))
        label = self.img_labels.iloc[idx, 1]
        if self.transform:
            image = self.transform(image)
        if self.target_transform:
            label = self.target_transform(label)
        return image, label


def main():
    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as root:
        rows, labels = [], []
        for i in range(8):
            h, w = 20 + i, 26 - i
            Image.fromarray(rng.integers(0, 255, (h, w, 3), dtype=np.uint8)).save(os.path.join(root, f"p{i}.png"))
            rows.append([f"p{i}.png", *rng.uniform(2, 15, 6).round(1)])
            labels.append([f"p{i}.png", i % 3])
        pd.DataFrame(rows, columns=["image_name", *[f"part_{k}_{a}" for k in range(3) for a in "xy"]]).to_csv(
            os.path.join(root, "f.csv"), index=False
        )
        pd.DataFrame(labels).to_csv(os.path.join(root, "l.csv"), index=False, header=False)
        data = Landmarks(os.path.join(root, "f.csv"), root)
        for i, sample in enumerate(data):
            print(i, sample["image"].shape, sample["landmarks"].shape, sample["landmarks"].sum().round(3))
            if i == 2:
                break
        steps = Landmarks(os.path.join(root, "f.csv"), root, transforms.Compose([Rescale((16, 16)), RandomCrop(16), ToTensor()]))
        for i_batch, batch in enumerate(DataLoader(steps, batch_size=3, shuffle=False, num_workers=2, multiprocessing_context="fork")):
            print(
                i_batch,
                batch["image"].size(),
                batch["image"].dtype,
                batch["landmarks"].size(),
                batch["landmarks"].dtype,
                round(batch["landmarks"].mean().item(), 4),
            )
        grid = utils.make_grid(batch["image"])
        print(grid.shape, grid.dtype, grid.float().mean())
        batch_transform = transforms.Compose(
            [transforms.ConvertImageDtype(torch.float32), transforms.Resize((12, 12)), transforms.CenterCrop(8)]
        )
        pairs = Pairs(os.path.join(root, "l.csv"), root, batch_transform, lambda y: torch.zeros(3).scatter_(0, torch.tensor(y), value=1))
        images, y = next(iter(DataLoader(pairs, batch_size=8, num_workers=1, multiprocessing_context="fork")))
        print(images.shape, images.mean(), y.sum(0), y.argmax(1))
        image, label = pairs[0]
        print(label, image.max())
        labels_only = Pairs(os.path.join(root, "l.csv"), root, batch_transform)
        print(type(labels_only[0][1]).__name__, next(iter(DataLoader(labels_only, batch_size=4)))[1])
        try:
            next(iter(DataLoader(Pairs(os.path.join(root, "l.csv"), root), batch_size=4)))
        except RuntimeError:
            print("samples of other shapes are refused")


if __name__ == "__main__":
    main()
