"""Training steps on the CPU, forward, backward and optimizer, ours beside torch's."""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import os
from collections.abc import Callable
from typing import Any

import numpy as np

from bench.cpu.apart import paired
from bench.cpu.timing import line


def lenet(t: Any) -> Any:
    """LeNet for 28 x 28 images, from the given library."""
    nn = t.nn
    return nn.Sequential(
        nn.Conv2d(1, 6, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        nn.Linear(256, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10),
    )  # fmt: skip


def mlp(t: Any) -> Any:
    """784-512-512-10, from the given library."""
    nn = t.nn
    return nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))


def gpt(t: Any) -> Any:
    """A decoder of 4 blocks, 128 wide, 4 heads, 65 characters, from the given library."""
    nn, functional = t.nn, t.nn.functional

    class Block(nn.Module):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(128), nn.LayerNorm(128)
            self.qkv, self.out = nn.Linear(128, 384), nn.Linear(128, 128)
            self.mlp = nn.Sequential(nn.Linear(128, 512), nn.GELU(), nn.Linear(512, 128))

        def forward(self, x: Any) -> Any:
            n, tokens, width = x.shape
            q, k, v = (h.view(n, tokens, 4, 32).transpose(1, 2) for h in self.qkv(self.norm1(x)).split(width, dim=2))
            y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(y.transpose(1, 2).reshape(n, tokens, width))
            return x + self.mlp(self.norm2(x))

    class GPT(nn.Module):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.tokens, self.places = nn.Embedding(65, 128), nn.Embedding(128, 128)
            self.blocks = nn.Sequential(*[Block() for _ in range(4)])
            self.norm, self.head = nn.LayerNorm(128), nn.Linear(128, 65, bias=False)

        def forward(self, ids: Any) -> Any:
            x = self.tokens(ids) + self.places(t.arange(ids.shape[1]))
            return self.head(self.norm(self.blocks(x))).flatten(0, 1)

    return GPT()


def resnet18(t: Any) -> Any:
    """ResNet-18 with a first convolution for images of 32 x 32, from the given library."""
    nn = t.nn

    class Block(nn.Module):  # type: ignore[misc,name-defined]
        def __init__(self, channels: int, width: int, stride: int) -> None:
            super().__init__()
            self.conv1, self.bn1 = nn.Conv2d(channels, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width)
            self.conv2, self.bn2 = nn.Conv2d(width, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width)
            self.relu, self.straight = nn.ReLU(inplace=True), nn.Identity()
            if stride != 1:
                self.straight = nn.Sequential(nn.Conv2d(channels, width, 1, stride, bias=False), nn.BatchNorm2d(width))

        def forward(self, x: Any) -> Any:
            y = self.relu(self.bn1(self.conv1(x)))
            return self.relu(self.bn2(self.conv2(y)) + self.straight(x))

    sizes = ((64, 64, 1), (64, 64, 1), (64, 128, 2), (128, 128, 1), (128, 256, 2), (256, 256, 1), (256, 512, 2), (512, 512, 1))
    return nn.Sequential(
        nn.Conv2d(3, 64, 3, padding=1, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True), *[Block(*s) for s in sizes],
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 10),
    )  # fmt: skip


def lstm(t: Any) -> Any:
    """Two LSTM layers of 256 over a text of 65 characters, from the given library."""
    nn = t.nn

    class Text(nn.Module):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.tokens, self.rnn, self.head = nn.Embedding(65, 256), nn.LSTM(256, 256, 2, batch_first=True), nn.Linear(256, 65)

        def forward(self, ids: Any) -> Any:
            return self.head(self.rnn(self.tokens(ids))[0]).flatten(0, 1)

    return Text()


def step(t: Any, make: Any, shape: tuple[int, ...], optimizer: str) -> Any:
    """A closure that does one training step of a model built from library `t`."""
    rng = np.random.default_rng(0)
    model, loss_of = make(t), t.nn.CrossEntropyLoss()
    text = len(shape) == 2 and shape[1] in (64, 128)  # of characters; anything else is images
    x = t.from_numpy(rng.integers(0, 65, shape) if text else rng.standard_normal(shape).astype(np.float32))
    labels = t.from_numpy(rng.integers(0, 65, shape).reshape(-1) if text else rng.integers(0, 10, shape[0]))
    opt = t.optim.SGD(model.parameters(), lr=0.01, momentum=0.9) if optimizer == "SGD" else t.optim.Adam(model.parameters(), lr=1e-3)

    def run() -> None:
        opt.zero_grad()
        loss = loss_of(model(x), labels)
        loss.backward()
        opt.step()

    return run


STEPS = (
    ("LeNet 28x28, 64 images, SGD with momentum", lenet, (64, 1, 28, 28), "SGD"),
    ("LeNet 28x28, 64 images, Adam", lenet, (64, 1, 28, 28), "Adam"),
    ("MLP 784-512-512-10, 64 rows, SGD with momentum", mlp, (64, 784), "SGD"),
    ("MLP 784-512-512-10, 64 rows, Adam", mlp, (64, 784), "Adam"),
    ("GPT 4x128, 8 texts of 128, Adam", gpt, (8, 128), "Adam"),
    ("LSTM 2x256, 32 texts of 64, Adam", lstm, (32, 64), "Adam"),
    ("ResNet-18 32x32, 16 images, SGD with momentum", resnet18, (16, 3, 32, 32), "SGD"),
)


def timed(library: str, threads: int, label: str) -> Callable[[], None]:
    """A step of the list, of the library of that name."""
    t = importlib.import_module(library)
    t.set_num_threads(threads)
    return step(t, *next(row[1:] for row in STEPS if row[0] == label))  # type: ignore[no-any-return]


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench train", description=__doc__)
    parser.add_argument("--only", nargs="+", metavar="WORD", help="steps whose line has one of these words in it: GPT, LSTM, ...")
    parser.add_argument("--seconds", type=float, default=6.0, help="how long each pair is timed, about (default: %(default)s)")
    given = parser.parse_args(argv or [])
    threads = int(os.environ["OPENBLAS_NUM_THREADS"])
    torch = importlib.util.find_spec("torch") is not None
    print(f"one training step (forward, backward, optimizer), float32, {threads} thread{'s' * (threads != 1)} (--threads N)")
    for label, *_ in STEPS:
        if given.only and not any(w.lower() in label.lower() for w in given.only):
            continue
        peer = ("torch", threads, label) if torch else None
        print(line(label, paired(timed, ("tritensor", threads, label), peer, given.seconds), 1e3, "ms"), flush=True)
