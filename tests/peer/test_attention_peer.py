"""The same attention in torch: functions and layers with every kind of mask, state_dicts, gradients, warnings, refusals."""

import itertools
import warnings

import numpy as np
import pytest
import torch

import tritensor as tt
from tests.peer.test_recurrent_peer import both, close, weighed
from tritensor import nn

pytestmark = pytest.mark.peer
LIBS = (tt, torch)


def float64(lib):
    return lib.float64


def masks(lib, rng, kind, queries, keys, batch, heads):
    """(attn_mask, key_padding_mask) of a kind, the same in both libraries."""
    hidden, late = rng.random((queries, keys)) > 0.7, np.arange(keys)[None, :] >= np.array([[keys], [keys - 2], [keys - 1]][:batch])
    hidden[:, 0] = False
    each = np.repeat(hidden[None], batch * heads, 0)
    each[1] = False
    made = {
        "none": (None, None), "bool": (hidden, None), "float": (rng.standard_normal((queries, keys)), None), "padding": (None, late), "both": (hidden, late),
        "each": (each, None), "numbers": (rng.standard_normal((batch * heads, queries, keys)), np.where(late, -np.inf, 0.0)),
    }[kind]  # fmt: skip
    return tuple(None if m is None else lib.tensor(m) for m in made)


@pytest.mark.parametrize("kind", ["none", "bool", "float", "padding", "both", "each", "numbers"])
@pytest.mark.parametrize(
    "options",
    [{}, {"bias": False, "batch_first": True}, {"add_bias_kv": True, "add_zero_attn": True}, {"kdim": 3, "vdim": 5}],
    ids=["usual", "batch first", "more keys", "other sizes"],
)
def test_multihead(options, kind):
    ours, theirs = both(lambda n: n.MultiheadAttention(8, 2, dtype=float64(tt if n is nn else torch), **options))
    assert repr(ours) == repr(theirs)
    assert list(ours.state_dict()) == list(theirs.state_dict())
    rng = np.random.default_rng(0)
    shapes = [(4, 3, 8), (5, 3, options.get("kdim", 8)), (5, 3, options.get("vdim", 8))]
    data = [rng.standard_normal(s) for s in shapes]
    if options.get("batch_first"):
        data = [x.swapaxes(0, 1) for x in data]
    for weights, averaged in ((True, True), (True, False), (False, True)):
        found = []
        for lib, net in zip(LIBS, (ours, theirs), strict=True):
            inputs = [lib.tensor(np.ascontiguousarray(x), requires_grad=True) for x in data]
            mask, padding = masks(lib, np.random.default_rng(1), kind, 4, 5, 3, 2)
            out = net(*inputs, key_padding_mask=padding, need_weights=weights, attn_mask=mask, average_attn_weights=averaged)
            weighed(out).backward()
            found.append((out, [i.grad for i in inputs], [p.grad for p in net.parameters()]))
            net.zero_grad()
        close(*found, 1e-10)


def test_one_sequence_and_self_attention():
    ours, theirs = both(lambda n: n.MultiheadAttention(8, 4))
    x = np.random.default_rng(2).standard_normal((5, 8)).astype(np.float32)
    for causal in (False, True):
        found = []
        for lib, net in zip(LIBS, (ours, theirs), strict=True):
            v = lib.tensor(x, requires_grad=True)
            mask = lib.nn.Transformer.generate_square_subsequent_mask(5) if causal else None
            out = [net(v, v, v, attn_mask=mask, is_causal=causal, need_weights=w) for w in (True, False)]
            weighed(out).backward()
            found.append((out, v.grad))
        close(*found)


SHAPES = [
    ((2, 4, 3, 5), (2, 4, 6, 5), (2, 4, 6, 2)),
    ((3, 5), (6, 5), (6, 5)),
    ((2, 3, 5), (2, 3, 5), (2, 3, 5)),
    ((2, 4, 3, 5), (1, 4, 6, 5), (4, 6, 5)),
]


