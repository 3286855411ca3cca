"""Recurrent nets as functions: torch.lstm, gru, rnn_tanh, rnn_relu over layers and directions, and their cells.

Layers work on rows: time steps one after the other, so many rows each as `batch_sizes` says. A padded batch has the same number in every step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from tritensor.autograd.saved import borrow_saved
from tritensor.ground.errors import ArgumentError, ShapeError
from tritensor.nn.functional.dropout import dropout as drop
from tritensor.ops.table import ops
from tritensor.tensor.core import Tensor
from tritensor.tensor.public_api.publish import function, rename_function

Activation = Callable[[Tensor], Tensor] | str | None


class Net(NamedTuple):
    """What kind of recurrent net, and how many of its layers: what torch.lstm and the others take beside tensors."""

    kind: str  # "LSTM", "GRU" or "RNN"
    layers: int
    dropout: float
    train: bool
    bidirectional: bool
    biases: bool
    nonlinearity: Activation = "tanh"  # of RNN alone; None is none


class Weights(NamedTuple):
    """Of one layer in one direction."""

    w_ih: Tensor
    w_hh: Tensor
    b_ih: Tensor | None
    b_hh: Tensor | None
    w_hr: Tensor | None


def _add_biases(w: Weights) -> Tensor | None:
    """Both biases in one where they are only added to the same sum."""
    if w.b_ih is None or w.b_hh is None:
        return w.b_ih if w.b_hh is None else w.b_hh
    return ops.add(w.b_ih, w.b_hh)


def _lstm(x: Tensor, states: Sequence[Tensor], w: Weights, sizes: tuple[int, ...], reverse: bool) -> tuple[Tensor, Tensor, Tensor]:
    h, c = states
    z = ops.linear(x, w.w_ih, _add_biases(w))
    if w.w_hr is None:
        return ops.lstm_sequence(z, h, c, w.w_hh, batch_sizes=sizes, reverse=reverse)
    from tritensor.kernels.recurrent.time_steps import concatenate_rows, replace_first_rows, steps  # which few nets need

    parts = []
    for start, n in steps(sizes, reverse):  # the state is projected after each step
        _, made, cell = ops.lstm_sequence(z[start : start + n], h[:n], c[:n], w.w_hh, batch_sizes=(n,), reverse=False)
        parts.append(ops.linear(made, w.w_hr, None))
        h, c = replace_first_rows(h, parts[-1]), replace_first_rows(c, cell)
    return concatenate_rows(*(parts[::-1] if reverse else parts)), h, c


def _gru(x: Tensor, states: Sequence[Tensor], w: Weights, sizes: tuple[int, ...], reverse: bool) -> tuple[Tensor, Tensor]:
    # the biases are not added into one: the reset gate multiplies the hidden one alone
    return ops.gru_sequence(ops.linear(x, w.w_ih, w.b_ih), states[0], w.w_hh, w.b_hh, batch_sizes=sizes, reverse=reverse)


def _rnn(x: Tensor, states: Sequence[Tensor], w: Weights, sizes: tuple[int, ...], reverse: bool, act: Activation) -> tuple[Tensor, Tensor]:
    h = states[0]
    z = ops.linear(x, w.w_ih, _add_biases(w))
    if isinstance(act, str):
        return ops.rnn_sequence(z, h, w.w_hh, batch_sizes=sizes, reverse=reverse, nonlinearity=act)
    from tritensor.kernels.recurrent.time_steps import concatenate_rows, replace_first_rows, steps  # as above

    parts = []
    for start, n in steps(sizes, reverse):
        sums = ops.add(z[start : start + n], ops.linear(h[:n], w.w_hh, None))
        parts.append(sums if act is None else act(sums))
        # a function of the user's: what it returns becomes the state
        if not isinstance(parts[-1], Tensor) or parts[-1].shape != sums.shape:
            raise ShapeError(
                f"RNN: nonlinearity of a tensor {tuple(sums.shape)} returned {_describe_argument(parts[-1])}; give a function that keeps the shape"
            )
        h = replace_first_rows(h, parts[-1])
    return concatenate_rows(*(parts[::-1] if reverse else parts)), h


def _describe_argument(x: Any) -> str:
    return str(tuple(x.shape)) if isinstance(x, Tensor) else f"a {type(x).__name__}"


def _group_weights(name: str, params: Sequence[Tensor], net: Net) -> list[Weights]:
    count = net.layers * (2 if net.bidirectional else 1)
    each, rest = divmod(len(params), count)
    usual = 4 if net.biases else 2
    if rest or each not in (usual, usual + (net.kind == "LSTM")):  # an LSTM with a projection has one weight more
        said = f"{net.layers} layers, {'two directions' if net.bidirectional else 'one direction'}, has_biases={net.biases}"
        raise ArgumentError(f"{name}: {len(params)} params for {said}; give {usual * count}, those of each layer and direction together")
    groups = [list(params[k * each : (k + 1) * each]) for k in range(count)]
    return [
        Weights(p[0], p[1], p[2] if net.biases else None, p[3] if net.biases else None, p[usual] if each > usual else None) for p in groups
    ]


def run_layers(
    name: str, net: Net, x: Tensor, sizes: tuple[int, ...], states: Sequence[Tensor], params: Sequence[Tensor]
) -> tuple[Tensor, ...]:
    """All layers over rows x (rows, features): the rows of the last one, then each state's end (layers x directions, batch, size)."""
    groups = _group_weights(name, params, net)
    ends: list[tuple[Tensor, ...]] = []
    for layer in range(net.layers):
        made = []
        for reverse in (False, True) if net.bidirectional else (False,):
            k = len(ends)
            first = [s[k] for s in states]
            end: tuple[Tensor, ...]
            if net.kind == "LSTM":
                y, *end = _lstm(x, first, groups[k], sizes, reverse)  # type: ignore[assignment]
            elif net.kind == "GRU":
                y, *end = _gru(x, first, groups[k], sizes, reverse)  # type: ignore[assignment]
            else:
                y, *end = _rnn(x, first, groups[k], sizes, reverse, net.nonlinearity)  # type: ignore[assignment]
            made.append(y)
            ends.append(tuple(end))
        x = made[0] if len(made) == 1 else ops.cat(*made, dim=1)
        # between layers only, as in PyTorch: the last layer's rows are the result
        if net.dropout and net.train and layer < net.layers - 1:
            x = drop(x, net.dropout, True)
    return x, *[ops.stack(*s, dim=0) if len(s) > 1 else s[0].unsqueeze(0) for s in zip(*ends, strict=True)]


