"""A model exported, checked, and compared with itself on the sample and on inputs of other sizes."""

from __future__ import annotations

from typing import Any

import numpy as np

import tritensor as tt
from tritensor.ground.pytree import tree_flatten
from tritensor.onnx.arguments import resize_sample
from tritensor.onnx.program import ONNXProgram
from tritensor.ops.array import to_host

Axes = dict[int, dict[int, str]]  # by an input's place the names of its dynamic sizes


def outputs_of(model: Any, args: tuple[Any, ...]) -> list[np.ndarray]:
    """What the model itself gives, flat."""
    with tt.no_grad():
        found = model(*[x.clone() if isinstance(x, tt.Tensor) else x for x in args])
    return [np.array(to_host(y._array)) for y in tree_flatten(found)[0] if isinstance(y, tt.Tensor)]


def compare(program: ONNXProgram, model: Any, args: tuple[Any, ...], tolerance: float = 1e-4) -> None:
    """Hold the graph's outputs for args to the model's."""
    tensors = [x for x in tree_flatten(args)[0] if isinstance(x, tt.Tensor)]
    with np.errstate(all="ignore"):
        got = program.evaluate([to_host(x._array) for x in tensors])
    wanted = outputs_of(model, args)
    assert len(got) == len(wanted)
    for a, b in zip(got, wanted, strict=True):
        assert a.dtype == b.dtype
        assert a.shape == b.shape
        if a.dtype.kind not in "biu":
            a, b = a.astype(np.float64), b.astype(np.float64)
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


def agree(
    model: Any, args: tuple[Any, ...], axes: Axes | None = None, *, more: int = 4, tolerance: float = 1e-4, **options: Any
) -> ONNXProgram:
    """Export with some axes dynamic; compare on the sample, and on inputs that are larger by `more` along these."""
    if isinstance(model, tt.nn.Module):
        model.eval()
    names = [f"x{k}" for k in range(len(args))]
    dynamic = {names[k]: own for k, own in (axes or {}).items()}
    program = tt.onnx.export(model, args, input_names=names, dynamic_axes=dynamic or None, **options)
    compare(program, model, args, tolerance)
    if axes:
        sizes = {name: args[k].shape[axis] + more for k, own in axes.items() for axis, name in own.items()}
        compare(program, model, tuple([resize_sample(x, axes.get(k, {}), sizes) for k, x in enumerate(args)]), tolerance)
        for k, own in axes.items():
            dims = program.model_proto.graph.input[k].type.tensor_type.shape.dim
            assert {axis: dims[axis].dim_param for axis in own} == own
    return program
