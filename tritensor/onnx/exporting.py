"""torch.onnx.export: a model and sample inputs to an ONNX model, in the mode that is asked for."""

from __future__ import annotations

import contextlib
import enum
import os
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from tritensor.ground.errors import ArgumentError
from tritensor.ground.extras import extra
from tritensor.ground.pytree import tree_leaves
from tritensor.ground.thread_state import run_waiting
from tritensor.nn.inspection import preserve_modes
from tritensor.nn.module import Module
from tritensor.nn.parameter import is_lazy
from tritensor.onnx import arguments
from tritensor.onnx.arguments import Inputs
from tritensor.onnx.building import Builder, BuildOptions
from tritensor.onnx.errors import OnnxExporterError
from tritensor.onnx.graph import Value
from tritensor.onnx.merging import MergedTrace
from tritensor.onnx.program import ONNXProgram
from tritensor.onnx.runs import trace_runs
from tritensor.onnx.tracing import Trace
from tritensor.onnx.tracing.record import Item
from tritensor.onnx.tracing.untraced_values import warn_of_trace
from tritensor.ops.array import to_host
from tritensor.ops.lazy_array import at_once
from tritensor.tensor.core import Tensor


class OperatorExportTypes(enum.Enum):
    """Which operators are written: those of ONNX. The others are PyTorch's, for scripts that hand them on."""

    ONNX, ONNX_ATEN, ONNX_ATEN_FALLBACK, ONNX_FALLTHROUGH = range(4)


class TrainingMode(enum.Enum):
    """EVAL: in eval mode; PRESERVE: as the model is; TRAINING: in training mode."""

    EVAL, PRESERVE, TRAINING = range(3)


@contextlib.contextmanager
def select_model_mode_for_export(model: Any, mode: TrainingMode = TrainingMode.EVAL) -> Iterator[None]:
    """Inside, a module is in the mode; afterwards each of its modules in its own again."""
    name = getattr(mode, "name", None)
    if name not in TrainingMode.__members__:
        raise ArgumentError(f"onnx.export: training is {mode!r}; give TrainingMode.EVAL, PRESERVE or TRAINING")
    # a function has no mode
    if not isinstance(model, Module) or name == "PRESERVE":
        yield
        return
    with preserve_modes(model):
        model.train(name == "TRAINING")
        yield


OLDEST_OPSET, DEFAULT_OPSET = 13, 20


class _Exporting(threading.local):
    now = False


_exporting = _Exporting()


def is_in_onnx_export() -> bool:
    """Whether a model is being exported in this thread: its forward may then take another road."""
    return _exporting.now


