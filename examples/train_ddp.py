"""Train on several ranks, and see that it is the same as one process with the big batch: digits, then a small GPT.

    python -m tritensor.launch -n 2 examples/train_ddp.py          # on the CPU, over MPI: pip install 'tritensor[mpi,examples]'
    python -m tritensor.launch -n 4 --max-restarts 1 examples/train_ddp.py --only gpt
    mpiexec -n 2 python examples/train_ddp.py --backend nccl       # a GPU for each rank

If you know PyTorch you know every line: only the import is another. After a restart by the launcher each run goes on from its last checkpoint.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import tritensor as tt
import tritensor.distributed as dist
import tritensor.nn.functional as F
from tritensor import nn, optim
from tritensor.models import GPT2, GPT2Config
from tritensor.nn.parallel import DistributedDataParallel
from tritensor.utils.data import DataLoader, DistributedSampler, TensorDataset

try:
    from sklearn.datasets import load_digits
except ModuleNotFoundError as missing:
    package = str(missing.name).partition(".")[0]
    sys.exit(f"This example needs {package}, which is not installed: pip install tritensor[examples]")

SAVE_EVERY = 10  # steps


class Digits:
    """1,797 handwritten digits of 8 x 8 and a convolutional network for them."""

    batch, rate = 128, 2e-3

    def dataset(self) -> TensorDataset:
        bunch = load_digits()
        images = (bunch.images - bunch.images.mean()) / bunch.images.std()
        return TensorDataset(tt.tensor(images[:, None], dtype=tt.float32), tt.tensor(bunch.target))

    def model(self) -> nn.Module:
        return nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.Flatten(),
            nn.Linear(32 * 4 * 4, 64), nn.ReLU(), nn.Linear(64, 10),
        )  # fmt: skip

    def loss(self, model: nn.Module, x: tt.Tensor, y: tt.Tensor) -> tt.Tensor:
        return F.cross_entropy(model(x), y)


class Gpt:
    """Characters of this file, and a GPT of two layers that predicts the next one."""

    batch, rate, context = 16, 1e-3, 32

    def dataset(self) -> TensorDataset:
        text = Path(__file__).read_text().encode("ascii")
        codes = tt.tensor(np.frombuffer(text, np.uint8).astype(np.int64))
        rows = (len(codes) - 1) // self.context
        x = codes[: rows * self.context].reshape(rows, self.context)
        return TensorDataset(x, codes[1 : rows * self.context + 1].reshape(rows, self.context))

    def model(self) -> nn.Module:
        return GPT2(GPT2Config(vocab_size=128, n_positions=self.context, n_embd=64, n_layer=2, n_head=4, dropout=0.0))

    def loss(self, model: nn.Module, x: tt.Tensor, y: tt.Tensor) -> tt.Tensor:
        return F.cross_entropy(model(x).flatten(0, 1), y.flatten())


def batches(dataset: TensorDataset, size: int, ranks: int, rank: int) -> Iterator[tuple[tt.Tensor, tt.Tensor]]:
    """This rank's part of every batch, epoch after epoch. DistributedSampler deals the same order to the ranks in turn, so that all parts of a
    batch together are one process' batch."""
    sampler = DistributedSampler(dataset, ranks, rank, seed=0, drop_last=True)
    loader = DataLoader(dataset, size // ranks, sampler=sampler, drop_last=True)
    epoch = 0
    while True:
        sampler.set_epoch(epoch)
        yield from loader
        epoch += 1


def train(
    task: Digits | Gpt, steps: int, ranks: int, rank: int, device: tt.device, checkpoint: Path | None
) -> tuple[list[float], nn.Module]:
    """The loss of every step, and the model. On several ranks gradients are averaged while backward runs."""
    tt.manual_seed(0)
    model: nn.Module = task.model().to(device)
    if ranks > 1:
        model = DistributedDataParallel(model, bucket_cap_mb=0.1)  # the model is small; 25 is the default
    optimizer = optim.AdamW(model.parameters(), lr=task.rate)
    losses: list[float] = []
    if checkpoint is not None and checkpoint.exists() and os.environ.get("TORCHELASTIC_RESTART_COUNT", "0") != "0":
        kept = tt.load(checkpoint)
        model.load_state_dict(kept["model"])
        optimizer.load_state_dict(kept["optimizer"])
        losses = kept["losses"]
    data = batches(task.dataset(), task.batch, ranks, rank)
    for _ in losses:
        next(data)
    while len(losses) < steps:
        x, y = (t.to(device) for t in next(data))
        optimizer.zero_grad()
        loss = task.loss(model, x, y)
        loss.backward()
        optimizer.step()
        mean = loss.detach()
        if ranks > 1:
            dist.all_reduce(mean, dist.ReduceOp.AVG)
        losses.append(mean.item())
        if checkpoint is not None and rank == 0 and len(losses) % SAVE_EVERY == 0:
            checkpoint.parent.mkdir(parents=True, exist_ok=True)
            tt.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "losses": losses}, checkpoint)
    return losses, model


