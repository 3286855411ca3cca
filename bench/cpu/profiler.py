"""Cost of the profiler for a training step: the same LeNet step with and without it, in turn, and the median of the ratios round by round."""

from __future__ import annotations

import argparse
import gc
import statistics
import time
from collections.abc import Callable
from typing import Any

import tritensor as tt
from bench.cpu.train import lenet, step
from tritensor.profiler import profile

SHAPES = {"LeNet 28x28, 64 images": (64, 1, 28, 28), "LeNet 28x28, 1 image": (1, 1, 28, 28)}
MODES: dict[str, dict[str, Any]] = {
    "default": {},
    "record_shapes": {"record_shapes": True},
    "with_flops": {"with_flops": True},
    "profile_memory": {"profile_memory": True},
    "with_modules": {"with_modules": True},
    "with_stack": {"with_stack": True},
}
STEPS = 20  # of one look at the clock
WARM = 5  # steps before them: Python finds its way anew when functions have been put in others' places, as in the warm-up of a schedule


def seconds_of(run: Callable[[], None], calls: int = STEPS) -> float:
    """Seconds of a step."""
    for _ in range(WARM):
        run()
    start = time.perf_counter()
    for _ in range(calls):
        run()
    return (time.perf_counter() - start) / calls


def ratio(run: Callable[[], None], settings: dict[str, Any], rounds: int) -> tuple[float, float, float]:
    """(seconds of a step without a profile, median ratio with one to without, events of a step). Each round times one after the other, in changing order."""
    run()
    plain, found, events = [], [], 0.0
    for i in range(rounds):
        gc.collect()
        first = seconds_of(run) if i % 2 else 0.0
        with profile(**settings) as prof:
            profiled = seconds_of(run)
        first = first or seconds_of(run)
        plain.append(first)
        found.append(profiled / first)
        events = len(prof.events()) / (STEPS + WARM)
    return statistics.median(plain), statistics.median(found), events


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench profiler", description=__doc__)
    parser.add_argument("--rounds", type=int, default=41, help="pairs of twenty steps with and without a profile (default: %(default)s)")
    given = parser.parse_args(argv or [])
    for label, shape in SHAPES.items():
        run = step(tt, lenet, shape, "SGD")
        for name, settings in MODES.items():
            plain, slower, events = ratio(run, settings, given.rounds)
            print(
                f"{label:24s} {name:28s} {1e3 * plain:8.3f} ms a step, {100 * (slower - 1):+6.1f} %, {events:.0f} events a step", flush=True
            )