def export(
    model: Any, args: Any = (), f: Any = None, *, kwargs: Mapping[str, Any] | None = None, verbose: bool | None = None,
    input_names: Sequence[str] | None = None, output_names: Sequence[str] | None = None, opset_version: int | None = None, dynamo: bool = True,
    external_data: bool | None = None, dynamic_shapes: Any = None, custom_translation_table: Mapping[Any, Any] | None = None, report: bool = False,
    optimize: bool = True, verify: bool = False, profile: bool = False, dump_exported_program: bool = False, artifacts_dir: Any = ".",
    export_params: bool = True, keep_initializers_as_inputs: bool = False, dynamic_axes: Mapping[str, Any] | None = None,
    training: TrainingMode = TrainingMode.EVAL, operator_export_type: OperatorExportTypes = OperatorExportTypes.ONNX,
    do_constant_folding: bool = True, custom_opsets: Mapping[str, int] | None = None, export_modules_as_functions: Any = False,
    autograd_inlining: bool = True,
) -> ONNXProgram:  # fmt: skip
    """Write a model as ONNX: it is run on the sample `args`, and every op that it calls becomes operators of ONNX (extra `tritensor[onnx]`).

    Args:
        model: a Module, or any function of tensors.
        args, kwargs: sample inputs; tensors, nested in lists, tuples and dicts, are inputs of the graph, all else is fixed.
        f: a path or a stream to write to; None to write nothing.
        input_names, output_names: names of the first inputs and outputs; those of forward's parameters, and "output", unless given.
        opset_version: of the operators, 13 to the newest that the installed onnx knows; 20 unless given.
        dynamic_axes: `{"input": {0: "batch"}}`, or `{"input": [0]}`: sizes that may be others than the sample's. The model is traced with
            several, and what varies with them is computed in the graph.
        dynamic_shapes: the same in torch.export's form, by forward's arguments: `{"x": {0: "batch"}}`.
        external_data: True for weights in a file beside, `f + ".data"`; None where they have more than 2 GB.
        export_params: False leaves the weights out of the file; they are inputs.
        keep_initializers_as_inputs: let weights be inputs as well.
        do_constant_folding: False: what is computed of weights alone stays computed in the graph.
        training: TrainingMode.EVAL exports in eval mode, PRESERVE as the model is, TRAINING in training mode (dropout drops).
        custom_translation_table: op names (or ops) to functions as `onnx.register` takes them, for this export.
        custom_opsets: versions of other domains that such functions use.
        verify: run the reference evaluator on the sample (and on every size that was traced) and compare.
        report: write a page of what became of each op to artifacts_dir.
        verbose: note each op's line of the program in the graph.
        dynamo, optimize, profile, dump_exported_program, export_modules_as_functions, autograd_inlining: taken as PyTorch takes them; without meaning here.

    Returns the ONNXProgram. Raises UnsupportedOperatorError, which lists every op that ONNX has nothing for; DynamicAxisError for an axis that
    cannot stay dynamic; OnnxExporterError for what cannot be an output, and where `verify` finds another result; OSError for a path that cannot be
    written, before anything is traced. Warns (TracerWarning) where Python reads values that depend on the inputs.

    >>> program = tt.onnx.export(nn.Linear(3, 2), (tt.ones(1, 3),), "linear.onnx", input_names=["x"], dynamic_axes={"x": {0: "batch"}})
    >>> program(tt.ones(5, 3))[0].shape
    tritensor.Size([5, 2])
    """
    extra("onnx", "onnx.export", "onnx", "tritensor[onnx]")
    opset = _require_opset(opset_version)
    if not callable(model):
        raise TypeError(f"onnx.export: model is a {type(model).__name__}; give a Module or a function")
    if operator_export_type is not OperatorExportTypes.ONNX and getattr(operator_export_type, "name", "") != "ONNX":
        raise ArgumentError(f"onnx.export: operator_export_type is {operator_export_type}; there are operators of ONNX alone, leave it out")
    _refuse_path(f)
    inputs = Inputs(model, args, kwargs, input_names)
    _separate_names(inputs, model, input_names)
    axes = arguments.read_dynamic_axes(inputs, dynamic_axes, dynamic_shapes, output_names)
    custom = {k if isinstance(k, str) else getattr(k, "__name__", str(k)): f for k, f in (custom_translation_table or {}).items()}
    fold = do_constant_folding and export_params
    run_waiting()  # of a lazy program: the trace sees tensors that are there
    state = [x for x in (*model.parameters(), *model.buffers()) if not is_lazy(x)] if isinstance(model, Module) else []
    sample = [x for x in tree_leaves((args, kwargs)) if isinstance(x, Tensor)]
    with _in_export(), select_model_mode_for_export(model, training), at_once(*state, *sample):
        found, given = trace_runs(model, inputs, axes)
    _warn_of_writes(found[0], inputs)
    merged = MergedTrace(found)
    _refuse_outputs(merged.outputs)
    merged.outputs = [y for y in merged.outputs if isinstance(y, Item)]
    builder = Builder(merged, inputs.names, BuildOptions(opset, fold, bool(verbose), custom)).run()
    outputs = builder.outputs(arguments.complete_output_names(output_names, len(merged.outputs)))
    builder.prune(outputs)
    g = builder.graph
    _name_output_axes(outputs, dynamic_axes)
    sizes = {x.shape[axis]: name for x, own in zip(builder.inputs, axes, strict=True) for axis, name in own.items()}
    program = ONNXProgram(g.nodes, builder.inputs, outputs, g.initializers, {"": opset, **(custom_opsets or {})}, inputs, sizes)
    # model_proto and later saves follow what was asked for here
    program.kept_as_inputs, program.with_initializers = keep_initializers_as_inputs, export_params
    _check(program)
    if verify:
        _verify(program, found, given)
    if report:
        _write_report(program, builder, artifacts_dir)
    if f is not None:
        program.save(
            f, include_initializers=export_params, keep_initializers_as_inputs=keep_initializers_as_inputs, external_data=external_data
        )
    return program


# -- before
def _require_opset(asked: int | None) -> int:
    from onnx.defs import onnx_opset_version

    newest = onnx_opset_version()
    if asked is None:
        return min(DEFAULT_OPSET, newest)
    if not isinstance(asked, int) or isinstance(asked, bool) or not OLDEST_OPSET <= asked <= newest:
        raise ArgumentError(
            f"onnx.export: opset_version is {asked!r}; give one of {OLDEST_OPSET} to {newest}, the newest that the installed onnx knows"
        )
    return asked


def _refuse_path(f: Any) -> None:
    """Raise OSError for a path that cannot be written, TypeError for what is none."""
    if f is None or hasattr(f, "write"):
        return
    try:
        path = os.fspath(f)
    except TypeError:
        raise TypeError(f"onnx.export: f is a {type(f).__name__}; give a path, a stream, or None to write nothing") from None
    folder = os.path.dirname(os.path.abspath(path))
    # a trace may take minutes: a path that cannot be written is refused before it
    if os.path.isdir(path):
        raise IsADirectoryError(f"onnx.export: {path} is a folder; give the name of a file in it")
    if not os.path.isdir(folder):
        raise FileNotFoundError(f"onnx.export: {path}: there is no folder {folder}; make it before")
    if not os.access(path if os.path.exists(path) else folder, os.W_OK):
        raise PermissionError(f"onnx.export: {path} cannot be written; give another path, or ask for the right to write there")


