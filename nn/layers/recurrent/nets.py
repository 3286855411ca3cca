"""RNN, LSTM and GRU: layers of recurrent nets over padded and packed sequences."""

from __future__ import annotations

import math
import numbers
import warnings
from typing import Any

from tritensor.ground.errors import ArgumentError, ShapeError
from tritensor.nn import init
from tritensor.nn.functional.recurrent import Activation, Net, read_batch_sizes, run_layers, run_padded
from tritensor.nn.module import Module
from tritensor.nn.parameter import Parameter, empty_parameter
from tritensor.ops.table import ops
from tritensor.tensor.core import Tensor

_GATES = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1, "RNN": 1}


class RNNBase(Module):
    """What RNN, LSTM and GRU share: parameters `weight_ih_l0`, `weight_hh_l0`, `bias_ih_l0`, `bias_hh_l0`, `weight_hr_l0`, with `_reverse` backwards.

    All start uniform on +-1 / sqrt(hidden_size).
    """

    def __init__(
        self, mode: str, input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True, batch_first: bool = False,
        dropout: float = 0.0, bidirectional: bool = False, proj_size: int = 0, device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        name = type(self).__name__
        _check_arguments(name, input_size, hidden_size, num_layers, bias, batch_first, dropout, proj_size)
        if mode not in _GATES:
            raise ValueError(f"{name}: Unrecognized RNN mode: {mode}; give one of {', '.join(_GATES)}")
        if dropout > 0 and num_layers == 1:
            warnings.warn(
                f"{name}: dropout={dropout} drops after all but the last recurrent layer, so with num_layers=1 nothing is dropped; "
                "give more layers, or dropout=0",
                stacklevel=3,
            )
        self.mode, self.input_size, self.hidden_size, self.num_layers = mode, input_size, hidden_size, num_layers
        self.bias, self.batch_first, self.dropout, self.bidirectional = bias, batch_first, float(dropout), bidirectional
        self.proj_size = proj_size
        self._all_weights: list[list[str]] = []  # names, not tensors: a move may put others in their places
        rows, inner = _GATES[mode] * hidden_size, proj_size or hidden_size
        for layer in range(num_layers):
            for suffix in ("", "_reverse") if bidirectional else ("",):
                shapes = {"weight_ih": (rows, inner * (1 + bidirectional) if layer else input_size), "weight_hh": (rows, inner)}
                if bias:
                    shapes |= {"bias_ih": (rows,), "bias_hh": (rows,)}  # type: ignore[dict-item]
                if proj_size:
                    shapes["weight_hr"] = (proj_size, hidden_size)
                named = {f"{what}_l{layer}{suffix}": shape for what, shape in shapes.items()}
                for which, shape in named.items():
                    # in PyTorch's order, that of its state dicts and of parameters()
                    self.register_parameter(which, empty_parameter(*shape, device=device, dtype=dtype))
                self._all_weights.append(list(named))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the initial values anew."""
        bound = 1.0 / math.sqrt(self.hidden_size)
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def flatten_parameters(self) -> None:
        """Nothing: there is no copy of the weights whose order could matter. Scripts call it before a GPU run."""

    @property
    def all_weights(self) -> list[list[Parameter]]:
        """The parameters of each layer and direction."""
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    @property
    def _flat_weights_names(self) -> list[str]:
        return [name for names in self._all_weights for name in names]

    @property
    def _flat_weights(self) -> list[Parameter]:
        return [weight for weights in self.all_weights for weight in weights]

    def _make_net(self) -> Net:
        # a program may set `nonlinearity`, or load a module that has only its mode
        kind, act = (self.mode, None) if self.mode in ("LSTM", "GRU") else ("RNN", getattr(self, "nonlinearity", self.mode[4:].lower()))
        return Net(kind, self.num_layers, self.dropout, self.training, self.bidirectional, self.bias, act)

    def _state_sizes(self) -> tuple[int, ...]:
        """The last sizes of the states."""
        return (self.proj_size or self.hidden_size, *([self.hidden_size] if self.mode == "LSTM" else []))

    # checks, under the names that PyTorch's subclasses override
    def check_input(self, input: Tensor, batch_sizes: Tensor | None) -> None:
        """Refuse an input of another type or of other sizes than the weights take."""
        name, weight = type(self).__name__, self._flat_weights[0]  # all weights are of one type: the first speaks for them
        if input.dtype != weight.dtype:
            raise ArgumentError(
                f"{name}: RNN input dtype ({input.dtype}) does not match weight dtype ({weight.dtype}); convert the input with .to(weight.dtype) "
                "or the model with .to(input.dtype)"
            )
        expected = 2 if batch_sizes is not None else 3
        if input.dim() != expected:
            raise ShapeError(f"{name}: input must have {expected} dimensions, got {input.dim()}; reshape it")
        if input.shape[-1] != self.input_size:
            raise ShapeError(
                f"{name}: input {tuple(input.shape)}: input.size(-1) must be equal to input_size. Expected {self.input_size}, got {input.shape[-1]}; "
                "make the layer with that input_size, or transpose the input"
            )

    def get_expected_hidden_size(self, input: Tensor, batch_sizes: Tensor | None) -> tuple[int, int, int]:
        """(layers x directions, batch, elements) of the first state."""
        batch = int(batch_sizes[0]) if batch_sizes is not None else input.shape[0 if self.batch_first else 1]
        return self.num_layers * (1 + self.bidirectional), batch, self.proj_size or self.hidden_size

    def get_expected_cell_size(self, input: Tensor, batch_sizes: Tensor | None) -> tuple[int, int, int]:
        """The same of an LSTM's second state, which a projection leaves as it is."""
        return (*self.get_expected_hidden_size(input, batch_sizes)[:2], self.hidden_size)

    def check_hidden_size(
        self, hx: Tensor, expected_hidden_size: tuple[int, int, int], msg: str = "Expected hidden size {}, got {}"
    ) -> None:
        """Refuse a state of another shape."""
        if tuple(hx.shape) != expected_hidden_size:
            raise ShapeError(
                f"{type(self).__name__}: {msg.format(expected_hidden_size, list(hx.shape))}; give (layers x directions, batch, elements), also "
                "where batch_first=True"
            )

    def check_forward_args(self, input: Tensor, hidden: Any, batch_sizes: Tensor | None) -> None:
        """Refuse an input or states that do not fit the layer."""
        self.check_input(input, batch_sizes)
        expected = self.get_expected_hidden_size(input, batch_sizes)
        if self.mode != "LSTM":
            self.check_hidden_size(hidden, expected)
            return
        for k, (h, size) in enumerate(zip(hidden, self._state_sizes(), strict=True)):
            self.check_hidden_size(h, (*expected[:2], size), f"Expected hidden[{k}] size {{}}, got {{}}")

    def permute_hidden(self, hx: Any, permutation: Tensor | None) -> Any:
        """States with their batch in another order."""
        if permutation is None:
            return hx
        return tuple(h.index_select(1, permutation) for h in hx) if isinstance(hx, tuple | list) else hx.index_select(1, permutation)

    # the run
    def _zeros(self, input: Tensor, batch: int) -> Any:
        found = tuple(
            ops.full(shape=(self.num_layers * (1 + self.bidirectional), batch, n), value=0, dtype=input._array.dtype, device=input.device)
            for n in self._state_sizes()
        )
        return found if self.mode == "LSTM" else found[0]

    def _states(self, hx: Any) -> tuple[Tensor, ...]:
        return tuple(hx) if self.mode == "LSTM" else (hx,)

    def forward(self, input: Any, hx: Any = None) -> Any:
        """(outputs, states) of a Tensor (time, batch, features), or (batch, time, features) where batch_first, or (time, features), or of a PackedSequence."""
        if not isinstance(input, Tensor):
            return self._forward_packed(input, hx)
        name = type(self).__name__
        if input.dim() not in (2, 3):
            raise ShapeError(
                f"{name}: Expected input to be 2D or 3D, got {input.dim()}D instead; give (time, batch, features) or (time, features)"
            )
        single, batch_dim = input.dim() == 2, 0 if self.batch_first else 1
        if hx is not None:  # before the batch is added: messages are about what was given
            hx = self._check_states(hx, input.dim())
        if single:
            input = input.unsqueeze(batch_dim)
        if hx is None:
            hx = self._zeros(input, input.shape[batch_dim])
        self.check_forward_args(input, hx, None)  # PyTorch's methods, which subclasses override
        y, *ends = run_padded(name, self._make_net(), input, self._states(hx), self._flat_weights, self.batch_first)
        if single:
            y, ends = y.squeeze(batch_dim), [end.squeeze(1) for end in ends]
        return y, tuple(ends) if self.mode == "LSTM" else ends[0]

    def _check_states(self, hx: Any, dims: int) -> Any:
        """States with a batch, refused where they have not as many dimensions as the input."""
        name, kind = type(self).__name__, "batched 3-D" if dims == 3 else "unbatched 2-D"
        if self.mode == "LSTM":
            if not isinstance(hx, tuple | list) or len(hx) != 2:
                raise TypeError(f"{name}: hx is {_describe_argument(hx)}; give (h, c)")
            if any(h.dim() != dims for h in hx):
                said = ", ".join(f"{h.dim()}-D" for h in hx)
                raise ShapeError(f"{name}: For {kind} input, hx and cx should also be {dims}-D but got ({said}) tensors; reshape them")
            return hx if dims == 3 else tuple(h.unsqueeze(1) for h in hx)
        if not isinstance(hx, Tensor):
            raise TypeError(f"{name}: hx is {_describe_argument(hx)}; give a tensor")
        if hx.dim() != dims:
            raise ShapeError(f"{name}: For {kind} input, hx should also be {dims}-D but got {hx.dim()}-D tensor; reshape it")
        return hx if dims == 3 else hx.unsqueeze(1)

    def _forward_packed(self, input: Any, hx: Any) -> Any:
        from tritensor.nn.utils.rnn import PackedSequence

        name = type(self).__name__
        if not isinstance(input, PackedSequence):
            raise TypeError(f"{name}: input is {_describe_argument(input)}; give a tensor or a PackedSequence")
        data, batch_sizes, order, inverse = input
        # states come in the user's order, rows are sorted
        hx = self._zeros(data, int(batch_sizes[0])) if hx is None else self.permute_hidden(hx, order)
        self.check_forward_args(data, hx, batch_sizes)
        y, *ends = run_layers(name, self._make_net(), data, read_batch_sizes(name, batch_sizes), self._states(hx), self._flat_weights)
        states = self.permute_hidden(tuple(ends) if self.mode == "LSTM" else ends[0], inverse)
        return PackedSequence(y, batch_sizes, order, inverse), states

    def extra_repr(self) -> str:
        said = [f"{self.input_size}, {self.hidden_size}"]
        usual = {"proj_size": 0, "num_layers": 1, "bias": True, "batch_first": False, "dropout": 0, "bidirectional": False}
        return ", ".join(said + [f"{name}={getattr(self, name)}" for name, value in usual.items() if getattr(self, name) != value])


def _describe_argument(x: Any) -> str:
    return f"a {type(x).__name__}" + (f" of {len(x)}" if isinstance(x, tuple | list) else "")


def _check_arguments(
    name: str, input_size: Any, hidden_size: Any, num_layers: Any, bias: Any, batch_first: Any, dropout: Any, proj_size: Any
) -> None:
    """Refuse arguments of the constructor, with PyTorch's classes and words."""
    # True would drop everything
    if not isinstance(dropout, numbers.Number) or isinstance(dropout, bool) or not 0 <= dropout <= 1:  # type: ignore[operator]
        raise ValueError(
            f"{name}: dropout should be a number in range [0, 1] representing the probability of an element being zeroed, not {dropout!r}; "
            "give such a number"
        )
    for what, value, kind in (
        ("bias", bias, bool),
        ("batch_first", batch_first, bool),
        ("input_size", input_size, int),
        ("hidden_size", hidden_size, int),
    ):
        if not isinstance(value, kind):
            raise TypeError(f"{name}: {what} should be of type {kind.__name__}, got: {type(value).__name__}; give such a one")
    for what, value in (("input_size", input_size), ("hidden_size", hidden_size), ("num_layers", num_layers)):
        if value <= 0:
            raise ValueError(f"{name}: {what} must be greater than zero, not {value}; give at least 1")
    if proj_size < 0:
        raise ValueError(f"{name}: proj_size should be a positive integer or zero to disable projections, not {proj_size}")
    if proj_size >= hidden_size:
        raise ValueError(
            f"{name}: proj_size {proj_size} has to be smaller than hidden_size {hidden_size}; give a smaller one, or leave it out"
        )


class RNN(RNNBase):
    """h' = act(W_ih x + b_ih + W_hh h + b_hh) (Elman 1990): outputs (time, batch, directions x hidden_size) and the last states.

    `nonlinearity` is "tanh" or "relu", which run as one op over the sequence, or any function of a tensor, or None for none.

    The other arguments, shapes and first weights are those of LSTM, but for c and proj_size.
    """

    def __init__(
        self, input_size: int, hidden_size: int, num_layers: int = 1, nonlinearity: Activation = "tanh", bias: bool = True,
        batch_first: bool = False, dropout: float = 0.0, bidirectional: bool = False, device: Any = None, dtype: Any = None, **more: Any,
    ) -> None:  # fmt: skip
        _refuse_projection(type(self).__name__, more)
        if isinstance(nonlinearity, str):
            if nonlinearity not in ("tanh", "relu"):
                raise ValueError(
                    f"{type(self).__name__}: Unknown nonlinearity '{nonlinearity}'. Select from 'tanh' or 'relu', or give a function, or None"
                )
            mode = f"RNN_{nonlinearity.upper()}"
        elif nonlinearity is not None and not callable(nonlinearity):
            raise ValueError(f"{type(self).__name__}: Unknown nonlinearity {nonlinearity!r}; give 'tanh', 'relu', a function or None")
        else:
            mode = "RNN"
        super().__init__(mode, input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, device=device, dtype=dtype)
        self.nonlinearity = nonlinearity


class LSTM(RNNBase):
    """Long short-term memory: c' = f c + i g, h' = o tanh(c') with gates i, f, g, o of x and h; (outputs, (h, c)). `proj_size` projects h.

    Args:
        input_size, hidden_size: features of a step's input, and of the states h and c.
        num_layers: nets one above the other; each takes the outputs of the one below.
        batch_first: input and outputs are (batch, length, features), not (length, batch, features). The states are not affected.
        dropout: in training, the share of outputs that is dropped between layers.
        bidirectional: a second net walks backwards; outputs hold both, one behind the other.
        proj_size: unless 0, h is projected to this many features.

    The input may also be a PackedSequence, or (length, features) without a batch. States are (layers x directions, batch, features) and start at 0.
    Weights and biases start uniform on +-1 / sqrt(hidden_size).

    >>> net = nn.LSTM(input_size=4, hidden_size=8, num_layers=2, batch_first=True)
    >>> outputs, (h, c) = net(tt.zeros(5, 7, 4))  # five sequences of seven steps
    >>> outputs.shape, h.shape, c.shape
    (tritensor.Size([5, 7, 8]), tritensor.Size([2, 5, 8]), tritensor.Size([2, 5, 8]))
    """

    def __init__(
        self, input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True, batch_first: bool = False, dropout: float = 0.0,
        bidirectional: bool = False, proj_size: int = 0, device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(
            "LSTM", input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, proj_size, device=device, dtype=dtype
        )


class GRU(RNNBase):
    """Gated recurrent units: h' = (1 - z) n + z h with gates r, z of x and h and n = tanh(x + r (W h + b)); (outputs, h).

    The arguments, shapes and first weights are those of LSTM, but for c and proj_size.

    >>> outputs, h = nn.GRU(4, 8)(tt.zeros(7, 5, 4))  # seven steps of five sequences
    >>> outputs.shape, h.shape
    (tritensor.Size([7, 5, 8]), tritensor.Size([1, 5, 8]))
    """

    def __init__(
        self, input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True, batch_first: bool = False, dropout: float = 0.0,
        bidirectional: bool = False, device: Any = None, dtype: Any = None, **more: Any,
    ) -> None:  # fmt: skip
        _refuse_projection(type(self).__name__, more)
        super().__init__("GRU", input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, device=device, dtype=dtype)


def _refuse_projection(name: str, more: dict[str, Any]) -> None:
    if "proj_size" in more:
        raise ValueError(f"{name}: proj_size argument is only supported for LSTM, not RNN or GRU; leave it out")
    if more:
        raise TypeError(f"{name}: unexpected keyword argument {next(iter(more))!r}; leave it out")
