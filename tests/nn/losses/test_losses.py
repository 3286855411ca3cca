"""Losses against closed formulas in numpy, CTC against every path, and what all of them refuse."""

import itertools

import numpy as np
import pytest

import tritensor as tt
import tritensor.nn.functional as F
from tritensor import nn
from tritensor.autograd import gradcheck, gradgradcheck
from tritensor.ground.errors import ShapeError
from tritensor.llvm.passes import softmaxes
from tritensor.ops.table import ops

rng = np.random.default_rng(11)


def close(found, expected, tolerance=1e-6):
    np.testing.assert_allclose(found.detach().numpy(), expected, rtol=tolerance, atol=tolerance)


X, T = rng.standard_normal((40, 60)), 0.05 + 0.9 * rng.random((40, 60))  # more elements than machine code asks for
_D = X - T
POINTWISE = [
    (F.mse_loss, (X, T), {}, _D**2),
    (F.l1_loss, (X, T), {}, abs(_D)),
    (F.smooth_l1_loss, (X, T), {"beta": 0.3}, np.where(abs(_D) < 0.3, _D**2 / 0.6, abs(_D) - 0.15)),
    (F.huber_loss, (X, T), {"delta": 0.3}, np.where(abs(_D) <= 0.3, _D**2 / 2, 0.3 * (abs(_D) - 0.15))),
    (F.binary_cross_entropy, (T, 1 - T), {}, -((1 - T) * np.log(T) + T * np.log1p(-T))),
    (F.binary_cross_entropy_with_logits, (X, T), {}, np.log1p(np.exp(-X)) + (1 - T) * X),
    (F.kl_div, (X, T), {}, T * (np.log(T) - X)),
    (F.kl_div, (X, -T), {"log_target": True}, np.exp(-T) * (-T - X)),
    (F.soft_margin_loss, (X, np.sign(T - 0.5)), {}, np.log1p(np.exp(-np.sign(T - 0.5) * X))),
    (F.poisson_nll_loss, (X, T), {}, np.exp(X) - T * X),
    (F.poisson_nll_loss, (T, T), {"log_input": False, "eps": 0.1}, T - T * np.log(T + 0.1)),
]


@pytest.mark.filterwarnings("ignore:kl_div")
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("case", range(len(POINTWISE)))
def test_pointwise(case, dtype):
    loss, inputs, given, expected = POINTWISE[case]
    x, t = (tt.tensor(a.astype(dtype)) for a in inputs)
    tolerance = {"float32": 2e-6, "float64": 1e-12, "float16": 3e-3}[dtype]
    for reduction, whole in (("none", expected), ("mean", expected.mean()), ("sum", expected.sum())):
        if dtype != "float16" or reduction != "sum":
            close(loss(x, t, reduction=reduction, **given), whole, tolerance * (1 + abs(whole).max()))
    close(loss(x.t(), t.t(), reduction="none", **given), expected.T, tolerance * (1 + abs(expected).max()))


@pytest.mark.filterwarnings("ignore:kl_div")
@pytest.mark.parametrize("case", range(len(POINTWISE)))
def test_slopes_of_many_are_those_of_few(case):
    loss, inputs, given, _ = POINTWISE[case]
    x, t = (tt.tensor(a.astype(np.float32), requires_grad=True) for a in inputs)
    many = tt.autograd.grad(loss(x, t, reduction="sum", **given), (x, t))
    a, b = (tt.tensor(v.astype(np.float32)[:2], requires_grad=True) for v in inputs)
    few = tt.autograd.grad(loss(a, b, reduction="sum", **given), (a, b))
    for m, f in zip(many, few, strict=True):
        close(m[:2], f.numpy(), 3e-6)
    if "log_target" not in given and loss is not F.soft_margin_loss:
        gradgradcheck(lambda a, b: loss(a, b, **given), [tt.tensor(v[:2, :3], requires_grad=True) for v in inputs])


