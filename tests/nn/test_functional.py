"""Functional forms against closed formulas in numpy, and the refusals."""

import numpy as np
import pytest

import tritensor as tt
import tritensor.nn.functional as F
from tritensor.ground.errors import DTypeError, ShapeError

rng = np.random.default_rng(5)


def close(found, expected, tolerance=2e-6):
    np.testing.assert_allclose(found.detach().numpy(), expected, rtol=tolerance, atol=tolerance)


def tensor(array):
    return tt.tensor(array.astype(np.float32))


def log_softmax(x):
    return x - np.log(np.exp(x).sum(1, keepdims=True))


def test_linear_and_bilinear():
    x, w, b = rng.standard_normal((2, 4, 3)), rng.standard_normal((5, 3)), rng.standard_normal(5)
    close(F.linear(tensor(x), tensor(w), tensor(b)), x @ w.T + b)
    close(F.linear(tensor(x), tensor(w)), x @ w.T)
    with pytest.raises(ShapeError, match=r"linear: input .*4, 3"):
        F.linear(tt.ones(4, 3), tt.ones(5, 2))
    x2, w2 = rng.standard_normal((2, 4, 6)), rng.standard_normal((5, 3, 6))
    close(F.bilinear(tensor(x), tensor(x2), tensor(w2), tensor(b)), np.einsum("abi,kij,abj->abk", x, w2, x2) + b)
    for shapes, message in [
        (((2, 3), (2, 5), (4, 3, 4)), "input2's last size 5 is not weight's 4"),
        (((2, 3), (3, 4), (4, 3, 4)), "the same leading sizes"),
        (((2, 3), (2, 4), (3, 4)), r"give .* and \(out, n, m\)"),
        (((2, 3), (2, 4), (4, 3, 4), (3,)), r"bias \(3,\): bias must have one value for each output, \(4,\)"),
    ]:
        with pytest.raises(ShapeError, match=message):
            F.bilinear(*(tt.ones(*shape) for shape in shapes))