def run_padded(name: str, net: Net, x: Tensor, states: Sequence[Tensor], params: Sequence[Tensor], batch_first: bool) -> tuple[Tensor, ...]:
    """The same over a padded batch: x (time, batch, features), or (batch, time, features) where batch_first."""
    if x.ndim != 3:
        raise ShapeError(f"{name}: input {tuple(x.shape)} must have 3 dimensions, got {x.ndim}; add the batch with .unsqueeze(1)")
    x = x.transpose(0, 1) if batch_first else x
    time, batch, features = x.shape
    if not time:
        raise ShapeError(f"{name}: input has no time step: Expected sequence length to be larger than 0 in RNN; give at least one")
    y, *ends = run_layers(name, net, x.reshape(time * batch, features), (batch,) * time, states, params)
    y = y.reshape(time, batch, y.shape[1])
    return y.transpose(0, 1) if batch_first else y, *ends


def read_batch_sizes(name: str, batch_sizes: Any) -> tuple[int, ...]:
    """batch_sizes, a 1-d integer tensor on the CPU, as numbers."""
    if not isinstance(batch_sizes, Tensor) or batch_sizes.ndim != 1 or batch_sizes.dtype.kind not in ("int", "uint"):
        raise ArgumentError(f"{name}: batch_sizes is {batch_sizes!r}; give the 1-d integer tensor of a PackedSequence")
    return tuple(batch_sizes.tolist())


def _call_net(name: str, net: Net, input: Tensor, hx: Any, params: Any, last: Any, batch_sizes: Any) -> tuple[Tensor, ...]:
    states = tuple(hx) if net.kind == "LSTM" else (hx,)
    if batch_sizes is not None:
        return run_layers(name, net, input, read_batch_sizes(name, batch_sizes), states, params)
    return run_padded(name, net, input, states, params, bool(last))


_DOC = """{what} over all layers, as torch.{name}: of a padded batch (input, hx, params, has_biases, num_layers, dropout, train, bidirectional,
    batch_first), of a packed one (data, batch_sizes, hx, params, has_biases, num_layers, dropout, train, bidirectional). `params` holds the weights
    of each layer and direction one after the other."""