def crossed(x, labels, weight, smoothing, ignored):
    """Mean cross-entropy of (n, c, ...) in float64, and its gradient by x."""
    moved = np.moveaxis(x.astype(np.float64), 1, -1).reshape(-1, x.shape[1])
    flat = labels.reshape(-1)
    counts = flat != ignored
    w = np.ones(x.shape[1]) if weight is None else weight.astype(np.float64)
    q = np.full(moved.shape, smoothing / x.shape[1]) * w
    safe = np.where(counts, flat, 0)
    q[np.arange(len(q)), safe] += (1 - smoothing) * w[safe]
    q *= counts[:, None]
    top = moved.max(1, keepdims=True)
    lse = top + np.log(np.exp(moved - top).sum(1, keepdims=True))
    share = (w[safe] * counts).sum()
    slope = (np.exp(moved - lse) * q.sum(1, keepdims=True) - q) / share
    slope = np.moveaxis(slope.reshape(x.shape[0], *x.shape[2:], x.shape[1]), -1, 1)
    return (q * (lse - moved)).sum() / share, slope


@pytest.mark.parametrize("shape", [(900, 3), (70, 40), (7, 400), (3, 5, 30, 7), (2, 33, 17, 3)])
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize(("weighed", "smoothing", "ignored"), [(False, 0.0, -100), (False, 0.2, 1), (True, 0.0, 0), (True, 0.1, -100)])
def test_cross_entropy_of_many_logits(shape, dtype, weighed, smoothing, ignored):
    x = tt.tensor(4 * rng.standard_normal(shape)).to(getattr(tt, dtype)).requires_grad_()
    labels = rng.integers(0, shape[1], (shape[0], *shape[2:]))
    weight = 0.5 + rng.random(shape[1]) if weighed else None
    given = None if weight is None else tt.tensor(weight).to(x.dtype)
    loss = F.cross_entropy(x, tt.tensor(labels), given, ignore_index=ignored, label_smoothing=smoothing)
    loss.backward()
    expected, slope = crossed(x.detach().double().numpy(), labels, None if given is None else given.double().numpy(), smoothing, ignored)
    tolerance = {"float32": 3e-6, "float64": 1e-12, "bfloat16": 1e-2}[dtype]
    close(loss.double(), expected, tolerance)
    close(x.grad.double(), slope, tolerance / 10)


def test_machine_code_serves_many_logits():
    if not softmaxes.takes(np.ones((900, 3, 1), np.float32)):
        pytest.skip("no machine code for this processor")
    m, s, d = softmaxes.peaks(np.full((700, 5, 1), 2.0, np.float32))
    assert m.tolist() == [[2.0]] * 700
    assert s.tolist() == [[5.0]] * 700
    assert not d.any()


@pytest.mark.parametrize("device", ["cpu", "cuda"])
@pytest.mark.parametrize("loss", [F.smooth_l1_loss, F.huber_loss])
def test_no_number_has_no_slope(loss, device):
    """A difference that is no number is on neither side of the bend: NaN reaches both inputs, as in PyTorch."""
    for n in (2, 2100) if device == "cpu" else (2,):
        x, t = (tt.tensor(np.resize(np.float32(v), n), device=device, requires_grad=True) for v in ([np.nan, np.inf], [0, 0]))
        for slope, sign in zip(tt.autograd.grad(loss(x, t, reduction="sum"), (x, t)), (1, -1), strict=True):
            np.testing.assert_array_equal(slope.cpu().numpy()[:2], [np.nan, sign])


def test_wild_rows_that_do_not_count():
    x = np.zeros((500, 6), np.float32)
    x[3] = np.nan
    x[4] = np.inf
    labels = rng.integers(0, 6, 500)
    labels[3:5] = -100
    a = tt.tensor(x, requires_grad=True)
    loss = F.cross_entropy(a, tt.tensor(labels))
    loss.backward()
    close(loss, np.log(6.0))
    assert not a.grad.numpy()[3:5].any()
    assert np.isfinite(a.grad.numpy()).all()


def paths(log_probs, target, blank):
    """-log of the summed probability of all ways to place a target, by trying every path."""
    time, classes = log_probs.shape
    total = 0.0
    for path in itertools.product(range(classes), repeat=time):
        labels = [k for k, _ in itertools.groupby(path) if k != blank]
        if labels == list(target):
            total += np.exp(sum(log_probs[t, k] for t, k in enumerate(path)))
    return -np.log(total) if total else np.inf


