"""Queries for configs: ops are called on arrays that have no memory, and the configs that they ask for are written down; and configs by force."""

from __future__ import annotations

import contextlib
import difflib
import inspect
import zlib
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np

from tritensor.cuda import availability
from tritensor.cuda.runtime import active
from tritensor.cuda.virtual.virtual_gpu import VirtualGPU
from tritensor.ground.device import gpu
from tritensor.ground.errors import ArgumentError
from tritensor.ground.thread_state import here
from tritensor.ops.replay.recorder import NotThere, Recorder
from tritensor.ops.table import Op, Sample, Spec, registry
from tritensor.ops.table.description import bare_signature
from tritensor.ops.table.lookup import plugins_read
from tritensor.ops.tuning import config_choice
from tritensor.ops.tuning.config_choice import Choice
from tritensor.ops.tuning.gpu_calls import attributes, blank, corners, typed
from tritensor.ops.tuning.tunables import known


@contextlib.contextmanager
def imagined() -> Iterator[Recorder]:
    """Within the block device memory is only imagined and launches are written down. Where there is no GPU, device cuda is a virtual sm_90."""
    before, nobody = here.recorder, not active.started() and not availability.gpus()
    # kernels' rules ask the device for its size: without one they would raise instead of choosing
    if nobody:
        active.use(VirtualGPU(90))
    recorder = here.recorder = Recorder((), dry=True)
    try:
        yield recorder
    finally:
        here.recorder = before
        # or the next op would run on a GPU that is not there
        if nobody:
            active.use(None)


def choices(op: Op, sample: Sample, dtype: str) -> list[Choice]:
    """What forward and backward of one call ask for, in order. Floating inputs of 64 bits stand for `dtype`. Nothing runs on a device.

    A corner that looks into device memory from the host is followed up to there.
    """
    with imagined(), config_choice.noted() as found:
        on = gpu(here.index)
        with contextlib.suppress(NotThere):
            for _, run in corners(op, blank(typed(op, sample.inputs, dtype), on), attributes(op, sample, on)):
                run()
    seen = {(c.corner, c.kernel, c.key): c for c in found}  # backward's call of forward asks anew
    return list(seen.values())


@cache
def _kernels_of(op: Op) -> dict[str, Any]:
    """The kernels of an op that take a config, each with a rule's, seen in the calls that its record gives as samples."""
    found: dict[str, Any] = {}
    # a seed by name, so that two processes see the same samples
    for sample in op.samples(np.random.default_rng(zlib.crc32(op.name.encode()))):
        for dtype in (op.dtypes[0], op.dtypes[-1]):
            found.update({c.kernel: c.heuristic for c in choices(op, sample, dtype)})
    return found


def find(op: str) -> Op:
    """The record of an op. Raises ArgumentError with the nearest names."""
    record: Op | None = registry.get(op)
    if record is not None:
        return record
    with plugins_read():
        record = registry.get(op)
        if record is None:
            near = difflib.get_close_matches(op, {*registry, *known}, 3)
            said = f"did you mean {', '.join(near)}?" if near else "docs/ops.md lists them"
            raise ArgumentError(f"tuning: no op and no kernel is called {op!r}; {said}")
    return record


def force(op: str, config: Any) -> contextlib.AbstractContextManager[None]:
    """`with tt.tuning.force("softmax", RowTile(1, 1024, True, 8)): ...`: within the block launches take this config.

    Args:
        op: the name of a kernel that several ops share (matmul, reduction, elementwise, ...: all their launches take it), else of an op (sum, add,
            linear, my_op: the launches of that op alone, forward and backward).
        config: of the class that the kernel's configs have; `config(op, ...)` shows one. Of an op's kernels those take it whose configs are of this
            class. Or a function `(key, default) -> config` that changes what the rule says.
    One setting for all threads. Blocks nest, the innermost counts. Raises ArgumentError, before anything runs, for an unknown name, a config of another
    class, or fields that the kernel cannot run with; in a launch, for a config that does not fit its shape.
    """
    if op not in known and op not in registry.index:
        find(op)  # may load the file that declares it
    if op in known:
        tunable = known[op]
        if not callable(config):
            if type(config) is not tunable.kind:
                raise ArgumentError(f"tuning.force: {op} takes a {_show_class(tunable.kind)}, not {config!r}")
            if wrong := tunable.problem(config, None):
                raise ArgumentError(f"tuning.force: {op} with {config}: {wrong}")
        return config_choice.forced(**{op: config})
    record = find(op)
    kernels = _kernels_of(record)
    if not kernels:
        raise ArgumentError(f"tuning.force: {op} has no config: its kernels have one form, or it launches none of its own")
    if not callable(config):
        fitting = [k for k, model in kernels.items() if type(model) is type(config)]
        if not fitting:
            takes = ", ".join(f"{_show_class(type(model))} for {k}" for k, model in kernels.items())
            raise ArgumentError(f"tuning.force: {op} has no {type(config).__name__}, and {config!r} was given; it takes {takes}")
        for kernel in fitting:
            if kernel in known and (wrong := known[kernel].problem(config, None)):
                raise ArgumentError(f"tuning.force: {op} with {config}: {wrong}")
    return config_choice.forced_for(op, config)


def _show_class(kind: type) -> str:
    """A class of configs with its fields: "RowTile(BM, BN, whole, warps)"."""
    return f"{kind.__name__}({', '.join(kind._fields)})" if hasattr(kind, "_fields") else kind.__name__


def config(op: str, *inputs: Any, **attrs: Any) -> list[Choice]:
    """What forward and backward of `ops.<op>(*inputs, **attrs)` would take, each with its source: forced, tuned file, heuristic. Nothing is run.

    Args:
        op: the name of an op of the table.
        inputs: tensors or arrays on any device, of which shape and type count; (shape, dtype) for one that need not exist; numbers; None.
        attrs: the op's attributes, as its record has them.
    Raises ArgumentError for an unknown op and for arguments that its signature has not; what the op says of shapes and types that it does not take.
    """
    record = find(op)
    signature = bare_signature(record, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    signature = signature.replace(  # the device is the current one
        parameters=[p.replace(default=None) if p.name == "device" else p for p in signature.parameters.values()]
    )
    try:
        signature.bind(*inputs, **attrs)
    except TypeError as error:
        raise ArgumentError(f"tuning.config: {op}: {error}; its signature is {op}{signature}") from None
    specs = [_spec(x) for x in inputs]
    if record.forward is None:
        return []
    arrays = [x for x in specs if isinstance(x, Spec)]
    record.shape(*specs, **{**record.attrs, **attributes(record, Sample(**attrs), gpu(here.index)), **attrs})
    # float64 stands for the type under test in samples, and for itself in a call of the user's
    double = next((x.dtype for x in arrays if x.dtype == np.float64), None)
    return choices(record, Sample(*specs, **attrs), "float64" if double is not None else record.dtypes[0])


def _spec(x: Any) -> Any:
    """What is known of an input: the shape and type of an array, a tensor, or a (shape, dtype)."""
    from tritensor.ground import dtypes

    x = getattr(x, "_array", x)
    if isinstance(x, tuple) and len(x) == 2 and isinstance(x[0], (tuple, list)):
        return Spec(tuple(x[0]), dtypes.as_dtype(x[1]).numpy)
    return Spec(tuple(x.shape), np.dtype(x.dtype)) if hasattr(x, "shape") and hasattr(x, "dtype") else x
