"""nn.utils: clipping gradients, parameters as one vector."""

import math

import numpy as np
import pytest

import tritensor as tt
from tritensor import nn
from tritensor.ground.errors import ShapeError
from tritensor.nn.utils import clip_grad_norm_, clip_grad_value_, get_total_norm, parameters_to_vector, vector_to_parameters


def parameters():
    a, b = nn.Parameter(tt.zeros(2)), nn.Parameter(tt.zeros(1))
    a.grad, b.grad = tt.tensor([3.0, 0.0]), tt.tensor([-4.0])
    return [a, b, nn.Parameter(tt.zeros(7))]


@pytest.mark.filterwarnings("ignore:divide by zero")
def test_clip_by_norm():
    ps = parameters()
    assert clip_grad_norm_(ps, 1.0).item() == 5.0
    assert ps[0].grad.tolist() == pytest.approx([0.6, 0.0])
    assert ps[1].grad.tolist() == pytest.approx([-0.8])
    assert ps[2].grad is None
    ps = parameters()
    assert clip_grad_norm_(iter(ps), 100.0).item() == 5.0
    assert ps[0].grad.tolist() == [3.0, 0.0]
    assert clip_grad_norm_(parameters(), 1.0, norm_type=math.inf).item() == 4.0
    assert clip_grad_norm_(parameters(), 1.0, norm_type=1).item() == 7.0
    assert clip_grad_norm_(parameters()[0], 1.0, norm_type=3).item() == pytest.approx(3.0)
    for order, total in ((0, 2.0), (-1, 0.0), (-math.inf, 0.0), (0.5, (3**0.5 + 2) ** 2)):
        assert clip_grad_norm_(parameters(), 100.0, norm_type=order).item() == pytest.approx(total)
    assert clip_grad_norm_(parameters()[1], 1.0, norm_type=-2).item() == 4.0
    assert get_total_norm([tt.tensor([6.0, 8.0]), tt.zeros(3), tt.tensor([0.0, math.nan])], 0).item() == 2.0
    ps = parameters()
    clip_grad_norm_(ps, 1.0, norm_type=math.inf)
    assert [p.grad.tolist() for p in ps[:2]] == [pytest.approx([0.75, 0.0]), pytest.approx([-1.0])]
    assert clip_grad_norm_([], 1.0).item() == 0.0
    assert get_total_norm([tt.tensor([6.0, 8.0])]).item() == 10.0
    bad = parameters()
    bad[0].grad[0] = math.nan
    with pytest.raises(RuntimeError, match=r"total norm of order 2.0 is nan"):
        clip_grad_norm_(bad, 1.0, error_if_nonfinite=True)
    with pytest.raises(ValueError, match="norm_type is nan; give a number"):
        clip_grad_norm_(bad, 1.0, norm_type=math.nan)


def test_clip_by_value():
    ps = parameters()
    clip_grad_value_(ps, 2.0)
    assert [p.grad.tolist() for p in ps[:2]] == [[2.0, 0.0], [-2.0]]


@pytest.mark.parametrize("shape", [(3000,), (60, 50), (50, 60)])
def test_clip_by_value_of_many(shape):
    p = nn.Parameter(tt.zeros(shape))
    given = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    given.reshape(-1)[:2] = np.nan, -np.inf
    p.grad = tt.from_numpy(given.copy()) if shape[0] != 50 else tt.from_numpy(given.T.copy()).T
    version = p.grad._version
    clip_grad_value_([p], 0.5)
    np.testing.assert_array_equal(p.grad.numpy(), np.clip(given, -0.5, 0.5))
    assert p.grad._version > version


def test_one_vector_and_back():
    net = nn.Linear(2, 1)
    vector = parameters_to_vector(net.parameters())
    assert tuple(vector.shape) == (3,)
    vector.sum().backward()
    assert net.weight.grad.tolist() == [[1.0, 1.0]]
    vector_to_parameters(tt.tensor([1.0, 2.0, 3.0]), net.parameters())
    assert net.weight.tolist() == [[1.0, 2.0]]
    assert net.bias.tolist() == [3.0]
    with pytest.raises(ShapeError, match=r"vec \(2,\) for parameters of 3 elements"):
        vector_to_parameters(tt.zeros(2), net.parameters())
    with pytest.raises(ValueError, match="no parameters"):
        parameters_to_vector([])
    with pytest.raises(TypeError, match="vector_to_parameters: vec is a list; give a tensor"):
        vector_to_parameters([1.0], net.parameters())


@pytest.mark.parametrize("dtype", [tt.float16, tt.bfloat16], ids=str)
@pytest.mark.parametrize("size", [300.0, 1e-4])
def test_the_norm_of_16_bits_is_added_up_in_more(dtype, size):
    p = nn.Parameter(tt.zeros(4, dtype=dtype))
    p.grad = tt.full((4,), size, dtype=dtype)
    norm = clip_grad_norm_([p], size)
    assert norm.dtype is dtype
    assert norm.item() == pytest.approx(2 * size, rel=0.02)
    assert p.grad.tolist() == pytest.approx([size / 2] * 4, rel=0.02)
    wide = nn.Parameter(tt.zeros(1))
    wide.grad = tt.zeros(1)
    assert clip_grad_norm_([p, wide], 1.0).dtype is tt.float32


def test_the_norm_of_complex_gradients():
    p = nn.Parameter(tt.tensor([0j, 0j]))
    p.grad = tt.tensor([3 + 4j, 12j])
    assert clip_grad_norm_([p], 6.5).item() == 13.0
    assert p.grad.tolist() == pytest.approx([1.5 + 2j, 6j])
