"""Steps of every optimizer on the CPU, beside torch where it is installed: `python -m bench optim`.

Two models: one parameter of a million elements, and sixty of 100 to 10,000 as small networks have them. torch steps as it does by default
and with foreach=True; the ratio is to the faster of the two. Gradients are there already.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from typing import Any

import numpy as np

import tritensor as tt
from bench.cpu.timing import least, torch_or_none

SIZES = {"a million": [10**6], "sixty small": np.geomspace(100, 10_000, 60).astype(int).tolist()}
VARIANTS = {
    "SGD, momentum": {"momentum": 0.9},
    "Adam, amsgrad": {"amsgrad": True},
    "RMSprop, centered": {"centered": True, "momentum": 0.9},
}
# LBFGS needs a closure, SparseAdam gradients of rows
_TIMED = [n for n, c in vars(tt.optim).items() if isinstance(c, type) and n not in ("Optimizer", "LBFGS", "SparseAdam")]
SETTINGS: dict[str, dict[str, Any]] = dict(sorted({**{n: {} for n in _TIMED}, **VARIANTS}.items()))


def stepper(library: Any, label: str, sizes: list[int], **ways: Any) -> Callable[[], Any]:
    """The step of an optimizer over parameters of these sizes, matrices for those that need them, with their gradients."""
    rng, params = np.random.default_rng(0), []
    name = label.split(",")[0]
    for n in sizes:
        shape = (math.isqrt(n), math.isqrt(n)) if name in ("Muon", "Adafactor") else (n,)
        p = library.nn.Parameter(library.from_numpy(rng.standard_normal(shape).astype(np.float32)))
        p.grad = library.from_numpy(rng.standard_normal(shape).astype(np.float32))
        params.append(p)
    return getattr(library.optim, name)(params, lr=1e-3, **SETTINGS[label], **ways).step  # type: ignore[no-any-return]


def line(torch: Any, label: str, sizes: list[int], seconds: float) -> tuple[str, float | None]:
    """One row, and its ratio to torch (None where torch has no such optimizer)."""
    ours = stepper(tt, label, sizes)
    ways: list[dict[str, Any]] = [{}, {"foreach": True}] if label != "Muon" else [{}]
    if torch is None or not hasattr(torch.optim, label.split(",")[0]):
        return f"{least(ours, None, seconds).ours * 1e6:>10.0f} us", None
    found = [least(ours, stepper(torch, label, sizes, **way), seconds) for way in ways]
    best = max(found, key=lambda f: f.ratio or 0.0)
    each = "".join(f"{f.peer * 1e6:>12.0f}" for f in found if f.peer is not None)
    return f"{best.ours * 1e6:>10.0f} us{each:<24}{best.ratio:>8.2f}", best.ratio


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench optim", description=__doc__)
    parser.add_argument("--only", nargs="+", metavar="NAME", help="these optimizers only")
    parser.add_argument("--seconds", type=float, default=0.3, help="how long a pair is timed (default 0.3)")
    given = parser.parse_args(arguments)
    torch = torch_or_none()
    if torch is not None:
        torch.set_num_threads(1)
    for model, sizes in SIZES.items():
        print(
            f"a step over {model} float32 elements{'' if torch is None else f', torch {torch.__version__}: by default, foreach; ratio to the faster'}"
        )
        ratios = []
        for label in SETTINGS:
            if given.only and label.split(",")[0] not in given.only:
                continue
            text, ratio = line(torch, label, sizes, given.seconds)
            ratios += [] if ratio is None else [ratio]
            print(f"  {label:<20}{text}", flush=True)
        if ratios:
            print(f"  geometric mean {math.exp(sum(map(math.log, ratios)) / len(ratios)):.2f}, largest {max(ratios):.2f}")
