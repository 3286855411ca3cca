"""Steps of a corner: the formulas that it hands to the shared kernels, written down by a dry recording; nothing else may be launched in one."""

from __future__ import annotations

from typing import Any, NamedTuple, NoReturn

import numpy as np

from tritensor.cuda.compiler.arguments import LaunchCall
from tritensor.ops.array import CudaArray
from tritensor.ops.replay.recorder import NotThere, Recorder


class NotSteps(NotThere):
    """A corner whose steps are asked for does what no step says: it launches a kernel of its own, or looks into memory."""


class Pointwise(NamedTuple):
    """One call of the elementwise kernel: `outs[o][...] = formulas[o](*operands[k] for k in picks[o])`, see `run` in kernels/parts/elementwise.py.

    operands: arrays that broadcast to the outs' shape, and numbers as the kernel gets them (see `scalar` there), in the order that `picks` counts.
    wide: whether floats are widened to float64 before the formulas, else to float32.
    The formulas are those of the corner: what stands for them where results have 16 bits (half_precision/variants.py) is the kernel's business.
    """

    formulas: tuple[Any, ...]
    picks: tuple[tuple[int, ...], ...]
    operands: tuple[Any, ...]
    outs: tuple[CudaArray, ...]
    wide: bool


class Folded(NamedTuple):
    """One call of the reduction kernel, as the corner makes it: see `fold` in kernels/parts/reduction.py. A fold that is split is one all the same."""

    functions: Any
    xs: tuple[CudaArray, ...]
    dims: tuple[int, ...]
    ys: tuple[CudaArray, ...]
    states: tuple[np.dtype, ...]
    scalars: tuple[Any, ...]
    ordered: bool
    numbers: tuple[Any, ...]


class Spreading(NamedTuple):
    """One call of the kernel that spreads rows' values: see `spread` in kernels/parts/reduction.py."""

    formula: Any
    xs: tuple[CudaArray, ...]
    dims: tuple[int, ...]
    ys: tuple[CudaArray, ...]
    scalars: tuple[Any, ...]
    ordered: bool


class Drawn(NamedTuple):
    """Numbers of a random stream, in C order: `out[...]` = a formula of random_words/draws.py of each element's place, seed and offset."""

    formula: Any
    out: CudaArray
    seed: int
    offset: int


class StepRecorder(Recorder):
    """A dry recording of steps in place of launches. Whatever touches memory, asks for a device or launches a kernel that says no step raises NotSteps."""

    def __init__(self) -> None:
        super().__init__((), dry=True)
        self.steps: list[Pointwise | Folded | Spreading | Drawn] = []

    def launched(self, call: LaunchCall) -> NoReturn:
        raise NotSteps(f"it launches {call.kernel.__name__}")

    def starts_runtime(self) -> NoReturn:
        raise NotSteps("it asks the device")

    def spoil(self, reason: str) -> NoReturn:
        raise NotSteps(reason)
