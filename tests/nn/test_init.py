"""Initial values: ranges, moments, formulas and refusals."""

import math

import numpy as np
import pytest

import tritensor as tt
from tritensor.ground.errors import ShapeError
from tritensor.nn import Parameter, init


def fresh(*shape):
    tt.manual_seed(7)
    return Parameter(tt.zeros(*shape))


def test_gains():
    assert init.calculate_gain("relu") == math.sqrt(2)
    assert init.calculate_gain("tanh") == 5 / 3
    assert init.calculate_gain("leaky_relu", 2) == math.sqrt(2 / 5)
    assert init.calculate_gain("conv2d") == 1.0
    with pytest.raises(ValueError, match="'swish' is not known"):
        init.calculate_gain("swish")
    with pytest.raises(ValueError, match="not a number"):
        init.calculate_gain("leaky_relu", "x")


@pytest.mark.parametrize(
    ("fill", "bound"),
    [
        (lambda t: init.uniform_(t, -2, 2), 2.0),
        (lambda t: init.xavier_uniform_(t, gain=2.0), 2 * math.sqrt(6 / (50 * 9 + 40 * 9))),
        (lambda t: init.kaiming_uniform_(t, a=math.sqrt(5)), 1 / math.sqrt(50 * 9)),
        (lambda t: init.kaiming_uniform_(t, mode="fan_out", nonlinearity="relu"), math.sqrt(6 / (40 * 9))),
    ],
)
def test_uniform_fills(fill, bound):
    p = fresh(40, 50, 3, 3)
    assert fill(p) is p
    w = p.detach().numpy()
    assert 0.999 * bound < abs(w).max() <= bound
    assert abs(w.mean()) < 0.02 * bound
    assert abs(w.std() * math.sqrt(3) - bound) < 0.02 * bound
    assert p.requires_grad
    assert p.is_leaf


@pytest.mark.parametrize(
    ("fill", "std"),
    [
        (lambda t: init.normal_(t, 0.0, 3.0), 3.0),
        (lambda t: init.xavier_normal_(t), math.sqrt(2 / (50 * 9 + 40 * 9))),
        (lambda t: init.kaiming_normal_(t, nonlinearity="relu"), math.sqrt(2 / (50 * 9))),
        (lambda t: init.kaiming_normal_(t, mode="fan_out", nonlinearity="relu"), math.sqrt(2 / (40 * 9))),
    ],
)
def test_normal_fills(fill, std):
    w = fill(fresh(40, 50, 3, 3)).detach().numpy()
    assert abs(w.mean()) < 0.02 * std
    assert abs(w.std() - std) < 0.02 * std


def test_truncated_normal():
    p = init.trunc_normal_(fresh(20000), mean=1.0, std=2.0, a=-1.0, b=3.0)
    w = p.detach().numpy()
    assert w.min() >= -1.0
    assert w.max() <= 3.0
    assert abs(w.mean() - 1) < 0.03
    # variance of a normal cut at one standard deviation either side: 1 - 2 phi(1) / (2 Phi(1) - 1)
    expected = 2 * math.sqrt(1 - 2 * math.exp(-0.5) / math.sqrt(2 * math.pi) / math.erf(1 / math.sqrt(2)))
    assert abs(w.std() - expected) < 0.02


def test_truncated_normal_in_its_tail():
    with pytest.warns(UserWarning, match="more than 2 std"):
        w = init.trunc_normal_(fresh(20000).double(), mean=-6.0, std=1.0, a=1.0, b=2.0).detach().numpy()
    assert w.min() >= 1.0
    # density phi(7 + t): mean of t is 1 / m - 1 / m^3 + ... of Mills' ratio at 7, near 1/7 - 2/7^3
    assert abs(w.mean() - 1 - (1 / 7 - 2 / 7**3)) < 0.005
    with pytest.raises(ValueError, match="above b"):
        init.trunc_normal_(fresh(2), a=2.0, b=1.0)


@pytest.mark.parametrize(("shape", "groups"), [((4, 2, 3), 2), ((2, 5, 3, 2), 1), ((3, 2, 3, 3, 1), 1)])
def test_dirac_keeps_channels(shape, groups):
    w = init.dirac_(fresh(*shape), groups).detach().numpy()
    expected = np.zeros(shape)
    each = shape[0] // groups
    for out in range(shape[0]):
        if out % each < shape[1]:
            expected[(out, out % each, *(n // 2 for n in shape[2:]))] = 1
    np.testing.assert_array_equal(w, expected)


def test_sparse_columns():
    w = init.sparse_(fresh(50, 40), 0.33, std=0.1).detach().numpy()
    assert ((w == 0).sum(0) == math.ceil(0.33 * 50)).all()
    assert abs(w[w != 0].std() - 0.1) < 0.01
    assert len({tuple(column) for column in (w == 0).T}) > 30


@pytest.mark.parametrize(
    "name",
    [
        "uniform",
        "normal",
        "constant",
        "eye",
        "dirac",
        "xavier_uniform",
        "xavier_normal",
        "kaiming_uniform",
        "kaiming_normal",
        "orthogonal",
        "sparse",
    ],
)
def test_older_names(name):
    given = {"constant": (2.0,), "sparse": (0.5,)}.get(name, ())
    shape = (4, 2, 3) if name == "dirac" else (4, 3)
    with pytest.warns(FutureWarning, match=f"nn.init.{name}_"):
        old = getattr(init, name)(fresh(*shape), *given)
    assert old.tolist() == getattr(init, name + "_")(fresh(*shape), *given).tolist()


def test_no_elements_and_generators():
    with pytest.warns(UserWarning, match="no-op"):
        init.kaiming_normal_(fresh(0, 3))
    draws = [init.xavier_normal_(fresh(3, 4), generator=tt.Generator().manual_seed(5)).tolist() for _ in range(2)]
    assert draws[0] == draws[1] != init.xavier_normal_(fresh(3, 4)).tolist()


def test_constants_and_eye():
    assert init.ones_(fresh(2)).tolist() == [1.0, 1.0]
    assert init.zeros_(init.constant_(fresh(2), 3.5)).tolist() == [0.0, 0.0]
    assert init.eye_(fresh(2, 3)).tolist() == [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
    with pytest.raises(ShapeError, match="not a matrix"):
        init.eye_(fresh(2))


@pytest.mark.parametrize("shape", [(5, 5), (3, 8), (8, 3), (4, 2, 3)])
def test_orthogonal(shape):
    w = init.orthogonal_(fresh(*shape), gain=2.0).detach().numpy().reshape(shape[0], -1)
    product = w @ w.T if w.shape[0] <= w.shape[1] else w.T @ w
    np.testing.assert_allclose(product, 4 * np.eye(len(product)), atol=1e-5)


def test_refusals():
    with pytest.raises(ShapeError, match="no fan in and fan out"):
        init.kaiming_uniform_(fresh(3))
    with pytest.raises(ValueError, match="'fan_in' or 'fan_out'"):
        init.kaiming_normal_(fresh(3, 3), mode="fan")
    with pytest.raises(ShapeError, match="2 or more dimensions"):
        init.orthogonal_(fresh(3))