@pytest.mark.parametrize("kernel", [(3, 3), (2, 4)])
def test_conv2d_same_keeps_the_size(kernel):
    x, w = rng.standard_normal((2, 3, 6, 7)), rng.standard_normal((4, 3, *kernel))
    y = F.conv2d(tensor(x), tensor(w), padding="same")
    assert tuple(y.shape) == (2, 4, 6, 7)
    before = [(k - 1) // 2 for k in kernel]
    padded = np.pad(x, ((0, 0), (0, 0), *((p, k - 1 - p) for p, k in zip(before, kernel, strict=True))))
    windows = np.lib.stride_tricks.sliding_window_view(padded, kernel, (2, 3))
    close(y, np.einsum("bchwij,ocij->bohw", windows, w), 1e-5)


def test_conv2d_without_a_batch_and_refusals():
    x, w = tensor(rng.standard_normal((3, 6, 7))), tensor(rng.standard_normal((4, 3, 3, 3)))
    y = F.conv2d(x, w, stride=2, padding=(1, 0), dilation=(1, 2))
    assert tuple(y.shape) == (4, 3, 2)
    close(y, F.conv2d(x.unsqueeze(0), w, stride=(2, 2), padding=(1, 0), dilation=(1, 2))[0].numpy())
    assert tuple(F.conv2d(x, w, padding="valid").shape) == (4, 4, 5)
    with pytest.raises(ValueError, match="'same' is not supported for strided"):
        F.conv2d(x, w, stride=2, padding="same")
    with pytest.raises(ValueError, match="padding 'full' is not known"):
        F.conv2d(x, w, padding="full")
    with pytest.raises(ShapeError, match=r"conv2d: input \(6, 7\) has 2 dimensions"):
        F.conv2d(x[0], w)
    with pytest.raises(ShapeError, match=r"stride is \(1, 2, 3\)"):
        F.conv2d(x, w, stride=(1, 2, 3))


def test_pools():
    x = rng.standard_normal((2, 3, 6, 8))
    blocks = x.reshape(2, 3, 3, 2, 4, 2)
    close(F.max_pool2d(tensor(x), 2), blocks.max((3, 5)))
    close(F.avg_pool2d(tensor(x), 2), blocks.mean((3, 5)))
    close(F.avg_pool2d(tensor(x), 2, divisor_override=3), blocks.sum((3, 5)) / 3)
    close(F.avg_pool2d(tensor(x[0]), (2, 2), stride=2), blocks.mean((3, 5))[0])
    y, places = F.max_pool2d(tensor(x), 2, return_indices=True)
    close(y, x.reshape(2, 3, 48)[np.arange(2)[:, None, None, None], np.arange(3)[:, None, None], places.numpy()])
    assert tuple(F.max_pool2d(tensor(x[0]), 3, 2, 1).shape) == (3, 3, 4)
    with pytest.raises(ValueError, match="divisor_override"):
        F.avg_pool2d(tensor(x), 2, divisor_override=0)


def test_pad():
    x = rng.standard_normal((2, 3, 4))
    close(F.pad(tensor(x), (1, 2)), np.pad(x, ((0, 0), (0, 0), (1, 2))))
    close(F.pad(tensor(x), (1, 0, 0, 2), value=7.5), np.pad(x, ((0, 0), (0, 2), (1, 0)), constant_values=7.5))
    close(F.pad(tensor(x), (-1, 2, 0, 0, 1, 0)), np.pad(x[:, :, 1:], ((1, 0), (0, 0), (0, 2))))
    t = tt.ones(2, requires_grad=True)
    (F.pad(t, (1, 1), value=3.0) * tt.tensor([5.0, 6.0, 7.0, 8.0])).sum().backward()
    assert t.grad.tolist() == [6.0, 7.0]
    with pytest.raises(ValueError, match="mode 'reflect'"):
        F.pad(t, (1, 1), mode="reflect")
    with pytest.raises(ShapeError, match="two sizes per dimension"):
        F.pad(t, (1, 1, 1))
    with pytest.raises(ShapeError, match="takes more off"):
        F.pad(t, (-2, -1))


def test_activations():
    x = rng.standard_normal((3, 4))
    close(F.relu(tensor(x)), np.maximum(x, 0))
    close(F.leaky_relu(tensor(x), 0.2), np.where(x > 0, x, 0.2 * x))
    close(F.elu(tensor(x), 0.5), np.where(x > 0, x, 0.5 * np.expm1(x)))
    close(F.softplus(tensor(x), 2.0), np.log1p(np.exp(2 * x)) / 2)
    close(F.softplus(tt.tensor([200.0, -200.0])), [200.0, 0.0])
    close(F.silu(tensor(x)), x / (1 + np.exp(-x)))
    close(F.gelu(tensor(x), "tanh"), 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))))
    close(F.softmax(tensor(x), 1), np.exp(log_softmax(x)))
    close(F.log_softmax(tensor(x), dim=-1), log_softmax(x))
    assert F.softmax(tensor(x), 0, dtype=tt.float64).dtype == tt.float64
    with pytest.warns(DeprecationWarning, match="softmax: dim was not given"):
        close(F.softmax(tensor(x)), np.exp(log_softmax(x)))
    with pytest.raises(ValueError, match="'none' or 'tanh'"):
        F.gelu(tensor(x), "fast")


@pytest.mark.parametrize(("function", "slope"), [(F.relu, 0.0), (F.leaky_relu, 0.01), (F.silu, None), (F.elu, None)])
def test_in_place_activations_write_and_differentiate(function, slope):
    leaf = tt.tensor([-2.0, 3.0], requires_grad=True)
    x = leaf * 1
    y = function(x, inplace=True)
    assert y is x
    assert x.tolist() == function(leaf).tolist()
    y.sum().backward()
    fresh = leaf.detach().clone().requires_grad_()
    function(fresh).sum().backward()
    assert leaf.grad.tolist() == fresh.grad.tolist()
    if slope is not None:
        assert leaf.grad.tolist() == pytest.approx([slope, 1.0])


