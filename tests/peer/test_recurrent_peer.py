"""The same recurrent nets in torch: state_dicts, outputs, states and gradients over padded, packed and single sequences; refusals."""

import itertools

import numpy as np
import pytest
import torch

import tritensor as tt
from tritensor import nn

pytestmark = pytest.mark.peer
LENGTHS = [3, 5, 1, 4]


def both(make):
    """The same layer twice, ours with torch's values."""
    theirs = make(torch.nn)
    ours = make(nn)
    ours.load_state_dict({k: tt.from_numpy(v.numpy().copy()) for k, v in theirs.state_dict().items()})
    return ours, theirs


def leaves(value):
    if isinstance(value, tt.Tensor | torch.Tensor):
        return [value]
    return [x for part in value if part is not None for x in leaves(part)]


def close(ours, theirs, tolerance=2e-6):
    for a, b in zip(leaves(ours), leaves(theirs), strict=True):
        assert tuple(a.shape) == tuple(b.shape)
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=tolerance, atol=tolerance)


def weighed(outputs):
    """A sum that reaches every floating output, each element with a weight of its own."""
    rng = np.random.default_rng(5)
    return sum(
        (y * (tt.tensor if isinstance(y, tt.Tensor) else torch.tensor)(rng.standard_normal(tuple(y.shape)))).sum()
        for y in leaves(outputs)
        if "float" in str(y.dtype)
    )


KINDS = {
    "rnn": ("RNN", {}), "relu": ("RNN", {"nonlinearity": "relu", "num_layers": 2}), "lstm": ("LSTM", {}), "gru": ("GRU", {"num_layers": 2}),
    "deep": ("LSTM", {"num_layers": 3, "bidirectional": True, "bias": False}), "both": ("GRU", {"bidirectional": True, "batch_first": True}),
    "projected": ("LSTM", {"proj_size": 2, "num_layers": 2, "bidirectional": True}), "first": ("LSTM", {"batch_first": True, "num_layers": 2}),
    "plain": ("RNN", {"bidirectional": True, "num_layers": 2, "bias": False, "batch_first": True}),
}  # fmt: skip


