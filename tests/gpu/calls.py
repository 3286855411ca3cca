"""Calls of an op's kernels by themselves, on inputs that stay: forward and backward to be repeated, and their bytes compared."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tritensor.autograd.modes import no_grad
from tritensor.ground import dtypes
from tritensor.ground.device import device
from tritensor.ground.errors import GradError
from tritensor.ops.array import CudaArray, from_host, to_host
from tritensor.ops.table import Op, Sample
from tritensor.testing.questions import corners
from tritensor.testing.questions.cases import cast, is_floating, promote_inputs, samples

GPU = device("cuda", 0)
LARGEST = 8 << 20  # elements of all inputs: of larger timed sizes only the smallest is run, and only where no other is


class Call:
    """One op on one set of inputs on the device. `host` are the inputs' values; inputs that the op overwrites are made anew."""

    def __init__(self, op: Op, sample: Sample, dtype: str) -> None:
        self.op = op
        self.name = f"{op.name} {sample!r} {dtype}"
        self.host = promote_inputs(op, tuple(cast(x, dtype) for x in sample.inputs))
        self.attrs = {**sample.attrs, **({"device": GPU} if "device" in op.attrs else {})}
        self.inputs = self.fresh()

    def fresh(self) -> tuple[Any, ...]:
        return tuple(from_host(x, GPU) if isinstance(x, np.ndarray) else x for x in self.host)

    def forward(self) -> tuple[Any, ...]:
        """The outputs; of an op that mutates, the arrays that it wrote."""
        inputs = self.fresh() if self.op.mutates else self.inputs
        function = self.op.cpu if self.op.view else self.op.forward
        assert function is not None
        out = function(*inputs, **self.attrs)
        if self.op.mutates:
            return tuple(inputs[self.op.inputs.index(m)] for m in self.op.mutates if inputs[self.op.inputs.index(m)] is not None)
        return out if isinstance(out, tuple) else (out,)

    def backward(self, outputs: tuple[Any, ...]) -> Callable[[], tuple[Any, ...]] | None:
        """The backward kernels for given outputs as a function; None where there are none."""
        op = self.op
        needs = tuple(isinstance(x, CudaArray) and dtypes.is_float(x.dtype) for x in self.inputs)
        if op.backward is None or not any(needs) or not any(is_floating(y) for y in outputs[: op.public]):
            return None
        rng = np.random.default_rng(zlib.crc32(self.name.encode()))
        gradients = tuple(
            from_host(rng.standard_normal(y.shape).astype(y.dtype), GPU) if is_floating(y) else None for y in outputs[: op.public]
        )
        g = gradients[0] if op.public == 1 else gradients

        def run(needs: tuple[bool, ...] = needs) -> tuple[Any, ...]:
            with no_grad():
                return corners.call(op, op.backward, g, self.inputs, outputs, self.attrs, needs)  # type: ignore[arg-type]

        try:
            run()
        except GradError:  # an input that refuses a gradient (class weights): ask for the first one's alone
            first = (needs[0], *(False for _ in needs[1:]))
            return lambda: run(first)
        return run


def calls(op: Op, sizes: bool = True) -> Iterator[Call]:
    """Calls of an op: its samples in float32, and its timed sizes (where many programs run at once) in float32 and bfloat16."""
    if op.forward is None:
        return
    first = "float32" if "float32" in op.dtypes else op.dtypes[0]
    for sample in samples(op):
        yield Call(op, sample, first)
    if op.sizes is None or not sizes:
        return
    timed = sorted(op.sizes(np.random.default_rng(0)), key=_elements)
    for sample in [s for s in timed if _elements(s) <= LARGEST] or timed[:1]:
        for dtype in dict.fromkeys((first, "bfloat16" if "bfloat16" in op.dtypes else first)):
            yield Call(op, sample, dtype)


def _elements(sample: Sample) -> int:
    return sum(x.size for x in sample.inputs if isinstance(x, np.ndarray))


def repeat(call: Call, times: int) -> list[str]:
    """Run a call's kernels again and again; a line for each output that did not come out the same to the last bit."""
    outputs = call.forward()
    found = _differing(f"{call.name}: forward", outputs, call.forward, times)
    backward = call.backward(outputs)
    if backward is not None:
        found += _differing(f"{call.name}: backward", backward(), backward, times)
    return found


def _differing(name: str, first: tuple[Any, ...], run: Callable[[], tuple[Any, ...]], times: int) -> list[str]:
    want = [_bytes(x) for x in first]
    for n in range(1, times):
        for i, x in enumerate(run()):
            if _bytes(x) != want[i]:
                return [f"{name}: run {n} gave another output {i} than the first run"]
    return []


def _bytes(x: Any) -> bytes | None:
    return to_host(x).tobytes() if isinstance(x, CudaArray) else None