def show_overlap(model: nn.Module) -> None:
    """When the gradients of each bucket were there, and when they were averaged: a bucket's average begins before the next is complete."""
    if not isinstance(model, DistributedDataParallel):
        return
    end = max(t.averaged for t in model.times())
    print("last backward, from its first gradient on:   - gradients come   # they are averaged")
    for t in model.times():
        ready, averaged = round(40 * t.ready / end), round(40 * t.averaged / end)
        bar = "-" * ready + "#" * max(averaged - ready, 1)
        print(f"  bucket {t.bucket}  {t.nbytes / 1e6:6.2f} MB  {bar:<41} {1e3 * t.averaged:6.2f} ms")


def compare(name: str, task: Digits | Gpt, args: argparse.Namespace, device: tt.device) -> float:
    """Train on all ranks and, on rank 0, alone with the big batch; print both and return the largest difference of their losses."""
    rank, ranks = dist.get_rank(), dist.get_world_size()
    begun = time.perf_counter()
    together, model = train(task, args.steps, ranks, rank, device, args.out / f"ddp_{name}.pt")
    took = time.perf_counter() - begun
    worst = 0.0
    if rank == 0:
        begun = time.perf_counter()
        alone, _ = train(task, args.steps, 1, 0, device, None)
        print(f"{name}: batch {task.batch}, {args.steps} steps: {took:.1f} s on {ranks} ranks, {time.perf_counter() - begun:.1f} s on one")
        print(f"{'step':>6}  {f'{ranks} ranks':>10}  {'one':>10}  difference")
        for step in sorted({0, *range(args.every - 1, args.steps, args.every), args.steps - 1}):
            a, b = together[step], alone[step]
            print(f"{step + 1:>6}  {a:>10.6f}  {b:>10.6f}  {abs(a - b):.1e}")
        show_overlap(model)
        worst = max(abs(a - b) for a, b in zip(together, alone, strict=True))
    dist.barrier()
    return worst


def parse(argv: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--every", type=int, default=10, help="steps between two lines of the table")
    parser.add_argument("--only", choices=("digits", "gpt"))
    parser.add_argument("--backend", default="mpi", help="mpi for the CPU, nccl for a GPU on each rank")
    parser.add_argument("--out", type=Path, default=Path("out"), help="folder of checkpoints")
    return parser.parse_args(argv)


def main(argv: list[str] | None = None) -> int:
    args = parse(argv)
    dist.init_process_group(args.backend)
    device = tt.device("cpu")
    if args.backend == "nccl":
        device = tt.device("cuda", dist.get_node_local_rank(0))
        tt.cuda.set_device(device)
    worst = 0.0
    for name, task in (("digits", Digits()), ("gpt", Gpt())):
        if args.only in (None, name):
            worst = max(worst, compare(name, task, args, device))
    if dist.get_rank() == 0:
        print(f"largest difference of a loss: {worst:.1e}")
    dist.destroy_process_group()
    return 0 if worst < 1e-3 else 1


if __name__ == "__main__":
    sys.exit(main())