def _publish_net(name: str, kind: str, nonlinearity: str, what: str) -> Any:
    def run_net(
        input: Tensor, hx: Any, params: Any, has_biases: Any, num_layers: Any, dropout: Any, train: Any, bidirectional: Any, batch_first: Any = None
    ) -> tuple[Tensor, ...]:  # fmt: skip
        # packed: batch_sizes stand where a padded call has the states, and move the rest on by one
        if isinstance(hx if kind == "LSTM" else params, Tensor):
            net = Net(kind, dropout, train, bidirectional, bool(batch_first), num_layers, nonlinearity)
            return _call_net(name, net, input, params, has_biases, None, hx)
        net = Net(kind, num_layers, dropout, train, bidirectional, has_biases, nonlinearity)
        return _call_net(name, net, input, hx, params, batch_first, None)

    run_net.__annotations__["return"] = f"tuple[{', '.join(['Tensor'] * (3 if kind == 'LSTM' else 2))}]"  # which stubs show
    return function(rename_function(run_net, name, _DOC.format(what=what, name=name)), method=False)


lstm = _publish_net("lstm", "LSTM", "", "Long short-term memory")
gru = _publish_net("gru", "GRU", "", "Gated recurrent units")
rnn_tanh = _publish_net("rnn_tanh", "RNN", "tanh", "A simple recurrent net with tanh")
rnn_relu = _publish_net("rnn_relu", "RNN", "relu", "A simple recurrent net with relu")


# One time step.
def _check_cell(name: str, gates: int, input: Tensor, hidden: Sequence[Tensor], w_ih: Tensor, w_hh: Tensor) -> None:
    size = w_hh.shape[1] if w_hh.ndim == 2 else -1
    if input.ndim != 2 or w_ih.ndim != 2 or input.shape[1] != w_ih.shape[1]:
        raise ShapeError(
            f"{name}: input {tuple(input.shape)}, weight_ih {tuple(w_ih.shape)}: input has inconsistent input_size; give (batch, {w_ih.shape[-1]})"
        )
    for k, h in enumerate(hidden):
        if tuple(h.shape) != (input.shape[0], size):
            label = f"hx[{k}]" if len(hidden) > 1 else "hx"
            raise ShapeError(
                f"{name}: input {tuple(input.shape)}, {label} {tuple(h.shape)}: the batch or hidden_size of {label} is another; "
                f"give ({input.shape[0]}, {size})"
            )
    if w_ih.shape[0] != gates * size or w_hh.shape[0] != gates * size:
        raise ShapeError(
            f"{name}: weight_ih {tuple(w_ih.shape)}, weight_hh {tuple(w_hh.shape)}: their first size must be {gates} times hidden_size {size}; "
            f"give {gates * size} rows"
        )


@function(method=False)
@borrow_saved
def lstm_cell(
    input: Tensor, hx: Any, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """(h, c) after one step of long short-term memory: input (batch, in), hx = (h, c), each (batch, size), weights (4 size, in) and (4 size, size)."""
    if len(hx) != 2:
        raise ShapeError(f"lstm_cell: hx has {len(hx)} parts; give a pair (h, c), each (batch, size)")
    h, c = hx
    _check_cell("lstm_cell", 4, input, (h, c), w_ih, w_hh)
    y, _, cell = _lstm(input, (h, c), Weights(w_ih, w_hh, b_ih, b_hh, None), (input.shape[0],), False)
    return y, cell


@function(method=False)
@borrow_saved
def gru_cell(input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None) -> Tensor:
    """h after one step of a gated recurrent unit: input (batch, in), hx (batch, size), weights (3 size, in) and (3 size, size)."""
    _check_cell("gru_cell", 3, input, (hx,), w_ih, w_hh)
    return _gru(input, (hx,), Weights(w_ih, w_hh, b_ih, b_hh, None), (input.shape[0],), False)[0]


def rnn_cell(
    name: str, act: Activation, input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None, b_hh: Tensor | None
) -> Tensor:
    """act(input @ w_ih^T + b_ih + hx @ w_hh^T + b_hh) with any activation; None is none."""
    _check_cell(name, 1, input, (hx,), w_ih, w_hh)
    return _rnn(input, (hx,), Weights(w_ih, w_hh, b_ih, b_hh, None), (input.shape[0],), False, act)[0]


@function(method=False)
@borrow_saved
def rnn_tanh_cell(input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None) -> Tensor:
    """tanh(input @ w_ih^T + b_ih + hx @ w_hh^T + b_hh): input (batch, in), hx (batch, size)."""
    return rnn_cell("rnn_tanh_cell", "tanh", input, hx, w_ih, w_hh, b_ih, b_hh)


@function(method=False)
@borrow_saved
def rnn_relu_cell(input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None) -> Tensor:
    """relu(input @ w_ih^T + b_ih + hx @ w_hh^T + b_hh): input (batch, in), hx (batch, size)."""
    return rnn_cell("rnn_relu_cell", "relu", input, hx, w_ih, w_hh, b_ih, b_hh)