@pytest.mark.parametrize("shapes", SHAPES)
def test_scaled_dot_product(shapes):
    rng = np.random.default_rng(3)
    queries, keys = shapes[0][-2], shapes[1][-2]
    seen = rng.random((queries, keys)) > 0.4
    seen[0] = False
    given = {
        "none": None,
        "bool": seen,
        "float": rng.standard_normal((queries, keys)),
        "wide": rng.standard_normal((*shapes[0][:-1], keys)),
    }
    for mask, causal, scale in itertools.product(given, (False, True), (None, 0.3)):
        if causal and given[mask] is not None:
            continue
        found = []
        for lib in LIBS:
            r = np.random.default_rng(4)
            inputs = [lib.tensor(r.standard_normal(s), requires_grad=True) for s in shapes]
            m = None if given[mask] is None else lib.tensor(given[mask])
            if m is not None and "float" in str(m.dtype):
                m.requires_grad_()
            out = lib.nn.functional.scaled_dot_product_attention(*inputs, attn_mask=m, is_causal=causal, scale=scale)
            weighed(out).backward()
            found.append((out, [i.grad for i in inputs], None if m is None else m.grad))
        close(*found, 1e-10)


def test_grouped_heads():
    found = []
    for lib in LIBS:
        r = np.random.default_rng(5)
        q, k, v = (lib.tensor(r.standard_normal(s), requires_grad=True) for s in ((2, 6, 3, 4), (2, 2, 5, 4), (2, 3, 5, 4)))
        out = lib.nn.functional.scaled_dot_product_attention(q, k, v, enable_gqa=True)
        weighed(out).backward()
        found.append((out, q.grad, k.grad, v.grad))
    close(*found, 1e-10)


NETS = {
    "encoder": lambda n, d: n.TransformerEncoder(n.TransformerEncoderLayer(8, 2, 16, 0.0, batch_first=True, dtype=d), 2),
    "first": lambda n, d: n.TransformerEncoder(
        n.TransformerEncoderLayer(8, 2, 16, 0.0, "gelu", 1e-3, True, True, False, dtype=d),
        2,
        n.LayerNorm(8, dtype=d),
        enable_nested_tensor=False,
    ),
    "act": lambda n, d: n.TransformerEncoder(
        n.TransformerEncoderLayer(8, 2, 16, 0.0, n.functional.silu, batch_first=True, dtype=d), 1, enable_nested_tensor=False
    ),
}


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
@pytest.mark.parametrize("name", NETS)
def test_encoders(name):
    ours, theirs = both(lambda n: NETS[name](n, float64(tt if n is nn else torch)))
    assert repr(ours) == repr(theirs)
    x, late = np.random.default_rng(6).standard_normal((3, 5, 8)), np.arange(5)[None, :] >= np.array([[5], [3], [4]])
    for padded, causal in itertools.product((False, True), (False, True)):
        found = []
        for lib, net in zip(LIBS, (ours, theirs), strict=True):
            v = lib.tensor(x, requires_grad=True)
            mask = lib.nn.Transformer.generate_square_subsequent_mask(5, dtype=lib.float64) if causal else None
            padding = None if not padded else lib.tensor(np.where(late, -np.inf, 0.0)) if causal else lib.tensor(late)
            out = net(v, mask=mask, src_key_padding_mask=padding)
            weighed(out).backward()
            found.append((out, v.grad, [p.grad for p in net.parameters()]))
            net.zero_grad()
        close(*found, 1e-9)
    with torch.no_grad(), tt.no_grad():  # PyTorch's fast way: nothing comes of padding
        mine, wanted = (
            ours.eval()(tt.tensor(x), src_key_padding_mask=tt.tensor(late)),
            theirs.eval()(torch.tensor(x), src_key_padding_mask=torch.tensor(late)),
        )
    close(mine, wanted, 1e-9)


