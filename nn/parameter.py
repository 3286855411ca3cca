"""Parameter and Buffer: the tensors that a Module registers when they are assigned to it."""

from __future__ import annotations

from typing import Any

from tritensor.array import empty
from tritensor.device import as_device
from tritensor.dtypes import as_dtype, default_float
from tritensor.tensor.copying import compact
from tritensor.tensor.core import Tensor, as_tensor


class Parameter(Tensor):
    """A leaf tensor that a Module counts among its parameters. `Parameter(data=None, requires_grad=True)`.

    Shares memory with `data`, which is floating unless requires_grad=False. Results of ops on it are plain Tensors.
    Raises GradError for data of another type.
    """

    heading = "Parameter containing:\n"

    def __init__(self, data: Any = None, requires_grad: bool = True) -> None:
        _share(self, data)
        if requires_grad:
            self.requires_grad_()

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        found = self._deepcopied(memo, lambda array, _: compact(array))  # a parameter is the memory of its own
        found.grad = None  # the copy of a model starts without gradients
        return found


class Buffer(Tensor):
    """A tensor that a Module counts among its buffers: state that is saved and moved, and not learned.

    `Buffer(data=None, persistent=True)`; persistent=False keeps it out of the state_dict.
    """

    def __init__(self, data: Any = None, *, persistent: bool = True) -> None:
        _share(self, data)
        self.persistent = persistent


def _share(leaf: Tensor, data: Any) -> None:
    """Put `leaf` on the memory, and under the write counter, of `data`."""
    if data is not None and not isinstance(data, Tensor):
        raise TypeError(f"{type(leaf).__name__}: data is a {type(data).__name__}; give a tensor (tritensor.tensor(...))")
    source = as_tensor([] if data is None else data).detach()
    leaf.array = source.array
    leaf.version = source.version


def empty_parameter(*shape: int, device: Any = None, dtype: Any = None) -> Parameter:
    """A parameter of `shape` whose values are not set yet: layers make theirs with it and then initialise them."""
    kind = default_float() if dtype is None else as_dtype(dtype)
    return Parameter(Tensor.wrap(empty(shape, kind.numpy, as_device(device))))
