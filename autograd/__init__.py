"""Automatic differentiation: `backward`, `grad` of any order, Function, grad modes."""

from collections.abc import Sequence
from typing import Any

from tritensor.autograd import engine
from tritensor.autograd import node as nodes
from tritensor.autograd.check import gradcheck as gradcheck
from tritensor.autograd.check import gradgradcheck as gradgradcheck
from tritensor.autograd.engine import grad as grad
from tritensor.autograd.function import Function as Function
from tritensor.autograd.modes import enable_grad as enable_grad
from tritensor.autograd.modes import inference_mode as inference_mode
from tritensor.autograd.modes import no_grad as no_grad
from tritensor.autograd.modes import set_grad_enabled as set_grad_enabled


def backward(
    tensors: Any,
    grad_tensors: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Sequence[Any] | None = None,
) -> None:
    """Add the gradient of the sum of `tensors` to `.grad` of the leaves; see Tensor.backward."""
    outputs = [tensors] if hasattr(tensors, "array") else list(tensors)
    grads = [None] * len(outputs) if grad_tensors is None else [grad_tensors] if hasattr(grad_tensors, "array") else list(grad_tensors)
    keep = create_graph if retain_graph is None else retain_graph
    engine.backward(outputs, grads, keep_graph=keep, create_graph=create_graph, inputs=inputs)


def Variable(data: Any, requires_grad: bool = False) -> Any:
    """A leaf on data's memory. Old code wraps tensors in it; a tensor itself does the same since."""
    t = nodes.make_tensor(data.array)
    return t.requires_grad_() if requires_grad else t