def test_dropout():
    x = tt.ones(2000)
    assert F.dropout(x, 0.5, training=False) is x
    tt.manual_seed(1)
    y = F.dropout(x, 0.25)
    assert set(np.round(y.numpy(), 5)) == {0.0, np.float32(round(4 / 3, 5))}
    assert abs((y.numpy() == 0).mean() - 0.25) < 0.05
    tt.manual_seed(1)
    assert F.dropout(x, 0.25).tolist() == y.tolist()
    assert F.dropout(x, 0.25).tolist() != y.tolist()
    assert not F.dropout(x, 1.0).numpy().any()
    assert F.dropout(x, 0.0).tolist() == x.tolist()
    z = x.clone()
    assert F.dropout(z, 0.5, inplace=True) is z
    assert set(z.numpy()) == {0.0, 2.0}
    with pytest.raises(ValueError, match="between 0 and 1"):
        F.dropout(x, 1.5)


def test_layer_norm_and_normalize():
    x, w, b = rng.standard_normal((2, 3, 4)), rng.standard_normal((3, 4)), rng.standard_normal((3, 4))
    mean, var = x.mean((1, 2), keepdims=True), x.var((1, 2), keepdims=True)
    close(F.layer_norm(tensor(x), (3, 4), tensor(w), tensor(b)), (x - mean) / np.sqrt(var + 1e-5) * w + b, 1e-5)
    close(F.layer_norm(tensor(x), 4), (x - x.mean(2, keepdims=True)) / np.sqrt(x.var(2, keepdims=True) + 1e-5), 1e-5)
    with pytest.raises(ShapeError, match=r"normalized_shape \(4, 3\) is not the end"):
        F.layer_norm(tensor(x), (4, 3))
    close(F.normalize(tensor(x), dim=2), x / np.sqrt((x**2).sum(2, keepdims=True)))
    close(F.normalize(tensor(x), p=1, dim=0), x / np.abs(x).sum(0, keepdims=True))
    close(F.normalize(tt.zeros(1, 2)), np.zeros((1, 2)))


def test_embedding_and_one_hot():
    w = rng.standard_normal((5, 3))
    index = tt.tensor([[0, 4], [2, 2]])
    weight = tensor(w).requires_grad_()
    y = F.embedding(index, weight, padding_idx=-3)
    close(y, w[index.numpy()])
    y.sum().backward()
    assert weight.grad[:, 0].tolist() == [1.0, 0.0, 0.0, 0.0, 1.0]
    with pytest.raises(ValueError, match="padding_idx 5 is out of range for 5 rows"):
        F.embedding(index, weight, padding_idx=5)
    assert F.one_hot(tt.tensor([[0, 2]])).tolist() == [[[1, 0, 0], [0, 0, 1]]]
    assert F.one_hot(tt.tensor([1]), 3).dtype == tt.int64
    with pytest.raises(ValueError, match="class values must be non-negative"):
        F.one_hot(tt.tensor([0, -1]))
    with pytest.raises(ValueError, match="labels run from 0 to 5, num_classes is 3; give labels of 0 to 2"):
        F.one_hot(tt.tensor([0, 5]), 3)
    with pytest.raises(DTypeError, match="class labels are integers"):
        F.one_hot(tt.ones(2))


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_cross_entropy_and_nll(reduction):
    x, t, w = rng.standard_normal((4, 3, 2)), rng.integers(0, 3, (4, 2)), rng.random(3) + 0.5
    t[1, 0] = -100
    counted = t >= 0
    label = np.where(counted, t, 0)
    picked = -np.take_along_axis(log_softmax(x), label[:, None], 1)[:, 0] * w[label] * counted
    expected = {"mean": picked.sum() / (w[label] * counted).sum(), "sum": picked.sum(), "none": picked}[reduction]
    close(F.cross_entropy(tensor(x), tt.tensor(t), tensor(w), reduction=reduction), expected)
    close(F.nll_loss(F.log_softmax(tensor(x), 1), tt.tensor(t), tensor(w), reduction=reduction), expected)
    plain = -np.take_along_axis(log_softmax(x), label[:, None], 1)[:, 0] * counted
    expected = {"mean": plain.sum() / counted.sum(), "sum": plain.sum(), "none": plain}[reduction]
    close(F.nll_loss(F.log_softmax(tensor(x), 1), tt.tensor(t), reduction=reduction), expected)
    p = rng.random((4, 3, 2))
    p /= p.sum(1, keepdims=True)
    soft = -(p * w[:, None] * log_softmax(x)).sum(1)
    expected = {"mean": soft.mean(), "sum": soft.sum(), "none": soft}[reduction]
    close(F.cross_entropy(tensor(x), tensor(p), tensor(w), reduction=reduction), expected)
    smooth = -((p * 0.9 + 0.1 / 3) * log_softmax(x)).sum(1)
    expected = {"mean": smooth.mean(), "sum": smooth.sum(), "none": smooth}[reduction]
    close(F.cross_entropy(tensor(x), tensor(p), reduction=reduction, label_smoothing=0.1), expected)


