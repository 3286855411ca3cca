"""RNNCell, LSTMCell and GRUCell: one time step of a recurrent net."""

from __future__ import annotations

import math
from typing import Any

from tritensor.ground.errors import ShapeError
from tritensor.nn import init
from tritensor.nn.functional import recurrent as F
from tritensor.nn.functional.recurrent import Activation
from tritensor.nn.module import Module
from tritensor.nn.parameter import Parameter, empty_parameter
from tritensor.ops.table import ops
from tritensor.tensor.core import Tensor


class RNNCellBase(Module):
    """What the cells share: weight_ih (gates x hidden, in), weight_hh (gates x hidden, hidden) and biases, uniform on +-1 / sqrt(hidden_size)."""

    weight_ih: Parameter
    weight_hh: Parameter
    bias_ih: Parameter | None
    bias_hh: Parameter | None

    def __init__(self, input_size: int, hidden_size: int, bias: bool, num_chunks: int, device: Any = None, dtype: Any = None) -> None:
        super().__init__()
        if input_size < 0 or hidden_size < 0:
            raise ShapeError(
                f"{type(self).__name__}: input_size {input_size} and hidden_size {hidden_size} must not be negative; give sizes of 0 or more"
            )
        self.input_size, self.hidden_size, self.bias = input_size, hidden_size, bias
        rows = num_chunks * hidden_size
        self.weight_ih = empty_parameter(rows, input_size, device=device, dtype=dtype)
        self.weight_hh = empty_parameter(rows, hidden_size, device=device, dtype=dtype)
        for name in ("bias_ih", "bias_hh"):  # two, although they are added: PyTorch's state dicts have both
            self.register_parameter(name, empty_parameter(rows, device=device, dtype=dtype) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the initial values anew."""
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0.0  # a cell of no size is allowed, as in PyTorch
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def _weights(self) -> tuple[Any, ...]:
        return self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh

    def _add_batch(self, input: Tensor, hidden: Any, states: int) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Input and states with a batch; zeros where no state was given."""
        name = type(self).__name__
        if input.dim() not in (1, 2):
            raise ShapeError(f"{name}: Expected input to be 1D or 2D, got {input.dim()}D instead; give (batch, {self.input_size})")
        for k, h in enumerate(hidden or ()):  # before a batch is added: messages are about what was given
            if h.dim() not in (1, 2):
                label = f"hx[{k}]" if states > 1 else "hidden"
                raise ShapeError(f"{name}: Expected {label} to be 1D or 2D, got {h.dim()}D instead; give (batch, {self.hidden_size})")
        single = input.dim() == 1
        input = input.unsqueeze(0) if single else input
        if hidden is None:
            zero = ops.full(shape=(input.shape[0], self.hidden_size), value=0, dtype=input._array.dtype, device=input.device)
            return input, (zero,) * states
        return input, tuple(h.unsqueeze(0) for h in hidden) if single else tuple(hidden)

    def extra_repr(self) -> str:
        said = f"{self.input_size}, {self.hidden_size}" + ("" if self.bias is True else f", bias={self.bias}")
        nonlinearity = self.__dict__.get("nonlinearity", "tanh")  # an RNNCell's alone; a subclass may print before it is set
        return said if nonlinearity == "tanh" else f"{said}, nonlinearity={nonlinearity}"


class RNNCell(RNNCellBase):
    """h' = act(W_ih x + b_ih + W_hh h + b_hh): input (batch, input_size) or (input_size,), hx alike. `nonlinearity` as RNN's."""

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, nonlinearity: Activation = "tanh", device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__(input_size, hidden_size, bias, num_chunks=1, device=device, dtype=dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        act = self.nonlinearity
        if act not in ("tanh", "relu", None) and not callable(act):  # asked in the call, as in PyTorch: a program may set the attribute
            raise RuntimeError(f"RNNCell: Unknown nonlinearity: {act}; give 'tanh', 'relu', a function or None")
        x, (h,) = self._add_batch(input, None if hx is None else (hx,), 1)
        y = F.rnn_cell("RNNCell", act, x, h, *self._weights())
        return y if input.dim() == 2 else y.squeeze(0)


class LSTMCell(RNNCellBase):
    """(h, c) after one step of long short-term memory: input (batch, input_size) or (input_size,), hx = (h, c)."""

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None) -> None:
        super().__init__(input_size, hidden_size, bias, num_chunks=4, device=device, dtype=dtype)

    def forward(self, input: Tensor, hx: Any = None) -> tuple[Tensor, Tensor]:
        if hx is not None and (not isinstance(hx, tuple | list) or len(hx) != 2):
            raise TypeError(f"LSTMCell: hx is a {type(hx).__name__}; give (h, c)")
        x, states = self._add_batch(input, hx, 2)
        h, c = F.lstm_cell(x, states, *self._weights())
        return (h, c) if input.dim() == 2 else (h.squeeze(0), c.squeeze(0))


class GRUCell(RNNCellBase):
    """h' = (1 - z) n + z h, one step of a gated recurrent unit: input (batch, input_size) or (input_size,), hx alike."""

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None) -> None:
        super().__init__(input_size, hidden_size, bias, num_chunks=3, device=device, dtype=dtype)

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        x, (h,) = self._add_batch(input, None if hx is None else (hx,), 1)
        y = F.gru_cell(x, h, *self._weights())
        return y if input.dim() == 2 else y.squeeze(0)
