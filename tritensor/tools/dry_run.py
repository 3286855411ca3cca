"""Programs run for their launches alone: the op table's samples, or a training script, on a device that records and computes nothing."""

from __future__ import annotations

import inspect
import runpy
import sys
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from tritensor.autograd import backward, no_grad
from tritensor.ground import dtypes
from tritensor.ground.device import gpu
from tritensor.ground.errors import GradError
from tritensor.ops.array import empty
from tritensor.ops.table import Op, Sample, ops
from tritensor.optim.optimizer import Optimizer
from tritensor.tensor.core import Tensor, new_tensor

GPU = gpu(0)


# The op table
class Shapes:
    """Stands in for numpy's Generator where only shapes matter: it has all its methods with their arguments, and arrays that it draws
    repeat one number and take no memory. Drawn floats are float64 whatever type is asked for, which in a sample means the type under test.
    """

    def __getattr__(self, name: str) -> Any:
        method = getattr(np.random.default_rng(0), name)
        if not callable(method) or "size" not in inspect.signature(method).parameters:
            return method

        def draw(*args: Any, **kwargs: Any) -> Any:
            given = inspect.signature(method).bind(*args, **kwargs)
            size, asked = given.arguments.pop("size", None), given.arguments
            if asked.get("out") is not None:
                return method(*args, **kwargs)
            if name != "integers":  # integers' type is the sample's own; of floats the one under test stands for it
                asked.pop("dtype", None)
            one = method(*given.args, **given.kwargs)
            if size is None:
                return one
            shape, rest = (tuple(size) if np.iterable(size) else (int(size),)), np.shape(one)
            if name not in _VECTORS:  # arrays among its arguments broadcast to size
                return np.broadcast_to(one, shape)
            at = range(len(rest) + 1)[asked.get("axis", 0)]
            return np.broadcast_to(np.expand_dims(one, tuple(range(at, at + len(shape)))), rest[:at] + shape + rest[at:])

        return draw


_VECTORS = ("choice", "dirichlet", "multinomial", "multivariate_hypergeometric", "multivariate_normal")  # one draw may be an array


def run_ops(chosen: Iterable[Op], types: Iterable[str]) -> list[str]:
    """Call ops forward and backward on their samples and timed sizes, contiguous, in the given types; returns what failed."""
    failures = []
    for op in chosen:
        samples = list(op.samples(np.random.default_rng(zlib.crc32(op.name.encode()))))
        samples += list(op.sizes(Shapes())) if op.sizes is not None else []  # type: ignore[arg-type]
        for dtype in [t for t in types if t in op.dtypes] or op.dtypes[:1]:
            for sample in samples:
                try:
                    _call(op, sample, dtype)
                except Exception as error:  # reported with the rest: one bad sample must not hide the others
                    failures.append(f"{op.name} {sample!r} {dtype}: {type(error).__name__}: {error}")
    return failures


def _call(op: Op, sample: Sample, dtype: str) -> None:
    """One call as a program makes it: through dispatch, with gradients for all floating inputs, and backward."""
    attrs = {**sample.attrs, **({"device": GPU} if "device" in op.attrs else {})}
    inputs = [_place(x, dtype) for x in sample.inputs]
    leaves = [t for t in inputs if isinstance(t, Tensor) and t.is_floating_point()]
    call = getattr(ops, op.name)
    if op.mutates or op.rule is None or not leaves:
        with no_grad():
            call(*inputs, **attrs)
        return
    for t in leaves:
        t.requires_grad = True
    try:
        _backward(call(*inputs, **attrs))
    except GradError:  # an input that refuses a gradient (class weights): ask for the first one's alone
        for t in leaves[1:]:
            t.requires_grad = False
        _backward(call(*inputs, **attrs))


def _backward(out: Any) -> None:
    outs = [y for y in (out if isinstance(out, tuple) else (out,)) if y.requires_grad]
    if outs:
        backward(outs, [new_tensor(empty(y.shape, y._array.dtype, GPU)) for y in outs])  # backward kernels are launched for any gradient


def _place(x: Any, dtype: str) -> Any:
    """An input on the device: a float64 sample in the type asked for, contiguous, without values."""
    if isinstance(x, np.generic):
        x = np.asarray(x)
    if not isinstance(x, np.ndarray):
        return x
    return new_tensor(empty(x.shape, dtypes.as_dtype(dtype).numpy if x.dtype == np.float64 else x.dtype, GPU))


# A script
class _Enough(BaseException):
    """The optimizer has stepped as often as --steps says."""


def run_script(script: Path, argv: list[str], steps: int | None) -> list[str]:
    """Run a program as __main__, to its end or for `steps` optimizer steps; returns why it ended early, if it did."""
    sys.argv = [str(script), *argv]
    sys.path.insert(0, str(script.resolve().parent))  # as `python script.py` has it: what lies beside the script is found
    if steps is not None:
        _count_steps(steps)
    try:
        runpy.run_path(str(script), run_name="__main__")
    except _Enough:
        return []
    except SystemExit as end:
        return [] if end.code in (None, 0) else [f"{script} ended with exit code {end.code!r}"]
    except Exception as error:  # whatever the program raises: what it launched until then is compiled
        trace, at = error.__traceback__, 0
        while trace is not None:
            if trace.tb_frame.f_code.co_filename == str(script):
                at = trace.tb_lineno
            trace = trace.tb_next
        return [f"{script}:{at}: {type(error).__name__}: {error} (device memory reads as zeros here; --steps N stops after N steps)"]
    return []


def _count_steps(most: int) -> None:
    """Make optimizers raise _Enough at the end of step number `most`. Of this process's use only: it ends with the script."""
    left = [most]

    def counted(step: Callable[..., Any]) -> Callable[..., Any]:
        def call(self: Any, *args: Any, **kwargs: Any) -> Any:
            out = step(self, *args, **kwargs)
            left[0] -= 1
            if left[0] <= 0:
                raise _Enough  # a BaseException: the program's own `except Exception` must not stop it
            return out

        return call

    classes: list[Any] = [Optimizer]
    for cls in classes:
        classes += cls.__subclasses__()
        if "step" in cls.__dict__:
            cls.step = counted(cls.step)