def test_other_losses():
    x, y = rng.standard_normal((3, 4)), rng.random((3, 4))
    close(F.mse_loss(tensor(x), tensor(y)), ((x - y) ** 2).mean())
    close(F.mse_loss(tensor(x), tensor(y), reduction="none"), (x - y) ** 2)
    close(F.l1_loss(tensor(x), tensor(y), reduction="sum"), np.abs(x - y).sum())
    s = 1 / (1 + np.exp(-x))
    p, w = rng.random(4) + 1, rng.random((3, 4))
    expected = -(p * y * np.log(s) + (1 - y) * np.log(1 - s)) * w
    close(F.binary_cross_entropy_with_logits(tensor(x), tensor(y), tensor(w), pos_weight=tensor(p)), expected.mean())
    close(F.binary_cross_entropy_with_logits(tt.tensor([-200.0, 200.0]), tt.tensor([0.0, 0.0]), reduction="none"), [0.0, 200.0])
    with pytest.raises(ShapeError, match=r"input \(3, 4\) and target \(4,\) must have one shape"):
        F.mse_loss(tensor(x), tt.ones(4))
    with pytest.raises(ValueError, match="reduction is 'average'"):
        F.l1_loss(tensor(x), tensor(y), reduction="average")
    with pytest.raises(ShapeError, match="nll_loss: input"):
        F.nll_loss(tensor(x), tt.tensor([1, 2]))


@pytest.mark.parametrize("name", ["relu", "leaky_relu", "elu", "silu"])
def test_errors_name_the_activation_that_wrote_in_place(name):
    x = tt.ones(3, requires_grad=True)
    with pytest.raises(RuntimeError, match=f"^{name}_: a leaf"):
        getattr(F, name)(x, inplace=True)
    y = x.exp()
    getattr(F, name)(y, inplace=True)
    with pytest.raises(RuntimeError, match=f"exp saved its output y, which {name}_ then overwrote"):
        y.sum().backward()


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_softplus_is_the_identity_above_its_threshold(device):
    x = tt.tensor([1.0, 1.1, -3.0, 30.0], dtype=tt.float64, device=device, requires_grad=True)
    y = F.softplus(x, beta=2, threshold=2)
    close(y.cpu(), [np.log1p(np.exp(2)) / 2, 1.1, np.log1p(np.exp(-6)) / 2, 30], 1e-15)
    y.sum().backward()
    close(x.grad.cpu(), [1 / (1 + np.exp(-2)), 1, 1 / (1 + np.exp(6)), 1], 1e-15)
    assert F.softplus(tt.tensor([20.5, np.nan, 19.5], dtype=tt.float64, device=device)).tolist()[0] == 20.5
    assert F.softplus(tt.tensor([19.5], dtype=tt.float64, device=device)).item() > 19.5


