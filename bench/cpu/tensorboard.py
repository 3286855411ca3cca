"""Cost of logging a scalar, a histogram and an image, and of 100,000 scalars in a row; torch's SummaryWriter beside ours."""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import tempfile
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from bench.cpu.apart import paired
from bench.cpu.timing import Paired, line

TARGET = 20e-6  # seconds a scalar
KINDS = ("scalar", "histogram of 10,000", "image 3 x 128 x 128")


def writer_of(library: str) -> Any:
    """A SummaryWriter of `tritensor` or `torch` in a folder of its own."""
    return importlib.import_module(f"{library}.utils.tensorboard").SummaryWriter(tempfile.mkdtemp())


def logging(library: str, kind: str) -> Callable[[], object]:
    """A call that logs one thing."""
    writer, rng = writer_of(library), np.random.default_rng(0)
    values, image = rng.standard_normal(10_000).astype(np.float32), rng.random((3, 128, 128)).astype(np.float32)
    step = iter(range(10**9))
    if kind == "scalar":
        return lambda: writer.add_scalar("loss/train", 0.5, next(step))
    if kind.startswith("histogram"):
        return lambda: writer.add_histogram("weights", values, next(step))
    return lambda: writer.add_image("image", image, next(step))


def sustained(library: str, count: int) -> Callable[[], object]:
    """A call that logs so many scalars and waits until they are in the file."""
    writer = writer_of(library)

    def run() -> None:
        for i in range(count):
            writer.add_scalar("loss/train", i * 0.001, i)
        writer.flush()

    return run


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench tensorboard", description=__doc__)
    parser.add_argument("--count", type=int, default=100_000, help="scalars in a row (default 100,000)")
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args(arguments)
    peer = all(importlib.util.find_spec(name) is not None for name in ("torch", "tensorboard"))
    start = time.perf_counter()

    def compare(build: Callable[..., Any], what: Any, calls: int) -> Paired:
        return paired(build, ("tritensor", what), ("torch", what) if peer else None, calls=calls, rounds=given.rounds)

    for kind in KINDS:
        found = compare(logging, kind, 2000 if kind == "scalar" else 20)
        print(line(f"one {kind}", found), flush=True)
    found = compare(sustained, given.count, 1)
    each = Paired(found.ours / given.count, None if found.peer is None else found.peer / given.count, found.ratio)
    print(line(f"{given.count:,} scalars in a row and in the file, each", each))
    print(f"{time.perf_counter() - start:.0f} s; a scalar is to take less than {TARGET * 1e6:.0f} us")
    return int(each.ours > TARGET)
