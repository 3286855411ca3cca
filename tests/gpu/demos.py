"""Two models train on the GPU as they do on the CPU: the digits' LeNet and the small GPT of examples/, eager and as a CUDA graph.

`python -m tests.gpu.demos`: each loss of the first steps is held against the CPU's, a graph's against the eager ones; steps in a second are told.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import time
from collections.abc import Callable, Sequence
from typing import IO, Any, NamedTuple

if __name__ == "__main__" and os.environ.get("TRITENSOR_GPU_TESTS") != "emulated":
    os.environ.pop("TRITON_INTERPRET", None)  # read when a kernel is defined

import numpy as np

import tritensor as tt
import tritensor.nn.functional as F
from tests.gpu import workers
from tests.gpu.scale import real, scaled
from tests.gpu.stand_ins import example
from tritensor import nn, optim

WARM = 3  # steps before a capture: the optimizer's buffers come to be
TIMED = 100  # steps that are timed


class Training(NamedTuple):
    """A training run whose steps take their batches from a list. `step(i)` does step i and returns the loss, on the device; `body()` does a step on
    what `load(i)` put into the batch's place, for a graph to be made of."""

    load: Callable[[int], None]
    body: Callable[[], tt.Tensor]

    def step(self, i: int) -> tt.Tensor:
        self.load(i)
        return self.body()


class Demo(NamedTuple):
    """A model to be trained. `atol`: how far a loss may be from the CPU's, in nats, after so many steps."""

    make: Callable[[str], Training]
    steps: int
    atol: float


def _training(
    model: nn.Module, batches: Sequence[tuple[tt.Tensor, ...]], loss_of: Callable[..., tt.Tensor], optimizer: Any, clip: float | None
) -> Training:
    place = [t.clone() for t in batches[0]]

    def load(i: int) -> None:
        for mine, t in zip(place, batches[i % len(batches)], strict=True):
            mine.copy_(t)

    def body() -> tt.Tensor:
        optimizer.zero_grad()
        loss = loss_of(model(place[0]), place[1])
        loss.backward()
        if clip is not None:
            nn.utils.clip_grad_norm_(model.parameters(), clip)
        optimizer.step()
        return loss.detach()

    return Training(load, body)


def digits(device: str) -> Training:
    """LeNet of examples/train_digits.py on its images, AdamW."""
    with example("train_digits") as module:
        images, labels = module.split(module.digits(), tt.device("cpu"))[0].tensors
    tt.manual_seed(0)
    model = module.LeNet().to(device)
    size = scaled(32, 2)
    batches = [(images[i : i + size].to(device), labels[i : i + size].to(device)) for i in range(0, 20 * size, size)]
    return _training(model, batches, F.cross_entropy, optim.AdamW(model.parameters(), lr=2e-3), None)


def gpt(device: str) -> Training:
    """The GPT of examples/train_gpt.py in the size that it has on a CPU, AdamW with a clipped norm."""
    with example("train_gpt") as module:
        size, context = scaled(16, 1), scaled(64, 4)
        layers, width, heads = scaled((4, 128, 4), (1, 8, 2))
        text = module.split(module.source(0.2), tt.device("cpu"))
        config = module.GPT2Config(len(module.ALPHABET), context, width, layers, heads, dropout=0.0)
        tt.manual_seed(0)
        model = module.GPT2(config).to(device)
        groups = module.parameter_groups(model)
    tt.manual_seed(1)
    batches = [tuple(t.to(device) for t in text.batch("train", size, context)) for _ in range(20)]

    def loss_of(logits: tt.Tensor, labels: tt.Tensor) -> tt.Tensor:
        return F.cross_entropy(logits.flatten(0, 1), labels.flatten())

    return _training(model, batches, loss_of, optim.AdamW(groups, lr=1e-3, betas=(0.9, 0.95)), 1.0)


# The bound of each loss: float32 everywhere, whose roundings differ by the order of sums and grow from step to step. One rounding of every weight at the
# start moves the CPU's own losses by 3e-6 and 7e-6; each step adds its own.
DEMOS = {"digits": Demo(digits, 60, 2e-4), "gpt": Demo(gpt, 40, 5e-4)}


def eager(demo: Demo, device: str) -> tuple[list[float], float]:
    """The losses of the first steps, and steps in a second of those behind them."""
    training = demo.make(device)
    losses = [training.step(i).item() for i in range(scaled(demo.steps, 3))]
    count = scaled(TIMED, 1)
    if device == "cpu":
        return losses, 0.0
    tt.cuda.synchronize()
    start = time.perf_counter()
    for i in range(count):
        training.step(i)
    tt.cuda.synchronize()
    return losses, count / (time.perf_counter() - start)


