"""Train ResNet-18 on real handwritten digits, or on a folder of images of your own, one folder for each class.

    python examples/train_resnet.py                          # the 1,797 digits that come with scikit-learn
    python examples/train_resnet.py --images photos/         # photos/cat/*.jpg, photos/dog/*.png, ...

If you know PyTorch you know every line: only the import is another.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np

import tritensor as tt
import tritensor.nn.functional as F
from tritensor import models, nn, optim
from tritensor.utils.data import DataLoader, TensorDataset

try:
    import matplotlib.pyplot as plt
    from PIL import Image
    from sklearn.datasets import load_digits
    from tqdm import tqdm
except ModuleNotFoundError as missing:
    package = {"PIL": "pillow"}.get(str(missing.name), str(missing.name).partition(".")[0])
    sys.exit(f"This example needs {package}, which is not installed: pip install tritensor[examples]")

ENDINGS = {".bmp", ".gif", ".jpeg", ".jpg", ".png", ".ppm", ".webp"}


class Images(NamedTuple):
    """Training and test images (n, 3, size, size) with labels, and the classes' names."""

    train: TensorDataset
    test: TensorDataset
    classes: list[str]


def digits(size: int) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """scikit-learn's digits, 8 x 8, enlarged."""
    bunch = load_digits()
    pixels = (bunch.images * (255 / 16)).astype(np.uint8)
    shown = [np.asarray(Image.fromarray(p).resize((size, size), Image.Resampling.BILINEAR).convert("RGB")) for p in pixels]
    return np.stack(shown), bunch.target, [str(i) for i in range(10)]


def folder(path: Path, size: int) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """The images below a folder, scaled to a square; each folder in it is a class."""
    classes = sorted(p.name for p in path.iterdir() if p.is_dir())
    files = [(f, i) for i, name in enumerate(classes) for f in sorted((path / name).rglob("*")) if f.suffix.lower() in ENDINGS]
    if len({i for _, i in files}) < 2:
        sys.exit(f"{path}: expected a folder for each class with images in it, at least two; found {classes or 'no folder'}")
    shown = []
    for file, _ in tqdm(files, unit=" images"):
        with Image.open(file) as image:
            shown.append(np.asarray(image.convert("RGB").resize((size, size), Image.Resampling.BILINEAR)))
    return np.stack(shown), np.array([i for _, i in files]), classes


def prepared(pixels: np.ndarray, labels: np.ndarray, classes: list[str], device: tt.device) -> Images:
    """A fifth of the images is for testing, the same for every seed; all have mean 0 and deviation 1 of the training images."""
    order = np.random.default_rng(0).permutation(len(pixels))
    cut = len(order) // 5
    x = pixels.transpose(0, 3, 1, 2).astype(np.float32) / 255  # (n, 3, size, size)
    mean, deviation = x[order[cut:]].mean((0, 2, 3), keepdims=True), x[order[cut:]].std((0, 2, 3), keepdims=True)
    x = (x - mean) / (deviation + 1e-6)
    parts = [TensorDataset(tt.tensor(x[part]).to(device), tt.tensor(labels[part]).to(device)) for part in (order[cut:], order[:cut])]
    return Images(*parts, classes)


def shifted(images: tt.Tensor) -> tt.Tensor:
    """Images moved by up to two pixels: they show what they showed."""
    right, down = tt.randint(0, 5, (2,)).tolist()
    return F.pad(images, (2, 2, 2, 2))[:, :, down : down + images.shape[2], right : right + images.shape[3]]


class Run(NamedTuple):
    """What training gives back: the loss of every step, the test accuracy after every epoch, and how long it took."""

    losses: list[float]
    accuracies: list[float]
    seconds: float


def train(model: nn.Module, data: Images, *, epochs: int, batch_size: int, lr: float) -> Run:
    """SGD with momentum and a learning rate that goes up once and down again."""
    loader = DataLoader(data.train, batch_size=batch_size, shuffle=True)
    optimizer = optim.SGD(model.parameters(), lr=lr, momentum=0.9, weight_decay=5e-4, nesterov=True)
    scheduler = optim.lr_scheduler.OneCycleLR(optimizer, max_lr=lr, total_steps=epochs * len(loader))
    losses: list[float] = []
    accuracies: list[float] = []
    start = time.perf_counter()
    with tqdm(total=epochs * len(data.train), unit=" images", unit_scale=True) as bar:
        for epoch in range(epochs):
            model.train()
            for images, labels in loader:
                loss = F.cross_entropy(model(shifted(images)), labels, label_smoothing=0.1)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                scheduler.step()
                losses.append(loss.item())
                bar.update(len(labels))
                bar.set_description(f"epoch {epoch + 1}/{epochs}, loss {losses[-1]:.4f}", refresh=False)
            accuracies.append(accuracy(model, data.test, batch_size))
            bar.write(f"epoch {epoch + 1}: test accuracy {accuracies[-1]:.4f}")
    return Run(losses, accuracies, time.perf_counter() - start)


