"""Activations, dropout, padding, resampling, embedding bags: values in closed form, draws by their statistics."""

import numpy as np
import pytest

import tritensor as tt
import tritensor.nn.functional as F
from tritensor import nn
from tritensor.autograd import gradcheck, gradgradcheck

rng = np.random.default_rng(3)
X = 3 * rng.standard_normal((50, 60))


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


ACTIVATIONS = [
    (nn.ReLU6(), np.clip(X, 0, 6)),
    (nn.Hardtanh(-0.5, 2.0), np.clip(X, -0.5, 2)),
    (nn.Hardsigmoid(), np.clip(X + 3, 0, 6) / 6),
    (nn.Hardswish(), X * np.clip(X + 3, 0, 6) / 6),
    (nn.Hardshrink(0.7), np.where(abs(X) <= 0.7, 0, X)),
    (nn.Softshrink(0.7), np.sign(X) * np.maximum(abs(X) - 0.7, 0)),
    (nn.Threshold(0.5, -2.0), np.where(X <= 0.5, -2, X)),
    (nn.Tanhshrink(), X - np.tanh(X)),
    (nn.Softsign(), X / (1 + abs(X))),
    (nn.SELU(), 1.0507009873554805 * np.where(X > 0, X, 1.6732632423543772 * np.expm1(np.minimum(X, 0)))),
    (nn.CELU(0.5), np.where(X > 0, X, 0.5 * np.expm1(np.minimum(X, 0) / 0.5))),
    (nn.Mish(), X * np.tanh(np.log1p(np.exp(X)))),
    (nn.LogSigmoid(), -np.log1p(np.exp(-X))),
    (nn.GLU(), X[:, :30] * sigmoid(X[:, 30:])),
    (nn.GLU(0), X[:25] * sigmoid(X[25:])),
    (nn.PReLU(60, 0.125), np.where(X > 0, X, 0.125 * X)),
    (nn.RReLU(0.1, 0.3).eval(), np.where(X > 0, X, 0.2 * X)),
    (nn.Softmin(1), np.exp(-X) / np.exp(-X).sum(1, keepdims=True)),
]


@pytest.mark.parametrize("case", range(len(ACTIVATIONS)))
def test_activations(case):
    layer, expected = ACTIVATIONS[case]
    for kind, tolerance in (("float32", 3e-6), ("float64", 1e-13)):
        found = layer.to(getattr(tt, kind))(tt.tensor(X.astype(kind)))  # many elements: machine code
        np.testing.assert_allclose(found.detach().numpy(), expected, rtol=tolerance, atol=tolerance)
    few = layer(tt.tensor(X[:4, :60]))
    if expected.shape == X.shape and not isinstance(layer, nn.Softmin):
        np.testing.assert_allclose(few.detach().numpy(), expected[:4], rtol=1e-13, atol=1e-13)
    x = tt.tensor(np.where(abs(X[:2, :4]) < 0.05, 0.4, X[:2, :4]), requires_grad=True)
    if not isinstance(layer, nn.PReLU | nn.Softmin):
        gradcheck(layer, (x,))
        gradgradcheck(layer, (x,))


def test_prelu_of_each_channel():
    x, w = rng.standard_normal((3, 40, 5, 6)), rng.standard_normal(40)
    a, b = tt.tensor(x, requires_grad=True), tt.tensor(w, requires_grad=True)
    y = F.prelu(a, b)
    np.testing.assert_array_equal(y.detach().numpy(), np.where(x > 0, x, w[:, None, None] * x))
    y.sum().backward()
    np.testing.assert_allclose(b.grad.numpy(), np.where(x > 0, 0, x).sum((0, 2, 3)), rtol=1e-12)
    with pytest.raises(ValueError, match=r"weight \(3,\) has 3 numbers, input \(2, 4\) 4 channels; give 1 or 4"):
        F.prelu(tt.ones(2, 4), tt.ones(3))


