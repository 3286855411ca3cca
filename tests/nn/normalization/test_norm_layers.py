"""Layers that normalise: closed forms, running statistics, modes, gradients of gradients."""

import copy
import pickle

import numpy as np
import pytest

import tritensor as tt
from tritensor import nn
from tritensor.nn import functional as F


def drawn(*shape, seed=0):
    return tt.from_numpy(np.random.default_rng(seed).standard_normal(shape) + 0.5)


def test_running_statistics_move_by_momentum():
    layer, x = nn.BatchNorm1d(3, momentum=0.25).double(), drawn(6, 3, 4)
    layer(x)
    np.testing.assert_allclose(layer.running_mean.numpy(), 0.25 * x.mean((0, 2)).numpy())
    np.testing.assert_allclose(layer.running_var.numpy(), 0.75 + 0.25 * x.var((0, 2)).numpy())  # of n - 1
    assert layer.num_batches_tracked.item() == 1
    layer.eval()
    y = layer(x)
    expected = (x.numpy() - layer.running_mean.numpy()[:, None]) / np.sqrt(layer.running_var.numpy()[:, None] + 1e-5)
    np.testing.assert_allclose(y.detach().numpy(), expected)
    assert layer.num_batches_tracked.item() == 1


def test_who_saved_running_statistics_learns_that_they_moved():
    layer = nn.BatchNorm1d(3).double()
    y = (layer.running_mean * drawn(3).requires_grad_()).sum()
    before = layer.running_mean._version, layer.running_var._version, layer.num_batches_tracked._version
    layer(drawn(6, 3, 4))
    after = layer.running_mean._version, layer.running_var._version, layer.num_batches_tracked._version
    assert all(a > b for a, b in zip(after, before, strict=True))
    with pytest.raises(RuntimeError, match="batch_norm"):
        y.backward()


def test_statistics_that_are_views_or_of_another_type_move_as_well():
    store, x = tt.zeros(3, 2, dtype=tt.float64), drawn(6, 3, 4)
    F.batch_norm(x, store[:, 0], tt.ones(3, dtype=tt.float64), training=True, momentum=0.5)
    np.testing.assert_allclose(store.numpy(), np.stack([0.5 * x.mean((0, 2)).numpy(), np.zeros(3)], 1))


def test_without_momentum_they_are_the_mean_of_all_batches():
    layer, batches = nn.BatchNorm2d(2, momentum=None).double(), [drawn(3, 2, 4, 5, seed=i) for i in range(4)]
    for x in batches:
        layer(x)
    np.testing.assert_allclose(layer.running_mean.numpy(), np.mean([x.mean((0, 2, 3)).numpy() for x in batches], 0))
    np.testing.assert_allclose(layer.running_var.numpy(), np.mean([x.var((0, 2, 3)).numpy() for x in batches], 0))
    layer.reset_running_stats()
    assert layer.running_mean.tolist() == [0, 0]
    assert layer.running_var.tolist() == [1, 1]
    assert layer.num_batches_tracked.item() == 0


def test_instances_statistics_are_their_mean():
    layer, x = nn.InstanceNorm1d(2, momentum=0.5, track_running_stats=True).double(), drawn(3, 2, 6)
    y = layer(x)
    np.testing.assert_allclose(y.numpy().mean(2), 0, atol=1e-12)
    np.testing.assert_allclose(layer.running_mean.numpy(), 0.5 * x.mean(2).mean(0).numpy())
    np.testing.assert_allclose(layer.running_var.numpy(), 0.5 + 0.5 * x.var(2).mean(0).numpy())
    single = nn.InstanceNorm1d(2).double()
    np.testing.assert_allclose(single(x[0]).numpy(), single(x).numpy()[0])


def test_frozen_layers_leave_their_statistics():
    """A layer in evaluation inside a model in training: fine-tuning does it."""
    net = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3))
    net.train()
    net[1].eval()
    net(tt.ones(4, 3)).sum().backward()
    assert net[1].running_mean.tolist() == [0, 0, 0]
    assert net[1].weight.grad is not None
    with tt.no_grad():
        net.train()(tt.ones(4, 3))
    assert net[1].num_batches_tracked.item() == 1


def test_groups_of_all_and_of_one_channel():
    x = drawn(3, 4, 5)
    np.testing.assert_allclose(F.group_norm(x, 1).numpy(), F.layer_norm(x, (4, 5)).numpy())
    np.testing.assert_allclose(F.group_norm(x, 4).numpy(), F.instance_norm(x).numpy())
    np.testing.assert_allclose(F.rms_norm(x - x.mean(2, keepdim=True), (5,), eps=1e-5).numpy(), F.layer_norm(x, (5,)).numpy())