def graph(demo: Demo) -> tuple[list[float], float]:
    """The same, all steps but the first few replayed from one graph."""
    training = demo.make("cuda")
    losses = [training.step(i).item() for i in range(WARM)]
    training.load(WARM)
    tt.cuda.synchronize()
    made = tt.cuda.CUDAGraph()
    with tt.cuda.graph(made):
        loss = training.body()
    for i in range(WARM, scaled(demo.steps, WARM + 1)):
        training.load(i)
        made.replay()
        losses.append(loss.item())
    count = scaled(TIMED, 1)
    tt.cuda.synchronize()
    start = time.perf_counter()
    for i in range(count):
        training.load(i)
        made.replay()
    tt.cuda.synchronize()
    return losses, count / (time.perf_counter() - start)


def held(found: Sequence[float], wanted: Sequence[float], atol: float, whose: str) -> list[str]:
    """What is said of a curve that leaves another's neighbourhood, or does not fall."""
    said = []
    far = [abs(a - b) for a, b in zip(found, wanted, strict=False)]
    if not np.all(np.isfinite(found)):
        said.append(f"a loss is not finite: {found}")
    elif max(far) > atol:
        worst = int(np.argmax(far))
        first = next(i for i, d in enumerate(far) if d > atol)
        said.append(
            f"step {first} leaves the {whose} losses by more than {atol:g}; step {worst} is {found[worst]:.5f} beside {wanted[worst]:.5f}"
        )
    if real() and not np.mean(found[-5:]) < 0.9 * np.mean(found[:5]):
        said.append(f"it does not learn: losses {found[:3]} ... {found[-3:]}")
    return said


def ask(item: str, curves: dict[str, list[float]]) -> tuple[list[str], str]:
    """An item's findings and figures; the curves of earlier ones are kept for later ones."""
    name, how = item.split()
    demo = DEMOS[name]
    if name not in curves:
        curves[name] = eager(demo, "cpu")[0]
    if how == "eager":
        losses, rate = eager(demo, "cuda")
        return held(losses, curves[name], demo.atol, "CPU's"), f"{rate:.0f} steps/s"
    losses, rate = graph(demo)
    return held(losses, curves[name], demo.atol, "CPU's"), f"{rate:.0f} steps/s"


def script(item: str) -> tuple[list[str], str]:
    """An example as users start it: `main` on device cuda."""
    from tempfile import TemporaryDirectory

    name = item.split()[0]
    with TemporaryDirectory() as folder, example(f"train_{name}") as module:
        flags = ["--device", "cuda", "--out", folder]
        if name == "digits":
            reached = module.main([*flags, *scaled([], ["--epochs", "1"])])
            return (
                [] if reached >= 0.97 or not real() else [f"it reads {reached:.4f} of the test images, and not 0.97"]
            ), f"accuracy {reached:.4f}"
        sizes = ["--batch-size", "16", "--context", "64", "--layers", "4", "--width", "128", "--heads", "4", "--steps", "200", "--quiet"]
        reached = module.main([*flags, *sizes, "--sample", "20"])
        return ([] if reached < 2.6 else [f"validation loss {reached:.3f} after 200 steps"]), f"validation {reached:.2f} nats"


ITEMS = ("digits eager", "digits graph", "gpt eager", "gpt graph", "digits script", "gpt script")


def main(argv: Sequence[str] | None = None) -> int:
    """Train, compare, tell; the exit code is 1 when something differs."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.gpu.demos", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--item", nargs="*", default=list(ITEMS), choices=ITEMS, help="what to train; all when none is given")
    workers.add_arguments(parser)
    given = parser.parse_args(argv)
    start, bad, left, curves = time.monotonic(), 0, 0, {}  # type: tuple[float, int, int, dict[str, list[float]]]  # type: ignore[assignment]
    with workers.reporting(given.report) as report:
        for item in workers.remaining(given.item, given.done):
            if given.seconds is not None and time.monotonic() - start > given.seconds:
                left += 1
                continue
            bad += not _one(item, curves, report)
        workers.write(report, {"left": left})
    return 1 if bad else workers.LEFT if left else 0


def _one(item: str, curves: dict[str, list[float]], report: IO[str] | None) -> bool:
    """Ask an item and tell how it went; whether it passed."""
    workers.write(report, {"item": item, "outcome": "begun"})
    start = time.monotonic()
    try:
        with contextlib.redirect_stdout(sys.stderr):
            found, figures = script(item) if item.endswith("script") else ask(item, curves)
    except Exception as error:  # a finding as any other: what comes next is asked all the same
        found, figures = [f"{type(error).__name__}: {error}"], ""
    answer = workers.Answer("failed" if found else "passed", found or [figures], {})
    workers.write(report, workers.row(item, answer, time.monotonic() - start))
    print(f"{item}: {'; '.join(found) or figures}", flush=True)
    return not found


if __name__ == "__main__":
    sys.exit(main())
