"""functorch as a package: modules as functions of their parameters, ensembles; private names of distributions that programs import."""

from __future__ import annotations

import importlib

import pytest

import tritensor as tt
from tritensor import nn
from tritensor.torch_compat.modules import functorch

pytestmark = pytest.mark.filterwarnings("ignore:functorch:FutureWarning")


def test_a_module_is_a_function_of_copies_of_its_parameters() -> None:
    model, x = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1)), tt.ones(2, 3)
    f, params = functorch.make_functional(model)
    assert [p.shape for p in params] == [p.shape for p in model.parameters()]
    assert not any(p is q for p, q in zip(params, model.parameters(), strict=True))
    tt.testing.assert_close(f(params, x), model(x))
    one = functorch.grad(lambda ps: f(ps, x).sum())(params)
    model(x).sum().backward()
    for g, p in zip(one, model.parameters(), strict=True):
        tt.testing.assert_close(g, p.grad)
    assert not any(p.requires_grad for p in functorch.make_functional(model, disable_autograd_tracking=True)[1])
    with pytest.raises(ValueError, match="params holds 1 tensors for 4 names"):
        f(params[:1], x)


def test_buffers_are_written_where_they_are_given() -> None:
    model, x = nn.BatchNorm1d(2), tt.tensor([[1.0, 2.0], [3.0, 4.0]])
    with pytest.raises(RuntimeError, match="make_functional_with_buffers"):
        functorch.make_functional(model)
    f, params, buffers = functorch.make_functional_with_buffers(model)
    tt.testing.assert_close(f(params, buffers, x), tt.tensor([[-1.0, -1.0], [1.0, 1.0]]), atol=1e-4, rtol=0)
    tt.testing.assert_close(buffers[0], tt.tensor([0.2, 0.3]))
    assert model.running_mean.tolist() == [0.0, 0.0]


def test_an_ensemble_is_run_at_once() -> None:
    models, x = [nn.Linear(2, 3) for _ in range(4)], tt.ones(5, 2)
    f, params, buffers = functorch.combine_state_for_ensemble(models)
    found = functorch.vmap(f, in_dims=(0, 0, None))(params, buffers, x)
    tt.testing.assert_close(found, tt.stack([m(x) for m in models]))


def test_each_says_what_to_write_today() -> None:
    with pytest.warns(FutureWarning, match=r"torch\.func\.jacrev"):
        assert functorch.jacrev(lambda x: x * 2)(tt.ones(1)).tolist() == [[2.0]]


def test_private_names_of_distributions() -> None:
    normal = importlib.import_module("tritensor.distributions.multivariate_normal")
    p = tt.tensor([[2.0, 0.5], [0.5, 1.0]])
    factor = normal._precision_to_scale_tril(p)
    tt.testing.assert_close(factor @ factor.mT, tt.linalg.inv(p))
    x = tt.tensor([1.0, -2.0])
    tt.testing.assert_close(normal._batch_mahalanobis(factor, x), x @ p @ x)
    tt.testing.assert_close(normal._batch_mv(p, x), p @ x)
    transforms = importlib.import_module("tritensor.distributions.transforms")
    assert 0 < transforms._clipped_sigmoid(tt.tensor(-1e4)) < 1e-30 < transforms._clipped_sigmoid(tt.tensor(1e4)) < 1


def test_a_type_is_named_and_not_made() -> None:
    with pytest.raises(TypeError, match=r"typing\.Type"):
        tt.Type()
