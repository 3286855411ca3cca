"""Levels: which transforms run in this thread, one inside the other."""

from __future__ import annotations

import threading
from itertools import count

from tritensor.ground.errors import TransformError

GRAD, JVP, VMAP = "grad", "jvp", "vmap"
TRACE = "trace"  # every op is noted, for ONNX: of tritensor.onnx alone
DISPATCH = "dispatch"  # below all others: every op is handed to __torch_dispatch__, of tritensor.torch_dispatch alone
_next_number = count(1).__next__


class Level:
    """One transform that runs, or ran. A later one lies above an earlier one: its number is larger.

    `open`: a level of forward_ad, whose tensors stay in the graph of what they were made of. `recording`: the grad mode that the transform
    was called in. `quiet`: gradients are computed that nobody will differentiate at this level. `size`, `randomness`: of vmap, how many
    examples, and what random functions do. `outermost`: a derivative that no other transform surrounds; it watches its inputs in the ordinary
    graph and makes no layer.
    """

    __slots__ = ("alive", "kind", "number", "open", "outermost", "quiet", "randomness", "recording", "size")

    def __init__(self, kind: str, recording: bool, size: int = 0, randomness: str = "error") -> None:
        self.number = _next_number()
        self.kind = kind
        self.recording = recording
        self.size = size
        self.randomness = randomness
        self.alive = True
        self.open = self.outermost = self.quiet = False

    def __enter__(self) -> Level:
        self.outermost = not running.levels
        running.levels = (*running.levels, self)
        return self

    def __exit__(self, *exc: object) -> None:
        self.alive = False
        # not the last one off: generators may leave their blocks in another order
        running.levels = tuple([level for level in running.levels if level is not self])


class _Running(threading.local):
    levels: tuple[Level, ...] = ()  # transforms that run in this thread, the outermost first


running = _Running()


def factor_of_draws() -> int:
    """How many times as many numbers a draw takes as it was asked for. Raises TransformError inside a vmap that refuses draws."""
    n = 1
    for level in running.levels:
        if level.kind == VMAP:
            if level.randomness == "error":
                raise TransformError(
                    "vmap: a random function was called and randomness is 'error'; call vmap with randomness='different' (each example draws "
                    "its own) or 'same' (all have one draw), or draw outside vmap"
                )
            if level.randomness == "different":
                n *= level.size
    return n