def test_rows_that_share_an_operand():
    x, w = rng.standard_normal((7, 5000)).astype(np.float32), rng.standard_normal(5000).astype(np.float32)
    np.testing.assert_allclose(tt.hypot(tt.tensor(x), tt.tensor(w)).numpy(), np.hypot(x, w), rtol=3e-7)
    small = rng.standard_normal((331, 1)).astype(np.float32)
    np.testing.assert_allclose(tt.hypot(tt.tensor(small), tt.tensor(w[:33])).numpy(), np.hypot(small, w[:33]), rtol=3e-7)
    thin = rng.standard_normal((331, 33)).astype(np.float32)  # 331 rows are no multiple of those taken together
    np.testing.assert_allclose(tt.hypot(tt.tensor(thin), tt.tensor(w[:33])).numpy(), np.hypot(thin, w[:33]), rtol=3e-7)


def test_dropouts_keep_what_they_promise():
    tt.manual_seed(0)
    x = tt.randn(400, 500)
    y = F.alpha_dropout(x, 0.3, True).numpy()
    assert abs(y.mean()) < 0.01
    assert abs(y.std() - 1) < 0.01
    image = tt.ones(50, 40, 3, 3)
    for layer in (nn.Dropout2d(0.3), nn.FeatureAlphaDropout(0.3)):
        z = layer(image).numpy()
        assert (z == z[:, :, :1, :1]).all()  # a channel is kept or dropped as a whole
        assert abs((z[:, :, 0, 0] < 0.5).mean() - 0.3) < 0.04
        assert layer.eval()(image) is image
    kept = F.dropout1d(tt.ones(40, 7), 0.5).numpy()
    assert set(np.unique(kept)) == {0.0, 2.0}
    assert (kept == kept[:, :1]).all()
    noise = F.rrelu(-tt.ones(100, 100), 0.1, 0.3, training=True).numpy()
    assert -0.3 < noise.min() < -0.29
    assert -0.11 < noise.max() <= -0.1
    w = tt.ones(4, 3)
    with pytest.raises(ValueError, match=r"between 0 and 1, but got 1\.5"):
        F.alpha_dropout(w, 1.5, True)
    assert tt.alpha_dropout_(w, 0.5, False) is w


def test_gumbel_softmax_draws_classes():
    tt.manual_seed(1)
    logits = tt.tensor([0.2, 0.5, 0.3]).log().expand(20000, 3).clone().requires_grad_()
    hard = F.gumbel_softmax(logits, hard=True)
    assert sorted(np.unique(hard.detach().numpy()).round(6)) == [0.0, 1.0]
    assert abs(hard.detach().numpy().mean(0) - [0.2, 0.5, 0.3]).max() < 0.02
    (hard * tt.tensor([1.0, 2.0, 3.0])).sum().backward()
    assert np.isfinite(logits.grad.numpy()).all()
    assert abs(logits.grad.numpy()).max() > 0


def test_embedding_bags():
    table = rng.standard_normal((9, 4))
    w = tt.tensor(table, requires_grad=True)
    index, starts, weights = np.array([1, 3, 3, 0, 8, 2, 2]), [0, 2, 2, 5], rng.random(7)
    bags = [index[a:b] for a, b in zip(starts, [*starts[1:], 7], strict=True)]
    scale = [weights[a:b, None] for a, b in zip(starts, [*starts[1:], 7], strict=True)]
    i, o = tt.tensor(index), tt.tensor(starts)
    empty = np.zeros(4)
    for mode, fold in (("sum", np.sum), ("mean", np.mean), ("max", np.max)):
        expected = np.stack([fold(table[b], 0) if len(b) else empty for b in bags])
        np.testing.assert_allclose(F.embedding_bag(i, w, o, mode=mode).detach().numpy(), expected, rtol=1e-12)
        ends = tt.tensor([*starts, 7])
        np.testing.assert_allclose(F.embedding_bag(i, w, ends, mode=mode, include_last_offset=True).detach().numpy(), expected, rtol=1e-12)
        without = np.stack([fold(table[b[b != 3]], 0) if (b != 3).any() else empty for b in bags])
        np.testing.assert_allclose(F.embedding_bag(i, w, o, mode=mode, padding_idx=3).detach().numpy(), without, rtol=1e-12)
        even = F.embedding_bag(i[:6].reshape(3, 2), w, mode=mode, padding_idx=-6)
        rows = index[:6].reshape(3, 2)
        picked = np.stack([fold(table[r[r != 3]], 0) if (r != 3).any() else empty for r in rows])
        np.testing.assert_allclose(even.detach().numpy(), picked, rtol=1e-12)
    per_sample = tt.tensor(weights, requires_grad=True)
    y = F.embedding_bag(i, w, o, mode="sum", per_sample_weights=per_sample)
    np.testing.assert_allclose(y.detach().numpy(), np.stack([(table[b] * s).sum(0) for b, s in zip(bags, scale, strict=True)]), rtol=1e-12)
    gradcheck(lambda w, p: F.embedding_bag(i, w, o, mode="sum", per_sample_weights=p), (w, per_sample))
    gradgradcheck(lambda w: F.embedding_bag(i, w, o, padding_idx=3), (w,))