def _separate_names(inputs: Inputs, model: Any, given: Sequence[str] | None) -> None:
    """An input has not the name of a weight: one that was given is refused, our own gets another."""
    state = set(model.state_dict()) if isinstance(model, Module) else set()
    for k, name in enumerate(inputs.names):
        # one name would stand for two values, an input and a weight
        if name in state and k < len(given or ()):
            raise ArgumentError(
                f"onnx.export: input_names: {name!r} is a tensor of the module, which keeps its name in the graph; give another"
            )
        while inputs.names[k] in state:
            inputs.names[k] += "_"


@contextlib.contextmanager
def _in_export() -> Iterator[None]:
    # an export may run inside a forward that is exported: the outer one stays as it was
    before, _exporting.now = _exporting.now, True
    try:
        yield
    finally:
        _exporting.now = before


# -- after the trace
def _name_output_axes(outputs: Sequence[Value], axes: Mapping[str, Any] | None) -> None:
    """Give axes of outputs whose sizes vary the names that dynamic_axes has for them."""
    for y in outputs:
        own = (axes or {}).get(y.name)
        y.axis_names = dict(own) if isinstance(own, Mapping) else {}


def _warn_of_writes(first: Trace, inputs: Inputs) -> None:
    own = {name: line for name, line in first.written.items() if not name.startswith("#")}
    if own:
        name = next(iter(own))
        warn_of_trace(
            f"onnx.export: forward writes {', '.join(own)} ({own[name]}). A graph of ONNX keeps nothing between two runs: it begins with what {name} holds "
            "now, every time; return it as an output, and give it as an input, to carry it on"
        )
    for name, line in first.written.items():
        if name.startswith("#"):
            warn_of_trace(
                f"onnx.export: the model writes into its input {inputs.names[int(name[1:])]!r} ({line}). A graph of ONNX writes nothing: its outputs are "
                "those of the model, its inputs stay as they are"
            )


def _refuse_outputs(outputs: list[Any]) -> None:
    wrong = [y for y in outputs if not isinstance(y, Item) and y is not None]
    if wrong:
        raise OnnxExporterError(
            f"onnx.export: the model returns a {type(wrong[0]).__name__} ({str(wrong[0])[:40]}) among its outputs; a graph gives tensors alone (in lists, "
            "tuples, dicts), return it as one or not at all"
        )
    if not any(isinstance(y, Item) for y in outputs):
        raise OnnxExporterError("onnx.export: the model returns no tensor; a graph needs an output")


def _check(program: ONNXProgram) -> None:
    """Raise OnnxExporterError for a graph that onnx's checker refuses: a translation that does not fit the version, or one of yours."""
    import onnx

    try:
        program.check()
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError) as error:
        raise OnnxExporterError(
            f"onnx.export: onnx's checker refuses the graph with operators of version {program.opsets['']}: {str(error).strip()[:400]}. Nothing was written; "
            "give another opset_version, or a translation that fits it"
        ) from error


def _verify(program: ONNXProgram, found: list[Trace], given: list[list[Tensor]]) -> None:
    """Compare with what the traced runs gave, within what float32 allows."""
    for run, tensors in zip(found, given, strict=True):
        values = [v for v, y in zip(run.values, run.outputs, strict=True) if isinstance(y, Item)]
        got = program.evaluate([to_host(x._array) for x in tensors])
        for name, a, b in zip(program.output_names, got, values, strict=True):
            # 16 bits keep three digits, and sums in another order lose some
            tolerance = 1e-4 if b.dtype.itemsize >= 4 else 2e-2
            left, right = (x.astype(np.float64) if x.dtype.kind not in "biu" else x for x in (a, b))
            if a.shape != b.shape or not np.allclose(left, right, rtol=tolerance, atol=tolerance, equal_nan=True):
                how = f"shapes {a.shape} and {b.shape}" if a.shape != b.shape else f"differ by up to {np.nanmax(np.abs(left - right)):.3g}"
                raise OnnxExporterError(
                    f"onnx.export: verify: output {name!r} of the graph is not the model's for inputs {[tuple(x.shape) for x in tensors]}: {how}"
                )


def _write_report(program: ONNXProgram, builder: Builder, folder: Any) -> None:
    path = os.path.join(os.fspath(folder), f"onnx_export_{time.strftime('%Y-%m-%d_%H-%M-%S')}.md")
    lines = [
        "# ONNX export",
        "",
        f"Operators of version {builder.options.opset}; {program!r}; {program.bytes_of_weights()} bytes of weights.",
        "",
    ]
    lines += ["| op | module | line | shapes |", "|---|---|---|---|"]
    for c in builder.find_live_calls():
        shapes = ", ".join(str(r.shape) for r in c.results)
        lines.append(f"| {c.name} | {c.scope} | {c.line} | {shapes} |")
    with open(path, "w") as file:
        file.write("\n".join(lines) + "\n")