@tt.no_grad()
def accuracy(model: nn.Module, data: TensorDataset, batch_size: int) -> float:
    """The share of images that are named right."""
    model.eval()
    right = sum((model(images).argmax(1) == labels).sum().item() for images, labels in DataLoader(data, batch_size=batch_size))
    return right / len(data)


def draw(path: Path, run: Run, name: str) -> None:
    """A picture: the loss of every step, and the accuracy after every epoch."""
    ink, faint, accent = "#1b1f3b", "#c9cdd8", "#d1495b"
    plt.switch_backend("agg")  # a file, no window
    with plt.rc_context({"axes.edgecolor": faint, "text.color": ink, "axes.labelcolor": ink, "xtick.color": ink, "ytick.color": ink}):
        figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
        left.plot(run.losses, color=accent, linewidth=1)
        left.set(xlabel="step", ylabel="cross-entropy, smoothed labels")
        right.plot(range(1, len(run.accuracies) + 1), run.accuracies, color=accent, marker="o")
        right.set(xlabel="epoch", ylabel="test accuracy")
        left.set_title(f"{name}: {run.accuracies[-1]:.1%} of unseen images", loc="left", fontweight="bold")
        for axes in (left, right):
            axes.spines[["top", "right"]].set_visible(False)
        figure.savefig(path, dpi=130)
        plt.close(figure)


def options(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda" if tt.cuda.is_available() else "cpu", help="cpu, cuda or cuda:N (default: %(default)s)")
    parser.add_argument("--images", type=Path, help="a folder with a folder of images for each class (default: handwritten digits)")
    parser.add_argument("--size", type=int, default=32, help="pixels of an image's side (default: %(default)s)")
    parser.add_argument("--epochs", type=int, default=4, help="passes over the training images (default: %(default)s)")
    parser.add_argument("--batch-size", type=int, default=64, help="images in a step (default: %(default)s)")
    parser.add_argument("--lr", type=float, default=0.05, help="highest learning rate (default: %(default)s)")
    parser.add_argument("--layers", type=int, default=18, choices=(18, 34, 50), help="which ResNet (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="the same seed gives the same numbers (default: %(default)s)")
    parser.add_argument("--out", type=Path, default=Path("out"), help="folder for the picture and the checkpoint (default: %(default)s)")
    found = parser.parse_args(argv)
    if found.epochs < 1 or found.batch_size < 2 or found.size < 8:
        parser.error("--epochs is at least 1, --batch-size at least 2, --size at least 8")
    if found.images is not None and not found.images.is_dir():
        parser.error(f"--images {found.images} is no folder")
    return found


def main(argv: list[str] | None = None) -> float:
    """Read, train, test, draw, save; returns the test accuracy."""
    args = options(argv)
    device = tt.device(args.device)
    args.out.mkdir(parents=True, exist_ok=True)
    data = prepared(*(folder(args.images, args.size) if args.images else digits(args.size)), device)
    tt.manual_seed(args.seed)
    name = f"ResNet-{args.layers}"
    model = getattr(models, f"resnet{args.layers}")(len(data.classes), small_images=args.size <= 64).to(device)
    print(
        f"{name} on {device}: {len(data.train)} training images, {len(data.test)} test images, {len(data.classes)} classes, seed {args.seed}"
    )

    run = train(model, data, epochs=args.epochs, batch_size=args.batch_size, lr=args.lr)
    print(
        f"trained in {run.seconds:.1f} s, {args.epochs * len(data.train) / run.seconds:,.0f} images/s; test accuracy {run.accuracies[-1]:.4f}"
    )
    picture, checkpoint = args.out / "train_resnet.png", args.out / "resnet.safetensors"
    draw(picture, run, name)
    tt.save(model.state_dict(), checkpoint)
    print(f"\npicture     {picture.resolve()}\ncheckpoint  {checkpoint.resolve()}")
    return run.accuracies[-1]


if __name__ == "__main__":
    main()