def test_local_response_by_hand():
    x = drawn(2, 5, 3)
    squares = np.pad(x.numpy() ** 2, ((0, 0), (1, 1), (0, 0)))
    mean = (squares[:, :-2] + squares[:, 1:-1] + squares[:, 2:]) / 3
    np.testing.assert_allclose(F.local_response_norm(x, 3, 0.2, 0.5, 2.0).numpy(), x.numpy() / (2 + 0.2 * mean) ** 0.5)


CALLS = {
    "batch": lambda x, w, b: F.batch_norm(x, None, None, w, b, True),
    "batch, evaluation": lambda x, w, b: F.batch_norm(x, tt.ones(2).double(), tt.ones(2).double() * 2, w, b),
    "group": lambda x, w, b: F.group_norm(x, 1, w, b),
    "instance": lambda x, w, b: F.instance_norm(x, None, None, w, b),
    "instance, tracked": lambda x, w, b: F.instance_norm(x, tt.zeros(2).double(), tt.ones(2).double(), w, b),
    "rms": lambda x, w, b: F.rms_norm(x, (2, 2), w.reshape(2, 1).expand(2, 2)) + b.sum(),
    "local response": lambda x, w, b: F.local_response_norm(x, 2, 0.3) * w.sum() + b.sum(),
}


@pytest.mark.parametrize("name", CALLS)
def test_derivatives_of_both_orders(name):
    given = tuple(drawn(*s, seed=i).requires_grad_() for i, s in enumerate(((2, 2, 2), (2,), (2,))))
    assert tt.autograd.gradcheck(CALLS[name], given)
    assert tt.autograd.gradgradcheck(CALLS[name], given)


def test_statistics_of_the_batch_have_no_gradient():
    layer = nn.BatchNorm1d(2)
    layer(drawn(4, 2).float().requires_grad_())
    assert not layer.running_mean.requires_grad
    assert not layer.running_var.requires_grad


def test_copies_and_pickles():
    layer = nn.BatchNorm1d(2, momentum=0.5)
    layer(tt.ones(3, 2))
    for other in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert other.running_mean.tolist() == [0.5, 0.5]
        other(tt.ones(3, 2))
        assert layer.num_batches_tracked.item() == 1
        assert other.num_batches_tracked.item() == 2
    assert layer.half().running_mean.dtype is tt.float16
    assert layer.num_batches_tracked.dtype is tt.int64


def test_lazy_layers_print_what_waits():
    layer = nn.LazyBatchNorm2d()
    assert str(layer.weight) == repr(layer.weight) == "<UninitializedParameter>"
    layer(tt.ones(2, 3, 4, 4))
    assert layer.num_features == len(layer.weight) == len(layer.running_var) == 3
    assert layer.weight.tolist() == [1, 1, 1]
    assert layer.num_batches_tracked.item() == 1
    assert type(layer) is nn.BatchNorm2d


def test_a_batch_of_no_images_has_no_neighbours():
    for layer in (nn.CrossMapLRN2d(3), nn.LocalResponseNorm(3)):
        x = tt.ones(0, 4, 3, 3, requires_grad=True)
        layer(x).sum().backward()
        assert x.grad.shape == x.shape


@pytest.mark.parametrize("shape", [(2, 3, 0), (0, 3, 4), (0, 3, 0)])
def test_instances_of_nothing_have_gradients_of_zero(shape):
    x, w, b = tt.zeros(shape, requires_grad=True), tt.ones(3, requires_grad=True), tt.zeros(3, requires_grad=True)
    y = F.instance_norm(x, None, None, w, b)
    y.sum().backward()
    assert y.shape == x.grad.shape == shape
    assert w.grad.tolist() == b.grad.tolist() == [0, 0, 0]


@pytest.mark.quick
@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16"])
@pytest.mark.parametrize("columns", [67, 2051])
def test_softmax_of_rows_that_begin_between_whole_accesses(dtype, columns):
    x = drawn(3, columns).to(getattr(tt, dtype))
    x[:, 0] = x[:, -1] = 5  # the ends, which are read apart, weigh most
    for f in (F.softmax, F.log_softmax):
        on_cpu, emulated = (f(x.to(on), -1).cpu().float().numpy() for on in ("cpu", "cuda"))
        np.testing.assert_allclose(emulated, on_cpu, rtol=2e-2 if dtype == "bfloat16" else 1e-5)