@pytest.mark.parametrize("way", ["padded", "packed", "single"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("given", [False, True])
def test_nets(kind, way, given):
    name, options = KINDS[kind]
    ours, theirs = both(lambda n: getattr(n, name)(3, 4, dtype=(tt if n is nn else torch).float64, **options))
    assert repr(ours) == repr(theirs)
    assert list(ours.state_dict()) == list(theirs.state_dict())
    rng = np.random.default_rng(1)
    first, many = options.get("batch_first", False), options.get("num_layers", 1) * (1 + options.get("bidirectional", False))
    x = rng.standard_normal((5, 3) if way == "single" else (4, 5, 3) if first else (5, 4, 3))
    batch = () if way == "single" else (4,)
    states = [rng.standard_normal((many, *batch, options.get("proj_size") or 4)), rng.standard_normal((many, *batch, 4))]
    found = []
    for lib, net in ((tt, ours), (torch, theirs)):
        inputs = [lib.tensor(v, requires_grad=True) for v in (x, *states[: 2 if name == "LSTM" else 1])]
        hx = None if not given else tuple(inputs[1:]) if name == "LSTM" else inputs[1]
        fed = inputs[0]
        if way == "packed":
            fed = lib.nn.utils.rnn.pack_padded_sequence(fed, lib.tensor(LENGTHS), first, enforce_sorted=False)
        out = net(fed, hx)
        weighed(out).backward()
        found.append((out, [i.grad for i in inputs[: 1 + given * (len(inputs) - 1)]], [p.grad for p in net.parameters()]))
    for mine, wanted in zip(*found, strict=True):
        close(mine, wanted, 1e-9)


@pytest.mark.parametrize("name", ["RNNCell", "LSTMCell", "GRUCell"])
def test_cells(name):
    ours, theirs = both(lambda n: getattr(n, name)(3, 4, bias=name != "GRUCell"))
    assert repr(ours) == repr(theirs)
    rng = np.random.default_rng(2)
    x, h, c = (rng.standard_normal(s).astype(np.float32) for s in ((2, 3), (2, 4), (2, 4)))
    for lead in (slice(None), 0):
        a, b = tt.tensor(x[lead], requires_grad=True), torch.tensor(x[lead], requires_grad=True)
        close(ours(a), theirs(b))
        states = [[lib.tensor(h[lead]), lib.tensor(c[lead])] for lib in (tt, torch)]
        mine, wanted = (net(v, tuple(s) if name == "LSTMCell" else s[0]) for net, v, s in ((ours, a, states[0]), (theirs, b, states[1])))
        close(mine, wanted)
        weighed(mine).backward()
        weighed(wanted).backward()
        close(a.grad, b.grad)


def test_functions():
    """torch.lstm, gru, rnn_tanh and the cells by their positional signatures, over padded and packed data."""
    rng = np.random.default_rng(3)
    for name, net in (
        ("lstm", torch.nn.LSTM(3, 4, 2)),
        ("gru", torch.nn.GRU(3, 4, 2)),
        ("rnn_tanh", torch.nn.RNN(3, 4, 2)),
        ("rnn_relu", torch.nn.RNN(3, 4, 2)),
    ):
        x, h, c = (rng.standard_normal(s).astype(np.float32) for s in ((5, 2, 3), (2, 2, 4), (2, 2, 4)))
        answers = []
        for lib in (tt, torch):
            params = [lib.tensor(p.detach().numpy()) for p in net._flat_weights]
            hx = (lib.tensor(h), lib.tensor(c)) if name == "lstm" else lib.tensor(h)
            padded = getattr(lib, name)(lib.tensor(x), hx, params, True, 2, 0.0, False, False, False)
            packed = getattr(lib, name)(
                lib.tensor(x[:4].reshape(8, 3)[:7]), lib.tensor([2, 2, 2, 1]), hx, params, True, 2, 0.0, False, False
            )
            answers.append((padded, packed))
        close(*answers)


def test_packing():
    rng = np.random.default_rng(4)
    for first, sort, trailing in itertools.product((False, True), (False, True), ((), (2,))):
        lengths = sorted(LENGTHS, reverse=True) if sort else LENGTHS
        x = rng.standard_normal(((4, 5) if first else (5, 4)) + trailing)
        found = []
        for lib in (tt, torch):
            u = lib.nn.utils.rnn
            v = lib.tensor(x, requires_grad=True)
            packed = u.pack_padded_sequence(v, lengths, first, enforce_sorted=sort)
            padded, back = u.pad_packed_sequence(packed, first, -1.0, 7)
            pieces = u.unpack_sequence(packed)
            again = u.pad_sequence(pieces, first, 0.5, "left")
            repacked = u.pack_sequence(pieces, enforce_sorted=False)
            weighed([padded, again, repacked.data]).backward()
            found.append((tuple(packed), padded, back, pieces, again, tuple(repacked), v.grad))
        close(*found, 1e-12)


REFUSED = [
    lambda lib: lib.nn.LSTM(3, 4)(lib.ones(2, 2, 5)), lambda lib: lib.nn.LSTM(3, 4)(lib.ones(2)),
    lambda lib: lib.nn.GRU(3, 4)(lib.ones(2, 2, 3), lib.ones(1, 3, 4)), lambda lib: lib.nn.GRU(3, 4)(lib.ones(2, 3), lib.ones(1, 3, 4)),
    lambda lib: lib.nn.LSTM(3, 4)(lib.ones(2, 2, 3), (lib.ones(1, 2, 4), lib.ones(1, 2, 3))), lambda lib: lib.nn.RNN(3, 0),
    lambda lib: lib.nn.RNN(3, 4)(lib.ones(2, 2, 3, dtype=lib.float64)), lambda lib: lib.nn.RNN(3, 4, nonlinearity="sin"),
    lambda lib: lib.nn.GRU(3, 4, proj_size=2), lambda lib: lib.nn.LSTM(3, 4, proj_size=4), lambda lib: lib.nn.LSTM(3, 4, bias=1),
    lambda lib: lib.nn.LSTM(3, 4, dropout=2.0), lambda lib: lib.nn.LSTM(3.0, 4), lambda lib: lib.nn.LSTM(3, 4, num_layers=0),
    lambda lib: lib.nn.LSTM(3, 4)(lib.ones(0, 2, 3)), lambda lib: lib.nn.GRUCell(3, 4)(lib.ones(2, 4)), lambda lib: lib.nn.RNNCell(3, 4)(lib.ones(2, 3), lib.ones(3, 4)),
    lambda lib: lib.nn.LSTMCell(3, 4)(lib.ones(2, 2, 3)), lambda lib: lib.nn.RNNCell(3, 4, nonlinearity="sin")(lib.ones(2, 3)),
    lambda lib: lib.nn.utils.rnn.pack_padded_sequence(lib.ones(3, 2), [1, 2]), lambda lib: lib.nn.utils.rnn.pack_padded_sequence(lib.ones(3, 2), [2]),
    lambda lib: lib.nn.utils.rnn.pack_padded_sequence(lib.ones(3, 2), [2, 0]),
    lambda lib: lib.nn.utils.rnn.pad_packed_sequence(lib.nn.utils.rnn.pack_sequence([lib.ones(3), lib.ones(2)]), total_length=2),
    lambda lib: lib.nn.utils.rnn.pad_sequence([]), lambda lib: lib.nn.utils.rnn.pad_sequence([lib.ones(2, 3), lib.ones(2, 4)]),
]  # fmt: skip


@pytest.mark.parametrize("case", range(len(REFUSED)))
def test_refused(case):
    with pytest.raises(Exception) as theirs:
        REFUSED[case](torch)
    with pytest.raises(theirs.type) as ours:
        REFUSED[case](tt)
    assert "\n" not in str(ours.value)
