"""Automatic differentiation: `backward`, `grad` of any order, Function, grad modes."""

from typing import Any

from tritensor.autograd import engine
from tritensor.autograd.anomaly_mode import detect_anomaly as detect_anomaly
from tritensor.autograd.anomaly_mode import set_detect_anomaly as set_detect_anomaly
from tritensor.autograd.engine import grad as grad
from tritensor.autograd.function import Function as Function
from tritensor.autograd.gradcheck import gradcheck as gradcheck
from tritensor.autograd.gradcheck import gradgradcheck as gradgradcheck
from tritensor.autograd.modes import enable_grad as enable_grad
from tritensor.autograd.modes import enforce_grad_layout_policy as enforce_grad_layout_policy
from tritensor.autograd.modes import inference_mode as inference_mode
from tritensor.autograd.modes import no_grad as no_grad
from tritensor.autograd.modes import set_grad_enabled as set_grad_enabled
from tritensor.autograd.modes import set_multithreading_enabled as set_multithreading_enabled
from tritensor.autograd.task import list_start_gradients
from tritensor.autograd.variable import Variable as Variable


def variable(*args: Any, **kwargs: Any) -> Any:
    """Raises RuntimeError: a function of PyTorch's first days, which `tensor` took the place of."""
    raise RuntimeError("autograd.variable(...) is deprecated, use tensor(...) instead, or Variable(...) for a tensor that there is")


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
    grads = list_start_gradients("backward", "tensors", outputs, "grad_tensors", grad_tensors)
    keep = create_graph if retain_graph is None else retain_graph  # PyTorch's default: who differentiates again needs the graph
    leaves = None if inputs is None else engine.tensors_of("backward", "inputs", inputs)
    engine.backward(outputs, grads, keep_graph=keep, create_graph=create_graph, inputs=leaves)
