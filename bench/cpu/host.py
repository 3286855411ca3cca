"""Cost of an op beside its arithmetic: tiny tensors on the CPU and on device cuda, ours beside torch's."""

from __future__ import annotations

import argparse
import importlib.util
import os
import statistics
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import tritensor as tt
from bench.cpu.timing import Paired, line, paired, torch_or_none
from bench.small import sequence
from bench.small.sides import OURS, TORCH, libraries


def chain(x, y):
    """100 elementwise ops, a sum, and all their gradients."""
    z = x
    for _ in range(50):
        z = z * y
        z = z + y
    z.sum().backward()


# What each line times, of (library, x, y, m): x and y are 4 x 3, m is 8 x 8; all want gradients unless the label says "plain".
# The first eleven are the ones whose geometric mean is printed.
ELEVEN: dict[str, Callable[..., Any]] = {
    "x + y, plain": lambda t, x, y, m: x + y,
    "x + y": lambda t, x, y, m: x + y,
    "x * 2.0": lambda t, x, y, m: x * 2.0,
    "x.exp()": lambda t, x, y, m: x.exp(),
    "chain of 100 ops, forward and backward": lambda t, x, y, m: chain(x, y),
    "x.relu()": lambda t, x, y, m: x.relu(),
    "x.sum()": lambda t, x, y, m: x.sum(),
    "m @ m, 8 x 8": lambda t, x, y, m: m @ m,
    "x.reshape(3, 4)": lambda t, x, y, m: x.reshape(3, 4),
    "x.transpose(0, 1)": lambda t, x, y, m: x.transpose(0, 1),
    "x[1:3]": lambda t, x, y, m: x[1:3],
}
MORE: dict[str, Callable[..., Any]] = {
    "tt.add(x, y)": lambda t, x, y, m: t.add(x, y),
    "x.view(-1)": lambda t, x, y, m: x.view(-1),
    "x.t()": lambda t, x, y, m: x.t(),
    "x.permute(1, 0)": lambda t, x, y, m: x.permute(1, 0),
    "x.unsqueeze(0)": lambda t, x, y, m: x.unsqueeze(0),
    "x.unsqueeze(0).squeeze(0)": lambda t, x, y, m: x.unsqueeze(0).squeeze(0),
    "x.expand(2, 4, 3)": lambda t, x, y, m: x.expand(2, 4, 3),
    "x.select(0, 1)": lambda t, x, y, m: x.select(0, 1),
    "x[1]": lambda t, x, y, m: x[1],
    "x[:, 1]": lambda t, x, y, m: x[:, 1],
    "x.mm(y.t())": lambda t, x, y, m: x.mm(y.t()),
    "t.matmul(m, m), 8 x 8": lambda t, x, y, m: t.matmul(m, m),
    "F.linear(x, y)": lambda t, x, y, m: t.nn.functional.linear(x, y),
    "x.sum(1)": lambda t, x, y, m: x.sum(1),
    "x.sum(dim=1, keepdim=True)": lambda t, x, y, m: x.sum(dim=1, keepdim=True),
    "x.mean()": lambda t, x, y, m: x.mean(),
    "x.mean(0)": lambda t, x, y, m: x.mean(0),
    "x.amax(1)": lambda t, x, y, m: x.amax(1),
    "x > y": lambda t, x, y, m: x > y,
    "x == 1.0": lambda t, x, y, m: x == 1.0,
}


def lines(cases: dict[str, Callable[..., Any]], seconds: float) -> list[float]:
    """Print a line for each case; the ratios to torch, where it is installed."""
    torch: Any = torch_or_none()
    rng = np.random.default_rng(0)
    values = [rng.uniform(0.5, 1.5, shape).astype(np.float32) for shape in ((4, 3), (4, 3), (8, 8))]
    ratios = []
    for label, case in cases.items():
        wanted = "plain" not in label
        ours = [tt.from_numpy(v.copy()).requires_grad_(wanted) for v in values]
        theirs = [torch.from_numpy(v.copy()).requires_grad_(wanted) for v in values] if torch else []
        found = paired(lambda c=case, o=ours: c(tt, *o), (lambda c=case, p=theirs: c(torch, *p)) if torch else None, seconds)
        print(line(label, found), flush=True)
        if found.ratio is not None:
            ratios.append(found.ratio)
    return ratios


def in_sequence(seconds: float) -> None:
    """Print what statements of a program cost alone, as the lines above are timed, and one after another, when code leaves the caches."""
    of = libraries(peer=importlib.util.find_spec("torch") is not None)
    for label, found in sequence.lines(of, rounds=9, seconds=seconds / 100).items():
        if OURS in found.failed:
            raise SystemExit(f"bench host: {label}: {found.failed[OURS]}")
        print(line(label, Paired(found.seconds[OURS], found.seconds.get(TORCH), found.ratios.get(OURS))), flush=True)


def _on_device() -> str:
    """The table of bench/cpu/device_host.py: on the GPU where there is one, else on the stub driver."""
    command = [sys.executable, "-m", "bench.cpu.device_host"]
    if not tt.cuda.is_available():
        from tests.stub.build import environment

        where = environment(STUB_CHECK=0)
    else:
        where = dict(os.environ)
    return subprocess.run(command, env=where, stdout=subprocess.PIPE, text=True, check=True).stdout


def main(argv: Sequence[str] | None = None) -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(prog="python -m bench host", description=__doc__)
    parser.add_argument("--all", action="store_true", help="views, products, reductions and comparisons, too")
    parser.add_argument("--cpu", action="store_true", help="the CPU's table alone")
    parser.add_argument("--seconds", type=float, default=2.0, help="for each line (default 2)")
    given = parser.parse_args(argv)
    print("host cost on tiny float32 tensors (4, 3), gradient recorded, one thread, medians of alternating rounds")
    ratios = lines(ELEVEN, given.seconds)
    if ratios:
        print(f"{'geometric mean of these eleven':<52}{statistics.geometric_mean(ratios):>34.2f} x torch")
    in_sequence(given.seconds)
    if given.all:
        ratios = lines(MORE, given.seconds)
        if ratios:
            print(f"{'largest of the rest':<52}{max(ratios):>34.2f} x torch")
    if not given.cpu:
        print(_on_device(), end="")
