"""Train LeNet on the 1,797 handwritten digits that come with scikit-learn, look at what it misreads, and keep it in a file.

    python examples/train_digits.py                  # the GPU where there is one, else the CPU
    python examples/train_digits.py --device cpu --epochs 5 --seed 1 --out /tmp/digits

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
from tritensor import nn, optim
from tritensor.utils.data import DataLoader, TensorDataset, random_split

try:
    import matplotlib.pyplot as plt
    from sklearn.datasets import load_digits
    from tqdm import tqdm
except ModuleNotFoundError as missing:
    package = str(missing.name).partition(".")[0]
    sys.exit(f"This example needs {package}, which is not installed: pip install tritensor[examples]")

TEST_IMAGES = 360


class LeNet(nn.Module):
    """The convolutional network of every tutorial: 61,706 parameters, images of 1 x 32 x 32, ten classes."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, 5)
        self.conv2 = nn.Conv2d(6, 16, 5)
        self.fc1 = nn.Linear(16 * 5 * 5, 120)
        self.fc2 = nn.Linear(120, 84)
        self.fc3 = nn.Linear(84, 10)

    def forward(self, x: tt.Tensor) -> tt.Tensor:  # x: (n, 1, 32, 32)
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)  # (n, 6, 14, 14)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)  # (n, 16, 5, 5)
        x = x.flatten(1)  # (n, 400)
        x = F.relu(self.fc1(x))
        x = F.relu(self.fc2(x))
        return self.fc3(x)  # (n, 10)


def digits() -> TensorDataset:
    """The digits as (1, 32, 32) images of mean 0 and deviation 1, with their labels."""
    bunch = load_digits()
    at = np.linspace(0, 7, 32)
    lift = np.stack([np.interp(at, np.arange(8), row) for row in np.eye(8)], axis=1)  # (32, 8): linear interpolation
    images = lift @ bunch.images @ lift.T  # (1797, 32, 32)
    images = (images - images.mean()) / images.std()
    return TensorDataset(tt.tensor(images[:, None], dtype=tt.float32), tt.tensor(bunch.target))


def split(dataset: TensorDataset, device: tt.device) -> tuple[TensorDataset, TensorDataset]:
    """Training and test images on the device: the same split for every seed, so that runs can be compared."""
    parts = random_split(dataset, [len(dataset) - TEST_IMAGES, TEST_IMAGES], generator=tt.Generator().manual_seed(0))
    train, test = (TensorDataset(*(t.to(device) for t in dataset[tt.tensor(part.indices)])) for part in parts)
    return train, test


class Run(NamedTuple):
    """What training gives back: the network, the loss of every step, and how long it took."""

    model: LeNet
    losses: list[float]
    seconds: float


def train(data: TensorDataset, *, device: tt.device, epochs: int, batch_size: int, lr: float, seed: int) -> Run:
    """Train a new LeNet. The seed sets the weights, the order of the images and their shifts."""
    tt.manual_seed(seed)
    model = LeNet().to(device)
    loader = DataLoader(data, batch_size=batch_size, shuffle=True)
    optimizer = optim.AdamW(model.parameters(), lr=lr)
    scheduler = optim.lr_scheduler.LinearLR(optimizer, start_factor=1.0, end_factor=0.0, total_iters=epochs * len(loader))

    losses: list[float] = []
    start = time.perf_counter()
    with tqdm(total=epochs * len(data), unit=" images", unit_scale=True) as bar:
        for epoch in range(epochs):
            for images, labels in loader:
                right, down = tt.randint(-2, 3, (2,)).tolist()  # two pixels further on it is the same digit
                images = images.roll((down, right), (2, 3))

                optimizer.zero_grad()
                loss = F.cross_entropy(model(images), labels)
                loss.backward()
                optimizer.step()
                scheduler.step()

                losses.append(loss.item())
                bar.update(len(labels))
                bar.set_description(f"epoch {epoch + 1}/{epochs}, loss {losses[-1]:.4f}", refresh=False)
    return Run(model, losses, time.perf_counter() - start)


def predict(model: nn.Module, data: TensorDataset) -> tt.Tensor:
    """The probability of every class for every image, (n, 10)."""
    model.eval()
    with tt.no_grad():
        return tt.cat([model(images).softmax(1) for images, _ in DataLoader(data, batch_size=120)]).cpu()


def confusion(labels: np.ndarray, guesses: np.ndarray) -> np.ndarray:
    """How often class i (row) was read as class j (column)."""
    counts = np.zeros((10, 10), int)
    np.add.at(counts, (labels, guesses), 1)
    return counts