@pytest.mark.parametrize("device", ["cpu", "cuda"])
@pytest.mark.parametrize("stride", [(), [], None])
def test_pooling_without_strides(stride, device):
    x = tensor(rng.standard_normal((2, 3, 4, 6))).to(device)
    for pool in (F.max_pool2d, F.avg_pool2d):
        assert pool(x, (2, 3), stride).tolist() == pool(x, (2, 3), (2, 3)).tolist()


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_average_pooling_with_a_divisor(device):
    x = tt.ones(1, 5, 5, device=device, requires_grad=True)
    y = F.avg_pool2d(x, 3, 2, ceil_mode=True, divisor_override=2)
    assert y.tolist() == [[[4.5, 4.5], [4.5, 4.5]]]
    y = F.avg_pool2d(x, 2, 2, 1, ceil_mode=True, divisor_override=4)
    assert y.tolist() == [[[0.25, 0.5, 0.5], [0.5, 1, 1], [0.5, 1, 1]]]
    y.sum().backward()
    assert x.grad.tolist() == [[[0.25] * 5] * 5]
    with pytest.raises(ValueError, match="divisor_override is 0"):
        F.avg_pool2d(x, 2, divisor_override=0)


@pytest.mark.parametrize("device", ["cpu", "cuda"])
@pytest.mark.parametrize("dtype", [tt.int8, tt.uint8, tt.int16, tt.int32, tt.int64])
def test_max_pooling_of_integers(dtype, device):
    x = tt.tensor([[[3, 1, 0], [2, 7, 5]]], device=device).to(dtype)
    y, where = F.max_pool2d(x - x.max() if dtype.kind == "int" else x, 2, 1, padding=1, return_indices=True)
    moved = 7 if dtype.kind == "int" else 0
    assert (y + moved).tolist() == [[[3, 3, 1, 0], [3, 7, 7, 5], [2, 7, 7, 5]]]
    assert y.dtype == dtype
    assert where.tolist() == [[[0, 0, 1, 2], [0, 4, 4, 5], [3, 4, 4, 5]]]


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_linear_of_one_output(device):
    x = tensor(rng.standard_normal((2, 4, 3))).to(device)
    w, b = tensor(rng.standard_normal(3)).to(device), tt.tensor(0.5, device=device)
    y = F.linear(x, w, b)
    assert y.shape == (2, 4)
    close(y.cpu(), x.cpu().numpy() @ w.cpu().numpy() + 0.5)
    close(F.linear(x[0, 0], w).cpu(), x[0, 0].cpu().numpy() @ w.cpu().numpy())
    with pytest.raises(ShapeError, match=r"a weight of one output takes a bias of shape \(\)"):
        F.linear(x, w, tt.ones(3, device=device))


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_cross_entropy_smooths_labels(device):
    x, target, weight = rng.standard_normal((6, 4)), np.array([0, 3, 1, -100, 2, 2]), rng.uniform(0.5, 2, 4)
    logs = log_softmax(x)
    kept = target >= 0
    row = np.flatnonzero(kept)
    chosen = -(weight[target[kept]] * logs[row, target[kept]])
    even = -(weight * logs[row]).sum(1) / 4
    for smoothing in (0.0, 0.1, 1.0):
        want = ((1 - smoothing) * chosen + smoothing * even).sum() / weight[target[kept]].sum()
        found = F.cross_entropy(
            tensor(x).to(device), tt.tensor(target, device=device), tensor(weight).to(device), label_smoothing=smoothing
        )
        close(found.cpu(), want)
    with pytest.raises(ValueError, match=r"label_smoothing 1\.5 is not between 0 and 1"):
        F.cross_entropy(tensor(x), tt.tensor(target), label_smoothing=1.5)


def test_sparse_warns_once_for_each_function_at_the_users_line(monkeypatch):
    from tritensor.nn.functional import sparse

    monkeypatch.setattr(sparse, "_warned", set())
    table, bags = tt.nn.Embedding(3, 2, sparse=True), tt.nn.EmbeddingBag(3, 2, sparse=True)

    def run():
        for _ in range(2):
            table(tt.tensor([1]))
            bags(tt.tensor([[1]]))

    with pytest.warns(UserWarning, match="the weight's gradient is dense") as told:
        run()
    assert [str(w.message).split(":")[0] for w in told] == ["embedding", "embedding_bag"]
    assert {w.filename for w in told} == {__file__}
    assert all("optim.Adam" in str(w.message) for w in told)


