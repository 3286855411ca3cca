"""Automatic differentiation: `backward`, `grad` of any order, Function, grad modes."""

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
    grad_variables: Any = None,
    inputs: Any = None,
) -> None:
    """Add the gradient of the sum of `tensors` to `.grad` of the leaves; see Tensor.backward. `grad_variables` is grad_tensors' old name."""
    if grad_variables is not None:
        if grad_tensors is not None:
            raise TypeError("backward: grad_tensors and grad_variables are two names for one argument; give grad_tensors")
        grad_tensors = grad_variables
    outputs = engine.tensors_of("backward", "tensors", tensors)
    grads = [None] * len(outputs) if grad_tensors is None else engine.tensors_of("backward", "grad_tensors", grad_tensors, or_none=True)
    keep = create_graph if retain_graph is None else retain_graph
    engine.backward(
        outputs,
        grads,
        keep_graph=keep,
        create_graph=create_graph,
        inputs=None if inputs is None else engine.tensors_of("backward", "inputs", inputs),
    )


def Variable(data: Any, requires_grad: bool = False) -> Any:
    """A leaf on data's memory. Old code wraps tensors in it; a tensor itself does the same since."""
    t = nodes.make_tensor(engine.tensors_of("Variable", "data", data)[0].array)
    return t.requires_grad_() if requires_grad else t