def draw(path: Path, run: Run, data: TensorDataset, chances: np.ndarray, batch_size: int) -> None:
    """A picture: the loss of every step, and the test images that were hardest to read, misread ones first."""
    images, labels = (t.cpu().numpy() for t in data.tensors)
    guesses = chances.argmax(1)
    right = guesses == labels
    hardest = np.lexsort((chances[np.arange(len(labels)), labels], right))[:8]
    ink, faint, accent = "#1b1f3b", "#c9cdd8", "#d1495b"
    plt.switch_backend("agg")  # a file, no window
    with plt.rc_context({"axes.edgecolor": faint, "text.color": ink, "axes.labelcolor": ink, "xtick.color": ink, "ytick.color": ink}):
        figure = plt.figure(figsize=(11, 4.2), layout="constrained")
        curve, gallery = figure.subfigures(1, 2, width_ratios=(1.2, 1), wspace=0.04)

        axes = curve.subplots()
        window = min(len(run.losses), 25)
        smooth = np.convolve(run.losses, np.ones(window) / window, "valid")
        axes.semilogy(run.losses, color=faint, linewidth=0.8, label=f"each batch of {batch_size}")
        axes.semilogy(np.arange(len(smooth)) + window - 1, smooth, color=accent, linewidth=2, label=f"mean of {window} batches")
        axes.set(xlabel="step", ylabel="cross-entropy", xlim=(0, len(run.losses)))
        axes.set_title(f"LeNet reads {right.mean():.1%} of {len(labels)} unseen digits", loc="left", fontweight="bold")
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False)

        gallery.suptitle(f"The hardest to read ({(~right).sum()} misread)", fontweight="bold", x=0.03, ha="left")
        for i, cell in zip(hardest, gallery.subplots(2, 4).flat, strict=False):
            cell.imshow(images[i, 0], cmap="gray_r")
            cell.set(xticks=[], yticks=[])
            said = f"{labels[i]}, {chances[i, labels[i]]:.0%} sure" if right[i] else f"{labels[i]} read as {guesses[i]}"
            cell.set_title(said, fontsize=9.5, color=ink if right[i] else accent, fontweight="normal" if right[i] else "bold")
        figure.savefig(path, dpi=130)
        plt.close(figure)


def keep(model: LeNet, path: Path, data: TensorDataset, chances: tt.Tensor) -> None:
    """Save the weights, load them into a new network, and make sure that it reads every image as the old one does."""
    tt.save(model.state_dict(), path)
    again = LeNet()
    again.load_state_dict(tt.load(path))
    again.to(data.tensors[0].device)
    if (predict(again, data).argmax(1) != chances.argmax(1)).any():
        raise SystemExit(f"{path}: the reloaded network reads the test images differently")


def options(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda" if tt.cuda.is_available() else "cpu", help="cpu, cuda or cuda:N (default: %(default)s)")
    parser.add_argument("--epochs", type=int, default=20, help="passes over the training images (default: %(default)s)")
    parser.add_argument("--batch-size", type=int, default=32, help="images in a step (default: %(default)s)")
    parser.add_argument("--lr", type=float, default=2e-3, help="learning rate at the start (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="the same seed gives the same numbers (default: %(default)s)")
    parser.add_argument("--out", type=Path, default=Path("out"), help="folder for the picture and the checkpoint (default: %(default)s)")
    found = parser.parse_args(argv)
    if found.epochs < 1 or found.batch_size < 1:
        parser.error("--epochs and --batch-size are at least 1")
    return found


def main(argv: list[str] | None = None) -> float:
    """Train, test, draw, save; returns the test accuracy."""
    args = options(argv)
    device = tt.device(args.device)
    args.out.mkdir(parents=True, exist_ok=True)
    training, test = split(digits(), device)
    print(f"LeNet on {device}: {len(training)} training images, {len(test)} test images, seed {args.seed}")

    run = train(training, device=device, epochs=args.epochs, batch_size=args.batch_size, lr=args.lr, seed=args.seed)
    chances = predict(run.model, test)
    guesses, labels = chances.argmax(1), test.tensors[1].cpu()
    accuracy = (guesses == labels).float().mean().item()
    print(f"trained in {run.seconds:.1f} s, {args.epochs * len(training) / run.seconds:,.0f} images/s, last loss {run.losses[-1]:.4f}")
    print(f"test accuracy {accuracy:.4f}: {len(labels) - round(accuracy * len(labels))} of {len(labels)} misread")
    print("\nconfusion matrix (row: the digit, column: what was read)\n")
    print("      " + "".join(f"{j:4d}" for j in range(10)))
    for i, row in enumerate(confusion(labels.numpy(), guesses.numpy())):
        print(f"  {i:2d}  " + "".join(f"{n:4d}" if n else "   ." for n in row))

    picture, checkpoint = args.out / "train_digits.png", args.out / "lenet.safetensors"
    draw(picture, run, test, chances.numpy(), args.batch_size)
    keep(run.model, checkpoint, test, chances)
    print(f"\npicture     {picture.resolve()}\ncheckpoint  {checkpoint.resolve()} (reloaded: the same {len(labels)} answers)")
    return accuracy


if __name__ == "__main__":
    main()