def test_embedding_that_scales_and_renormalises():
    w = tt.tensor([[3.0, 4.0], [0.3, 0.4], [6.0, 8.0]], requires_grad=True)
    y = F.embedding(tt.tensor([0, 0, 1]), w, max_norm=1.0, scale_grad_by_freq=True)
    np.testing.assert_allclose(y.detach().numpy(), [[0.6, 0.8], [0.6, 0.8], [0.3, 0.4]], rtol=1e-6)
    assert w.tolist()[2] == [6.0, 8.0]  # rows that were not picked stay
    y.sum().backward()
    assert w.grad.tolist() == [[1.0, 1.0], [1.0, 1.0], [0.0, 0.0]]
    with pytest.raises(ValueError, match="per_sample_weights"):
        F.embedding_bag(tt.tensor([[0, 1]]), w, mode="sum", per_sample_weights=tt.ones(3))
    with pytest.raises(NotImplementedError, match="mode='sum' alone"):
        F.embedding_bag(tt.tensor([[0, 1]]), w, per_sample_weights=tt.ones(1, 2))


def test_padding_and_upsampling_layers():
    x = tt.tensor(rng.standard_normal((2, 3, 4, 5)).astype(np.float32))
    for layer, mode in (
        (nn.ReflectionPad2d((1, 2, 0, 3)), "reflect"),
        (nn.ReplicationPad2d((1, 2, 0, 3)), "edge"),
        (nn.CircularPad2d((1, 2, 0, 3)), "wrap"),
    ):
        np.testing.assert_array_equal(layer(x).numpy(), np.pad(x.numpy(), ((0, 0), (0, 0), (0, 3), (1, 2)), mode))
    np.testing.assert_array_equal(nn.ConstantPad1d(1, 7.0)(x).numpy(), np.pad(x.numpy(), ((0, 0),) * 3 + ((1, 1),), constant_values=7))
    with pytest.raises(ValueError, match="padding is"):
        nn.ZeroPad2d((1, 2, 3))
    np.testing.assert_array_equal(nn.UpsamplingNearest2d(scale_factor=2)(x).numpy(), x.numpy().repeat(2, 2).repeat(2, 3))
    np.testing.assert_array_equal(
        nn.PixelUnshuffle(2)(nn.PixelShuffle(2)(x[:, :1].expand(2, 4, 4, 5))).numpy(), x[:, :1].expand(2, 4, 4, 5).numpy()
    )
    columns = nn.Unfold(2)(x)
    counts = nn.Fold((4, 5), 2)(nn.Unfold(2)(tt.ones(2, 3, 4, 5)))
    np.testing.assert_allclose((nn.Fold((4, 5), 2)(columns) / counts).numpy(), x.numpy(), rtol=1e-6)


def test_lazy_linear_becomes_linear():
    layer = nn.LazyLinear(3)
    assert repr(layer) == "LazyLinear(in_features=0, out_features=3, bias=True)"
    assert tuple(layer(tt.ones(2, 5)).shape) == (2, 3)
    assert type(layer) is nn.Linear
    assert repr(layer) == "Linear(in_features=5, out_features=3, bias=True)"
    assert abs(layer.weight.detach().numpy()).max() <= 1 / np.sqrt(5)
