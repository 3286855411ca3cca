"""The figures of lazy evaluation that need no GPU: launches, and bytes of their arrays, of the same program eager and lazy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import tritensor as tt
from bench.gpu.by_hand import gpt_by_hand
from bench.gpu.training import GPT2_SMALL, step, works
from bench.gpu.warm import Recorded
from bench.static.figures import Device, Figure, tensor
from tritensor.cuda.compiler.recorded_call import Call

Run = Callable[[], object]
LEARNING = 3  # runs of a program, after which its path and the strides of its gradients are known


def lazily(run: Run) -> Run:
    """A program as one region; what it gives is held to the region's end."""

    def lazy() -> object:
        with tt.lazy():
            return run()

    return lazy


def known(device: Device, run: Run) -> list[Call]:
    """The launches of a lazy program that is known."""
    run = lazily(run)
    for _ in range(LEARNING - 1):
        run()
    return device.launches(run)


def gigabytes(calls: list[Call]) -> float:
    """Of all arrays of all launches, each as often as it is an argument."""
    return round(sum([sum(c.sizes()) for c in calls]) / 1e9, 3)


def figures() -> Iterator[Figure]:
    """All of them; nothing is compiled."""
    with Device(90) as device:
        x, h = tensor(32, 256), tensor(32, 256)
        inward, onward, bias = tensor(256, 256), tensor(256, 256), tensor(256)

        def cell() -> tt.Tensor:
            return (x @ inward + h @ onward + bias).tanh()

        yield Figure("launches: RNN cell, eager", len(device.launches(cell)))
        yield Figure("launches: RNN cell, lazy", len(known(device, cell)), 3)
        yield from _until_printed(device)
        (work,) = (w for w in works() if w.name.startswith("GPT-2"))
        for name, made in (
            ("GPT-2 small step", work),
            ("GPT-2 small by hand, step", work._replace(model=partial(gpt_by_hand, shape=GPT2_SMALL))),
        ):
            own: Any = {"eager": device.launches(step(Recorded(), made)), "lazy": known(device, step(Recorded(), made))}
            by_hand = made is not work
            for how, calls in own.items():
                asked = how == "lazy"
                if by_hand or asked:
                    yield Figure(f"launches: {name}, {how}", len(calls), (460 if by_hand else 420) if asked else None)
                yield Figure(f"GB of arguments: {name}, {how}", gigabytes(calls), (71 if by_hand else None) if asked else None)


def _until_printed(device: Device) -> Iterator[Figure]:
    """`y = x + 2; z = y * y` launches nothing, and one kernel when z is printed."""
    x, counts = tensor(1024, dtype=tt.float32), []

    def program() -> None:
        with tt.lazy():
            y = x + 2
            z = y * y
            assert device.gpu.calls is not None
            counts.append(len(device.gpu.calls))
            str(z)
            counts.append(len(device.gpu.calls))

    device.gpu.calls = []
    program()
    device.gpu.calls = None
    yield Figure("launches: y = x + 2; z = y * y, lazy", counts[0], 0)
    yield Figure("launches: the same when z is printed", counts[1], 1)