@pytest.mark.parametrize("options", [{}, {"norm_first": True, "batch_first": True, "activation": "gelu", "bias": False}])
def test_transformer(options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ours, theirs = both(lambda n: n.Transformer(8, 2, 2, 2, 12, 0.0, dtype=float64(tt if n is nn else torch), **options))
    assert repr(ours) == repr(theirs)
    assert list(ours.state_dict()) == list(theirs.state_dict())
    rng = np.random.default_rng(7)
    src, tgt = rng.standard_normal((4, 3, 8)), rng.standard_normal((5, 3, 8))
    if options.get("batch_first"):
        src, tgt = src.swapaxes(0, 1), tgt.swapaxes(0, 1)
    late = np.arange(4)[None, :] >= np.array([[4], [3], [2]])
    found = []
    for lib, net in zip(LIBS, (ours, theirs), strict=True):
        a, b = (lib.tensor(np.ascontiguousarray(v), requires_grad=True) for v in (src, tgt))
        mask = net.generate_square_subsequent_mask(5).to(lib.float64)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            out = net(a, b, tgt_mask=mask, src_key_padding_mask=lib.tensor(late), memory_key_padding_mask=lib.tensor(late))
        weighed(out).backward()
        found.append((out, a.grad, b.grad, [p.grad for p in net.parameters()]))
    close(*found, 1e-9)


def ones(lib, *shape, **more):
    return lib.ones(*shape, **more)


REFUSED = [
    lambda lib: lib.nn.MultiheadAttention(7, 2), lambda lib: lib.nn.MultiheadAttention(0, 2),
    lambda lib: lib.nn.MultiheadAttention(8, 2)(*[ones(lib, 3, 2, 6)] * 3), lambda lib: lib.nn.MultiheadAttention(8, 2)(*[ones(lib, 8)] * 3),
    lambda lib: lib.nn.MultiheadAttention(8, 2)(ones(lib, 3, 2, 8), ones(lib, 3, 8), ones(lib, 3, 8)),
    lambda lib: lib.nn.MultiheadAttention(8, 2)(ones(lib, 3, 2, 8), ones(lib, 4, 2, 8), ones(lib, 3, 2, 8)),
    lambda lib: lib.nn.MultiheadAttention(8, 2)(*[ones(lib, 3, 2, 8)] * 3, attn_mask=ones(lib, 2, 3)),
    lambda lib: lib.nn.MultiheadAttention(8, 2)(*[ones(lib, 3, 2, 8)] * 3, attn_mask=ones(lib, 2, 3, 3)),
    lambda lib: lib.nn.MultiheadAttention(8, 2)(*[ones(lib, 3, 2, 8)] * 3, attn_mask=ones(lib, 3)),
    lambda lib: lib.nn.MultiheadAttention(8, 2)(*[ones(lib, 3, 2, 8)] * 3, attn_mask=ones(lib, 3, 3).long()),
    lambda lib: lib.nn.MultiheadAttention(8, 2)(*[ones(lib, 3, 2, 8)] * 3, key_padding_mask=ones(lib, 3, 2).bool()),
    lambda lib: lib.nn.MultiheadAttention(8, 2)(*[ones(lib, 3, 2, 8)] * 3, key_padding_mask=ones(lib, 3).bool()),
    lambda lib: lib.nn.MultiheadAttention(8, 2)(*[ones(lib, 3, 2, 8)] * 3, is_causal=True),
    lambda lib: lib.nn.functional.scaled_dot_product_attention(*[ones(lib, 3)] * 3),
    lambda lib: lib.nn.functional.scaled_dot_product_attention(ones(lib, 3, 2), ones(lib, 3, 2).double(), ones(lib, 3, 2)),
    lambda lib: lib.nn.functional.scaled_dot_product_attention(*[ones(lib, 3, 2)] * 3, attn_mask=ones(lib, 3, 3).long()),
    lambda lib: lib.nn.functional.scaled_dot_product_attention(*[ones(lib, 3, 2)] * 3, attn_mask=ones(lib, 3, 4)),
    lambda lib: lib.nn.functional.scaled_dot_product_attention(*[ones(lib, 3, 2)] * 3, dropout_p=1.5),
    lambda lib: lib.nn.functional.scaled_dot_product_attention(ones(lib, 1, 4, 3, 2), *[ones(lib, 1, 3, 3, 2)] * 2, enable_gqa=True),
    lambda lib: lib.nn.functional.scaled_dot_product_attention(ones(lib, 3, 2), ones(lib, 3, 4), ones(lib, 3, 4)),
    lambda lib: lib.nn.TransformerEncoderLayer(8, 2, activation="silu"),
    lambda lib: lib.nn.Transformer(8, 2, 1, 1, 8)(ones(lib, 3, 2, 8), ones(lib, 3, 3, 8)),
    lambda lib: lib.nn.Transformer(8, 2, 1, 1, 8)(ones(lib, 3, 2, 6), ones(lib, 3, 2, 6)),
]  # fmt: skip


@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
@pytest.mark.parametrize("case", range(len(REFUSED)))
def test_refused(case):
    with pytest.raises(Exception) as theirs:
        REFUSED[case](torch)
    with pytest.raises(theirs.type) as ours:
        REFUSED[case](tt)
    assert "\n" not in str(ours.value)


@pytest.mark.parametrize(
    "options", [{}, {"batch_first": True, "bias": False}, {"batch_first": True, "norm_first": True}, {"batch_first": True}]
)
def test_warnings_of_encoders(options):
    said = []
    for lib in LIBS:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            lib.nn.TransformerEncoder(lib.nn.TransformerEncoderLayer(8, 2, **options), 1)
        said.append([str(w.message).split(";")[0] for w in caught])
    assert said[0] == said[1]
