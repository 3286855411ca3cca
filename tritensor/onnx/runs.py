"""Runs to trace: the sample inputs, and with dynamic axes the same inputs at other sizes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tritensor.autograd.modes import no_grad
from tritensor.nn.inspection import preserve_state
from tritensor.nn.module import Module
from tritensor.nn.parameter import is_lazy
from tritensor.onnx.arguments import Axes, Inputs, resize_sample
from tritensor.onnx.errors import DynamicAxisError, OnnxExporterError
from tritensor.onnx.tracing import Trace, trace
from tritensor.tensor.core import Tensor

# What is added to each dynamic size in the runs: no two sizes go along with one another.
_STEPS = ((0, 1, 3, 7), (0, 3, 1, 5), (0, 5, 2, 1), (0, 2, 7, 3), (0, 7, 5, 2))
_UNITS = (1, 2, 4, 8, 16, 32, -1)  # a net that halves its images takes sizes of a multiple alone; one with a longest text no longer ones


def trace_runs(call: Callable[..., Any], inputs: Inputs, axes: list[Axes]) -> tuple[list[Trace], list[list[Tensor]]]:
    """The traces, and the inputs of each. Raises what the model raises on the sample, DynamicAxisError where it takes no other size."""
    # the state is kept over each traced run, so a lazy module must have its sizes before the first
    if isinstance(call, Module) and any(is_lazy(p) for p in (*call.parameters(), *call.buffers())):
        args, kwargs = inputs.assemble([x.detach().clone() for x in inputs.tensors])
        with no_grad():
            call(*args, **kwargs)  # a lazy module learns its sizes
    names = list(dict.fromkeys(name for own in axes for name in own.values()))
    if not names:
        return [trace(call, inputs.tensors, inputs.assemble)], [inputs.tensors]
    sample = {name: x.shape[axis] for x, own in zip(inputs.tensors, axes, strict=True) for axis, name in own.items()}
    _run(call, inputs, inputs.tensors)  # an error of the sample itself is the model's
    units = dict.fromkeys(names, 1)
    # most models take any size; only where one fails each size is tried by itself
    if not _accepts_runs(call, inputs, axes, sample, units):
        units = {name: _find_unit(call, inputs, axes, sample, name) for name in names}
    found, given = [], []
    for k in range(4):
        tensors = _resize_inputs(inputs, axes, _sizes_of_run(sample, units, k))
        try:
            found.append(trace(call, tensors, inputs.assemble, warned=k > 0))
        except (OnnxExporterError, Warning):  # a warning that the caller has made an error
            raise
        except Exception as error:
            raise DynamicAxisError(
                f"onnx.export: the model takes inputs of the sample's sizes, and not {_describe_inputs(inputs, tensors)}: {type(error).__name__}: {error}; "
                "leave the axis out of dynamic_axes, or give a sample from which each size can be varied by itself"
            ) from error
        given.append(tensors)
    return found, given


def _describe_inputs(inputs: Inputs, tensors: list[Tensor]) -> str:
    return ", ".join(f"{name} {tuple(x.shape)}" for name, x in zip(inputs.names, tensors, strict=True))


def _sizes_of_run(sample: Mapping[str, int], units: Mapping[str, int], k: int) -> dict[str, int]:
    """The size of each name in run k. A size of 1 broadcasts, and would hide what depends on it."""
    found = {}
    for i, (name, n) in enumerate(sample.items()):
        step = _STEPS[i % len(_STEPS)][k] + k * (i // len(_STEPS))
        unit = units[name]
        found[name] = max(n, 2) + step * unit if unit > 0 else n - step
    return found


def _resize_inputs(inputs: Inputs, axes: list[Axes], sizes: Mapping[str, int]) -> list[Tensor]:
    return [resize_sample(x, own, sizes) for x, own in zip(inputs.tensors, axes, strict=True)]


def _run(call: Callable[..., Any], inputs: Inputs, tensors: list[Tensor]) -> None:
    args, kwargs = inputs.assemble([x.detach().clone() for x in tensors])
    with no_grad(), preserve_state(call):
        call(*args, **kwargs)


def _accepts_runs(call: Callable[..., Any], inputs: Inputs, axes: list[Axes], sample: Mapping[str, int], units: Mapping[str, int]) -> bool:
    """Whether the model takes the largest and the smallest sizes of the runs."""
    try:
        for k in range(1, 4):
            _run(call, inputs, _resize_inputs(inputs, axes, _sizes_of_run(sample, units, k)))
    except Exception:
        return False
    return True


def _find_unit(call: Callable[..., Any], inputs: Inputs, axes: list[Axes], sample: Mapping[str, int], name: str) -> int:
    """By what one size can be varied while the others stay. Raises DynamicAxisError where by nothing."""
    first: Exception | None = None
    for unit in _UNITS:
        # the steps down go to 7, and a size of 1 broadcasts
        if unit < 0 and sample[name] <= 8:
            continue
        try:
            for step in (1, 2, 3, 5, 7):
                _run(call, inputs, _resize_inputs(inputs, axes, {**sample, name: max(sample[name], 2 if unit > 0 else 1) + step * unit}))
        except Exception as error:
            first = first or error
        else:
            return unit
    raise DynamicAxisError(
        f"onnx.export: the dynamic size {name!r} cannot be other than {sample[name]}: {type(first).__name__}: {first}; leave it out of dynamic_axes"
    ) from first