@pytest.mark.parametrize("device", ["cpu", "cuda"])
@pytest.mark.parametrize("mode", ["sum", "max"])
def test_a_bad_index_of_a_bag_is_told_by_row_and_place(mode, device):
    w = tt.ones(5, 3, device=device)
    with pytest.raises(IndexError, match=r"embedding_bag: index 7 at position \(1, 2\) is out of range for dim 0 of size 5"):
        F.embedding_bag(tt.tensor([[0, 1, 2], [3, 4, 7]], device=device), w, mode=mode).tolist()
    with pytest.raises(IndexError, match="embedding_bag: index 7 at position 1 "):
        F.embedding_bag(tt.tensor([0, 7], device=device), w, tt.tensor([0], device=device), mode=mode).tolist()


@pytest.mark.parametrize("size", [1, 2, 4])
@pytest.mark.parametrize("kernel", [1, 2, 3])
def test_the_largest_output_of_fractional_pooling(size, kernel):
    """Of images all that fits, of volumes one less."""
    for pool, axes, most in ((F.fractional_max_pool2d, 2, size + 1 - kernel), (F.fractional_max_pool3d, 3, size - kernel)):
        x = tt.ones(1, 1, *(size,) * axes)
        if most > 0:
            assert pool(x, kernel, output_size=most).shape == (1, 1, *(most,) * axes)
        with pytest.raises(tt.ShapeError, match=f"{pool.__name__}: .* cannot be had"):
            pool(x, kernel, output_size=max(most, 0) + 1)


def test_products_of_groups_are_those_of_each() -> None:
    a, b = tt.randn(7, 4, dtype=tt.float64, requires_grad=True), tt.randn(3, 4, 2, dtype=tt.float64, requires_grad=True)
    offs = tt.tensor([2, 2, 5], dtype=tt.int32)  # the second group is empty, the last two rows are in none
    y = F.grouped_mm(a, b, offs=offs)
    want = tt.cat([a[:2] @ b[0], a[2:5] @ b[2], tt.zeros(2, 2, dtype=tt.float64)])
    tt.testing.assert_close(y, want)
    for found, wanted in zip(tt.autograd.grad(y.square().sum(), (a, b)), tt.autograd.grad(want.square().sum(), (a, b)), strict=True):
        tt.testing.assert_close(found, wanted)
    assert F.grouped_mm(b.mT, a.mT, offs=offs).equal(y.mT)
    parts = F.grouped_mm(a.mT, a, offs=offs)
    tt.testing.assert_close(parts, tt.stack([a[:2].mT @ a[:2], a[:0].mT @ a[:0], a[2:5].mT @ a[2:5]]))


def test_groups_that_do_not_fit_are_refused() -> None:
    a, b, offs = tt.ones(7, 4), tt.ones(3, 4, 2), tt.tensor([2, 2, 5], dtype=tt.int32)
    for arguments, options, said in (
        ((a, b), {}, "give offs, where each group of a 2D operand ends"),
        ((b.mT, b), {"offs": offs}, "3D operands take no offs"),
        ((a, b), {"offs": offs[:2]}, r"offs \(2,\) of int32: give \(3,\) of int32"),
        ((a, b), {"offs": offs.long()}, "offs .* of int64"),
        ((a, b), {"offs": offs.flip(0)}, r"offs \[5, 2, 2\]: give where each group ends, from 0 to 7"),
        ((a, b), {"offs": offs + 3}, r"offs \[5, 5, 8\]"),
        ((a, b), {"offs": offs, "bias": a}, "bias and another out_dtype are not supported"),
        ((a, b.double()), {"offs": offs}, "give both in one floating type"),
        ((a[0], b), {"offs": offs}, "of the same k"),
    ):
        with pytest.raises((RuntimeError, TypeError), match=said):
            F.grouped_mm(*arguments, **options)
