"""Transfer learning's shape: ImageFolder of two classes, a frozen ResNet with a new head, best weights kept in a file."""

import os
import time
from tempfile import TemporaryDirectory

import numpy as np
import torch
import torch.backends.cudnn as cudnn
import torch.nn as nn
import torch.optim as optim
import torchvision
from PIL import Image
from torch.optim import lr_scheduler
from torchvision import datasets, models, transforms

cudnn.benchmark = True


def fill(model, seed=0):
    rng = np.random.default_rng(seed)
    with torch.no_grad():
        for p in model.parameters():
            fan = p[0].numel() if p.dim() > 1 else p.numel()
            p.copy_(torch.from_numpy(rng.standard_normal(tuple(p.shape)) / np.sqrt(fan)))
    return model


def pictures(root):
    rng = np.random.default_rng(0)
    for part, n in (("train", 8), ("val", 4)):
        for k, kind in enumerate(("ants", "bees")):
            folder = os.path.join(root, part, kind)
            os.makedirs(folder)
            for i in range(n):
                image = rng.integers(0, 120, (40, 36, 3), dtype=np.uint8)
                image[..., k] += 100
                Image.fromarray(image).save(os.path.join(folder, f"{i}.png"))


data_transforms = {
    "train": transforms.Compose(
        [
            transforms.Resize(36),
            transforms.CenterCrop(32),
            transforms.ToTensor(),
            transforms.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]),
        ]
    ),
    "val": transforms.Compose(
        [
            transforms.Resize(36),
            transforms.CenterCrop(32),
            transforms.ToTensor(),
            transforms.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]),
        ]
    ),
}


def train_model(model, criterion, optimizer, scheduler, loaders, sizes, device, num_epochs=25):
    since = time.time()
    with TemporaryDirectory() as tempdir:
        best_path = os.path.join(tempdir, "best_model_params.pt")
        torch.save(model.state_dict(), best_path)
        best_acc = 0.0
        for epoch in range(num_epochs):
            print(f"Epoch {epoch}/{num_epochs - 1}")
            for phase in ["train", "val"]:
                if phase == "train":
                    model.train()
                else:
                    model.eval()
                running_loss, running_corrects = 0.0, 0
                for inputs, labels in loaders[phase]:
                    inputs = inputs.to(device)
                    labels = labels.to(device)
                    optimizer.zero_grad()
                    with torch.set_grad_enabled(phase == "train"):
                        outputs = model(inputs)
                        _, preds = torch.max(outputs, 1)
                        loss = criterion(outputs, labels)
                        if phase == "train":
                            loss.backward()
                            optimizer.step()
                    running_loss += loss.item() * inputs.size(0)
                    running_corrects += torch.sum(preds == labels.data)
                if phase == "train":
                    scheduler.step()
                epoch_loss = running_loss / sizes[phase]
                epoch_acc = running_corrects.double() / sizes[phase]
                print(f"{phase} Loss: {epoch_loss:.4f} Acc: {epoch_acc:.4f}")
                if phase == "val" and epoch_acc > best_acc:
                    best_acc = epoch_acc
                    torch.save(model.state_dict(), best_path)
        elapsed = time.time() - since
        assert elapsed // 60 < 5
        print(f"Best val Acc: {best_acc:4f}")
        model.load_state_dict(torch.load(best_path, weights_only=True))
    return model


def main():
    with TemporaryDirectory() as root:
        pictures(root)
        image_datasets = {x: datasets.ImageFolder(os.path.join(root, x), data_transforms[x]) for x in ["train", "val"]}
        loaders = {
            x: torch.utils.data.DataLoader(image_datasets[x], batch_size=8, shuffle=False, num_workers=2, multiprocessing_context="fork")
            for x in ["train", "val"]
        }
        sizes = {x: len(image_datasets[x]) for x in ["train", "val"]}
        print(
            image_datasets["train"].classes,
            image_datasets["train"].class_to_idx,
            sizes,
            image_datasets["val"].imgs[-1][0][-10:],
            image_datasets["val"].targets,
        )
        print(str(image_datasets["val"]).replace(root, "ROOT"))
        device = torch.device("cpu")
        inputs, classes = next(iter(loaders["train"]))
        out = torchvision.utils.make_grid(inputs).numpy().transpose((1, 2, 0))
        print(out.shape, round(float(out.mean()), 4))
        model_conv = fill(models.resnet18(weights=None))
        for param in model_conv.parameters():
            param.requires_grad = False
        num_ftrs = model_conv.fc.in_features
        model_conv.fc = fill(nn.Linear(num_ftrs, 2))
        model_conv = model_conv.to(device)
        criterion = nn.CrossEntropyLoss()
        optimizer_conv = optim.SGD(model_conv.fc.parameters(), lr=0.001, momentum=0.9)
        exp_lr_scheduler = lr_scheduler.StepLR(optimizer_conv, step_size=7, gamma=0.1)
        model_conv = train_model(model_conv, criterion, optimizer_conv, exp_lr_scheduler, loaders, sizes, device, num_epochs=1)
        print(sum(p.numel() for p in model_conv.parameters() if p.requires_grad), sum(p.numel() for p in model_conv.parameters()))
        print(model_conv.layer1[0])
        print(torchvision.__version__.split("+")[0].count("."))


if __name__ == "__main__":
    main()
