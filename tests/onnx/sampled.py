"""One call of an op as a function of tensors, exported, checked and run by the reference evaluator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import tritensor as tt
from tritensor.onnx.program import ONNXProgram
from tritensor.ops.table import Op, Sample, ops
from tritensor.testing.questions.cases import cast


def call_of(op: Op, sample: Sample, dtype: str) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """A function of a sample's arrays that calls the op, and these as tensors."""
    values = [cast(x, dtype) if isinstance(x, np.ndarray) else x for x in sample.inputs]
    arrays = [tt.from_numpy(np.array(x)) for x in values if isinstance(x, np.ndarray)]
    attrs = dict(sample.attrs)
    if not op.inputs:
        attrs.setdefault("device", tt.device("cpu"))

    def call(*tensors: Any) -> Any:
        given = iter(tensors)
        return getattr(ops, op.name)(*[next(given) if isinstance(x, np.ndarray) else x for x in values], **attrs)

    return call, tuple(arrays)


def exported(op: Op, sample: Sample, dtype: str = "float32", **options: Any) -> tuple[ONNXProgram, list[np.ndarray], tuple[Any, ...]]:
    """The exported call, what the op itself gives, and the inputs."""
    call, tensors = call_of(op, sample, dtype)
    outs = call(*tensors)
    wanted = [np.array(y.numpy()) for y in (outs if isinstance(outs, tuple) else (outs,))]
    return tt.onnx.export(call, tensors, **options), wanted, tensors


def disagreement(got: list[np.ndarray], wanted: list[np.ndarray], tolerance: float) -> str:
    """Where the outputs are not the same; empty where they are."""
    for k, (a, b) in enumerate(zip(got, wanted, strict=True)):
        if a.dtype != b.dtype or a.shape != b.shape:
            return f"output {k} is {a.dtype} {a.shape}, the op's {b.dtype} {b.shape}"
        wide = [x if x.dtype.kind in "biu" else x.astype(np.float64) for x in (a, b)]
        if a.dtype.kind in "biu":
            if not np.array_equal(*wide):
                return f"output {k}: {a.reshape(-1)[:8]} and not {b.reshape(-1)[:8]}"
        elif not np.allclose(*wide, rtol=tolerance, atol=tolerance, equal_nan=True):
            with np.errstate(all="ignore"):
                at = np.argmax(~np.isclose(*wide, rtol=tolerance, atol=tolerance, equal_nan=True).reshape(-1))
            return f"output {k} at {at}: {wide[0].reshape(-1)[at]} and not {wide[1].reshape(-1)[at]}"
    return ""


def mistyped(program: ONNXProgram) -> list[str]:
    """Nodes whose inputs are of types that the standard does not allow, which onnx's checker lets pass."""
    import onnx

    model = onnx.shape_inference.infer_shapes(program.model_proto)
    kinds = {v.name: v.type.tensor_type.elem_type for v in (*model.graph.input, *model.graph.value_info, *model.graph.output)}
    kinds |= {t.name: t.data_type for t in model.graph.initializer}
    opset = {o.domain: o.version for o in model.opset_import}[""]
    found = []
    for node in model.graph.node:
        schema = onnx.defs.get_schema(node.op_type, opset, node.domain)
        allowed = {t.type_param_str: t.allowed_type_strs for t in schema.type_constraints}
        for k, name in enumerate(node.input):
            if name:
                slot = schema.inputs[min(k, len(schema.inputs) - 1)]
                kind = f"tensor({onnx.helper.tensor_dtype_to_string(kinds[name]).removeprefix('TensorProto.').lower()})"
                if kind not in allowed.get(slot.type_str, [slot.type_str]):
                    found.append(f"{node.op_type} ({opset}) takes no {kind} as {slot.name}")
    return found
