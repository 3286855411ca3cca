"""Parametrizations, pruning and stateless calls: what they promise, without another library beside them."""

import copy
import pickle

import numpy as np
import pytest

import tritensor as tt
from tritensor import nn
from tritensor.nn.utils import fuse_conv_bn_eval, parametrizations, parametrize, prune, stateless


@pytest.mark.parametrize("orthogonal_map", ["matrix_exp", "cayley", "householder"])
@pytest.mark.parametrize(("inputs", "outputs"), [(8, 8), (5, 9), (9, 5)])
def test_a_weight_stays_orthogonal(orthogonal_map, inputs, outputs):
    """Below 1e-5 after 100 steps, which have learned something."""
    tt.manual_seed(0)
    layer = parametrizations.orthogonal(nn.Linear(inputs, outputs), orthogonal_map=orthogonal_map)
    optimizer = tt.optim.Adam(layer.parameters(), lr=0.05)
    x, y, losses = tt.randn(16, inputs), tt.randn(16, outputs), []
    for _ in range(100):
        optimizer.zero_grad()
        loss = ((layer(x) - y) ** 2).mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    w = layer.weight.detach().numpy()
    w = w if outputs >= inputs else w.T
    assert np.abs(w.T @ w - np.eye(min(inputs, outputs))).max() < 1e-5
    assert losses[-1] < 0.95 * losses[0]


def test_a_complex_weight_is_unitary():
    layer = nn.Linear(3, 3, dtype=tt.complex64)
    layer.weight.data = tt.complex(tt.randn(3, 3), tt.randn(3, 3))
    parametrizations.orthogonal(layer, orthogonal_map="cayley")
    w = layer.weight.detach().numpy()
    assert np.abs(w.conj().T @ w - np.eye(3)).max() < 1e-5
    with pytest.raises(ValueError, match="householder"):
        parametrizations.orthogonal(nn.Linear(3, 3, dtype=tt.complex64), orthogonal_map="householder")


def test_the_copy_of_a_parametrized_module_is_one_of_its_own():
    layer = parametrizations.weight_norm(nn.Linear(3, 2))
    other = copy.deepcopy(layer)
    parametrize.remove_parametrizations(layer, "weight")
    assert type(layer) is nn.Linear
    assert parametrize.is_parametrized(other)
    np.testing.assert_allclose(other.weight.detach().numpy(), layer.weight.detach().numpy(), rtol=1e-6)
    with pytest.raises(RuntimeError, match="state_dict"):
        pickle.dumps(other)


def test_nested_caches():
    calls = []

    class Counted(nn.Module):
        def forward(self, x):
            calls.append(1)
            return x

    layer = nn.Linear(2, 2)
    parametrize.register_parametrization(layer, "weight", Counted())
    calls.clear()
    with parametrize.cached():
        layer(tt.ones(1, 2))
        with parametrize.cached():
            layer(tt.ones(1, 2))
        layer(tt.ones(1, 2))
    assert len(calls) == 1
    layer(tt.ones(1, 2))
    assert len(calls) == 2


def test_spectral_norm_is_one():
    tt.manual_seed(0)
    layer = parametrizations.spectral_norm(nn.Conv2d(3, 8, 3))
    for _ in range(40):  # each time that it is read, the estimate gets better
        layer.weight.sum()
    assert abs(np.linalg.svd(layer.weight.detach().numpy().reshape(8, -1), compute_uv=False)[0] - 1) < 1e-3
    u = layer.parametrizations.weight[0]._u.clone()
    layer.eval()
    layer(tt.ones(1, 3, 4, 4))
    assert layer.parametrizations.weight[0]._u.tolist() == u.tolist()
    vector = parametrizations.spectral_norm(nn.BatchNorm1d(4)).weight
    np.testing.assert_allclose(vector.detach().numpy(), np.full(4, 0.5), rtol=1e-6)


def test_pruned_weights_learn_what_is_left():
    layer = prune.ln_structured(nn.Linear(4, 6), "weight", amount=2, n=2, dim=0)
    kept = layer.weight_mask[:, 0].tolist()
    assert sorted(kept) == [0, 0, 1, 1, 1, 1]
    optimizer = tt.optim.SGD(layer.parameters(), lr=0.1)
    layer(tt.ones(2, 4)).sum().backward()
    optimizer.step()
    layer(tt.ones(2, 4))
    assert (layer.weight[tt.tensor(kept) == 0] == 0).all()
    assert prune.is_pruned(nn.Sequential(layer))
    prune.remove(layer, "weight")
    assert not prune.is_pruned(layer)
    assert sorted(dict(layer.named_parameters())) == ["bias", "weight"]


def test_random_pruning_counts():
    layer = prune.random_unstructured(nn.Linear(10, 10), "weight", 0.3)
    assert int((layer.weight_mask == 0).sum()) == 30
    prune.random_structured(layer, "weight", 2, 1)
    assert int((layer.weight_mask.sum(0) == 0).sum()) >= 2


def test_stateless_calls_restore_and_differentiate():
    net = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3))
    before = net[0].weight
    w = tt.ones(3, 3, requires_grad=True)
    (g,) = tt.autograd.grad(stateless._functional_call(net, {"0.weight": w}, tt.randn(4, 3)).square().sum(), w)
    assert g.shape == (3, 3)
    assert net[0].weight is before
    with pytest.raises(ZeroDivisionError):
        stateless._functional_call(nn.Sequential(nn.Linear(3, 3), nn.Lambda(lambda x: 1 / 0)), {"0.weight": w}, tt.randn(4, 3))
    assert net[0].weight is before


def test_a_fused_convolution_gives_the_same():
    conv, norm = nn.Conv2d(3, 4, 3, bias=False), nn.BatchNorm2d(4)
    x = tt.randn(2, 3, 6, 6)
    norm(conv(x))
    conv.eval()
    norm.eval()
    np.testing.assert_allclose(fuse_conv_bn_eval(conv, norm)(x).detach().numpy(), norm(conv(x)).detach().numpy(), atol=1e-5)
    with pytest.raises(AssertionError, match="eval"):
        fuse_conv_bn_eval(conv.train(), norm)


@pytest.mark.parametrize("register", [parametrizations.weight_norm, lambda m: parametrize.register_parametrization(m, "weight", nn.Tanh())])
def test_a_weight_that_a_module_was_made_without_is_no_weight_to_parametrize(register):
    with pytest.raises(ValueError, match="BatchNorm1d was made without a weight"):
        register(nn.BatchNorm1d(2, affine=False))