def test_ctc_is_the_sum_over_all_paths():
    x = rng.standard_normal((5, 3, 3))
    p = x - np.log(np.exp(x).sum(2, keepdims=True))
    targets, times, counts = [[1, 2], [2, 2], [1, 0]], [5, 4, 3], [2, 2, 1]
    expected = [paths(p[:t, n], targets[n][:c], 0) for n, (t, c) in enumerate(zip(times, counts, strict=True))]
    found = F.ctc_loss(tt.tensor(p), tt.tensor(targets), times, counts, reduction="none")
    close(found, expected, 1e-12)
    flat = tt.tensor([1, 2, 2, 2, 1])
    close(F.ctc_loss(tt.tensor(p), flat, tt.tensor(times), tt.tensor(counts)), np.mean(np.divide(expected, counts)), 1e-12)
    given = (tt.tensor(targets), tt.tensor(times), tt.tensor(counts))
    a = tt.tensor(p, requires_grad=True)
    gradcheck(lambda a: ops.ctc_loss(a, *given, blank=0), (a,))
    gradgradcheck(lambda a: ops.ctc_loss(a, *given, blank=0), (a,))
    logits = tt.tensor(x, requires_grad=True)
    gradcheck(lambda a: F.ctc_loss(a.log_softmax(2), *given), (logits,))
    gradgradcheck(lambda a: F.ctc_loss(a.log_softmax(2), *given, reduction="sum"), (logits,))


def test_ctc_of_targets_that_do_not_fit():
    p = tt.tensor(np.log(np.full((3, 2, 4), 0.25)), requires_grad=True)
    targets = tt.tensor([[1, 1], [2, 3]])
    assert F.ctc_loss(p[:2], targets, (2, 2), (2, 2), reduction="none").tolist()[0] == np.inf
    F.ctc_loss(p[:2], targets, (2, 2), (2, 2), reduction="sum", zero_infinity=True).backward()
    assert np.isfinite(p.grad.numpy()).all()
    assert not p.grad.numpy()[:, 0].any()
    assert F.ctc_loss(p, targets, (0, 3), (0, 1), reduction="none").tolist()[0] == 0.0
    with pytest.raises(ValueError, match=r"input_lengths holds 9; it must be at most 3"):
        F.ctc_loss(p, targets, (9, 3), (1, 1))
    with pytest.raises(IndexError, match=r"label 7 at position \(0, 1\) is no class; there are 4, 0 to 3"):
        F.ctc_loss(p, tt.tensor([[1, 7], [2, 3]]), (3, 3), (2, 2))


def test_shapes_that_would_pair_everything_with_everything():
    column, row = tt.ones(4, 1), tt.ones(4)
    for loss in (F.mse_loss, F.l1_loss, F.smooth_l1_loss, F.huber_loss, F.binary_cross_entropy, F.binary_cross_entropy_with_logits):
        with pytest.raises(ShapeError, match=r"input \(4, 1\) and target \(4,\) must have one shape; give input.squeeze\(-1\)"):
            loss(column, row)
    for loss in (F.kl_div, F.poisson_nll_loss, F.soft_margin_loss, F.hinge_embedding_loss):
        with pytest.raises(ShapeError, match=r"would become \(4, 4\), every pair"), pytest.warns() if loss is F.kl_div else _nothing():
            loss(column, row)


class _nothing:
    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None


def test_probabilities_outside_their_range():
    with pytest.raises(RuntimeError, match=r"between 0 and 1, but 1.5 is at position \(0, 1\)"):
        F.binary_cross_entropy(tt.tensor([[0.5, 1.5]]), tt.ones(1, 2))
    with pytest.raises(RuntimeError, match="between 0 and 1, but nan"):
        F.binary_cross_entropy(tt.tensor([0.5, float("nan")]), tt.ones(2))


def test_targets_that_are_no_probabilities():
    half = tt.tensor([0.5, 0.5])
    for target, said in ((255.0, "255"), (-0.1, "-0.1"), (float("nan"), "nan")):
        for given in ({}, {"reduction": "none"}, {"weight": half}):
            with pytest.raises(RuntimeError, match=f"elements of target should be between 0 and 1, but {said} is at position 1"):
                F.binary_cross_entropy(half, tt.tensor([0.0, target]), **given)
        there = F.binary_cross_entropy(half.cuda(), tt.tensor([0.0, target]).cuda(), reduction="none").tolist()
        assert there[0] == pytest.approx(np.log(2))
        assert np.isnan(there[1])
    assert F.binary_cross_entropy(half, tt.tensor([0.0, 1.0])).item() == pytest.approx(np.log(2))


def test_arguments_that_no_loss_has():
    x, wide, nan = tt.tensor([0.5, 0.25]), tt.ones(3, 2), float("nan")
    for call, error, said in (
        (lambda: F.binary_cross_entropy(x, x, weight=wide), ValueError, r"weight \(3, 2\) does not broadcast to input \(2,\)"),
        (lambda: F.binary_cross_entropy_with_logits(x, x, weight=wide), ValueError, r"weight \(3, 2\) does not broadcast"),
        (lambda: F.binary_cross_entropy_with_logits(x, x, pos_weight=wide), ValueError, r"pos_weight \(3, 2\) does not broadcast"),
        (lambda: F.smooth_l1_loss(x, x, beta=nan), ValueError, "beta is nan"),
        (lambda: F.poisson_nll_loss(x, x, log_input="no"), TypeError, "log_input is 'no'; give True or False"),
        (lambda: F.triplet_margin_loss(wide, wide, wide, swap="no"), TypeError, "swap is 'no'"),
        (lambda: F.embedding(tt.tensor([0]), wide, padding_idx=0.5), TypeError, "padding_idx is 0.5"),
        (lambda: F.embedding(tt.tensor([0]), wide, padding_idx=True), TypeError, "padding_idx is True"),
        (lambda: F.instance_norm(tt.ones(1, 2, 5), tt.zeros(2), None), RuntimeError, "give both, or neither"),
        (lambda: F.cosine_similarity(wide, wide, eps=-1.0), RuntimeError, "eps is -1.0"),
        (lambda: F.cosine_similarity(wide, wide, eps=nan), RuntimeError, "eps is nan"),
        (lambda: F.rrelu(x, lower=-float("inf"), training=True), RuntimeError, "lower is -inf"),
        (lambda: F.rrelu(x, upper=float("inf")), RuntimeError, "upper inf"),
    ):
        with pytest.raises(error, match=said):
            call()


def test_adaptive_log_softmax():
    tt.manual_seed(0)
    layer = nn.AdaptiveLogSoftmaxWithLoss(8, 12, [3, 7], div_value=2.0, head_bias=True)
    x, target = tt.randn(9, 8), tt.tensor([0, 1, 2, 3, 6, 7, 11, 5, 0])
    output, loss = layer(x, target)
    whole = layer.log_prob(x)
    close(whole.exp().sum(1), np.ones(9), 1e-5)
    close(output, whole.detach().numpy()[np.arange(9), target.numpy()], 1e-5)
    close(loss, -output.detach().numpy().mean())
    assert layer.predict(x).tolist() == whole.argmax(1).tolist()
    loss.backward()
    assert all(p.grad is not None for p in layer.parameters())
    with pytest.raises(IndexError, match="label 12 at position 1 is no class; there are 12"):
        layer(x[:2], tt.tensor([0, 12]))
    with pytest.raises(ValueError, match="rising order"):
        nn.AdaptiveLogSoftmaxWithLoss(8, 12, [7, 3])


@pytest.mark.parametrize("kind", [tt.int64, tt.uint8])
def test_a_single_sample_with_a_batch_of_one_label(kind):
    x, one, alone = tt.randn(4, requires_grad=True), tt.tensor([1], dtype=kind), tt.tensor(1, dtype=kind)
    for loss in (F.nll_loss, F.cross_entropy):
        for reduction in ("none", "mean", "sum"):
            found = loss(x, one, reduction=reduction)
            assert found.shape == ()
            assert found.item() == loss(x, alone, reduction=reduction).item()
        with pytest.raises(ShapeError, match=r"\(4,\).*\(2,\)"):
            loss(x, tt.tensor([1, 2]))
    one = one.long()
    assert F.multi_margin_loss(x, one, reduction="none").tolist() == [F.multi_margin_loss(x, one[0], reduction="none").item()]
    assert F.multi_margin_loss(x, one).shape == ()


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_second_derivatives_of_binary_cross_entropy(device):
    """(1 - t) / (1 - x)^2 + t / x^2; and PyTorch's, ((1 - t) x^2 + t (1 - x)^2) / 1e-24, where x (1 - x) is below 1e-12: 0 where x is a certain target."""
    for dtype in (tt.float64, tt.float32):
        x = tt.tensor([0.0, 1.0, 0.0, 1.0, 1e-6, 0.5, 0.25, 1 - 2**-20], dtype=dtype, device=device, requires_grad=True)
        t = tt.tensor([0.0, 1.0, 1.0, 0.0, 0.0, 1.0, 0.5, 1.0], dtype=dtype, device=device, requires_grad=True)
        (first,) = tt.autograd.grad(F.binary_cross_entropy(x, t, reduction="sum"), x, create_graph=True)
        slopes = [0.0, 0.0, -1e12, 1e12, 1 / (1 - 1e-6), -2.0, 0.5 / 0.75 - 0.5 / 0.25, -1 / (1 - 2**-20)]
        assert first.tolist() == pytest.approx(slopes, rel=1e-6)
        (plain,) = tt.autograd.grad(F.binary_cross_entropy(x, t, reduction="sum"), x)
        assert first.tolist() == pytest.approx(plain.tolist(), rel=1e-6)
        by_x, by_t = tt.autograd.grad(first.sum(), (x, t), create_graph=True)
        assert by_x.tolist() == pytest.approx(
            [0.0, 0.0, 1e24, 1e24, 1 / (1 - 1e-6) ** 2, 4.0, 0.5 / 0.75**2 + 0.5 / 0.25**2, (1 - 2**-20) ** -2], rel=1e-6
        )
        assert by_t.tolist() == pytest.approx(
            [-1e12] * 4 + [-1 / (1e-6 * (1 - 1e-6)), -4.0, -1 / 0.1875, -1 / (2**-20 * (1 - 2**-20))], rel=1e-5
        )
        (third,) = tt.autograd.grad(by_x.sum(), x)
        assert third[5:7].tolist() == pytest.approx([-16.0, 2 * 0.5 / 0.75**3 - 2 * 0.5 / 0.25**3], rel=1e-6)
    for dtype in (tt.float16, tt.bfloat16):  # in which 1e-12 is 0
        x = tt.tensor([0.0, 1.0, 0.5], dtype=dtype, device=device, requires_grad=True)
        (first,) = tt.autograd.grad(F.binary_cross_entropy(x, tt.ones_like(x) * (x.detach() != 0), reduction="sum"), x, create_graph=True)
        assert first.tolist() == [0.0, 0.0, -2.0]
        assert tt.autograd.grad(first.sum(), x)[0].tolist() == [0.0, 0.0, 4.0]


def test_an_infinite_variance():
    x, var = (tt.tensor([v], dtype=tt.float64, requires_grad=True) for v in (1.0, np.inf))
    loss = F.gaussian_nll_loss(x, tt.zeros(1, dtype=tt.float64), var)
    assert loss.item() == np.inf
    assert [g.tolist() for g in tt.autograd.grad(loss, (x, var))] == [[0.0], [0.0]]


def test_probabilities_of_a_wider_type_are_not_rounded():
    rng = np.random.default_rng(0)
    logits, share = rng.standard_normal((3, 4)).astype(np.float16), rng.dirichlet(np.ones(4), 3)
    wanted = -(share * (logits - np.log(np.exp(logits.astype(np.float64)).sum(1, keepdims=True)))).sum(1)
    for kind, within in ((tt.float32, 1e-6), (tt.float64, 1e-14)):
        x = tt.tensor(logits, requires_grad=True)
        loss = F.cross_entropy(x, tt.tensor(share, dtype=kind), reduction="none", weight=tt.ones(4, dtype=tt.float16))
        assert loss.dtype == kind
        np.testing.assert_allclose(loss.detach().numpy(), wanted, rtol=within)
        loss.sum().backward()
        assert x.grad.dtype == tt.float16
