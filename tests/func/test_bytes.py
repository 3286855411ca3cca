"""Memory read as another type: bytes outside of every graph, complex numbers as their parts inside of it, under every transform."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest

import tritensor as tt
from tritensor.func import functionalize, grad, hessian, jacfwd, jacrev, jvp, linearize, vjp, vmap
from tritensor.func.forward_ad import dual_level, make_dual, unpack_dual
from tritensor.ground.errors import ShapeError

ONE = struct.unpack("i", struct.pack("f", 1.0))[0]  # 0x3f800000


@pytest.mark.parametrize("dtype", [tt.int32, tt.int16, tt.int64, tt.float16, tt.bfloat16, tt.float32, tt.complex64, tt.float64, tt.uint8])
@pytest.mark.parametrize("computed", [False, True])
def test_bytes_of_what_requires_grad_are_a_plain_tensor(dtype: Any, computed: bool) -> None:
    leaf = tt.ones(4, requires_grad=True)
    x = leaf * 1 if computed else leaf
    y = x.view(dtype)
    assert (y.dtype, y.requires_grad, y.is_leaf, y.grad_fn) == (dtype, False, True, None)
    assert bytes(y.view(tt.uint8).tolist()) == struct.pack("4f", *[1.0] * 4)
    assert leaf.requires_grad
    y.view(tt.int32).zero_()  # the same memory, whose writes are counted
    assert x.detach().tolist() == [0.0] * 4
    assert x._version == 1


def test_a_write_through_the_bytes_of_what_a_node_saved_is_found() -> None:
    x = tt.ones(3, requires_grad=True)
    y = x * 2
    z = y * y
    y.view(tt.int32).add_(1)
    with pytest.raises(RuntimeError, match="overwrote in place"):
        z.sum().backward()


def test_under_transforms() -> None:
    x, t = tt.ones(3), tt.tensor([2.0, 3.0, 5.0])
    f = lambda y: y.view(tt.int32).float() * y  # noqa: E731
    assert grad(lambda y: f(y).sum())(x).tolist() == [float(ONE)] * 3
    assert jvp(f, (x,), (t,))[1].tolist() == [ONE * 2.0, ONE * 3.0, ONE * 5.0]
    assert linearize(f, x)[1](t).tolist() == [ONE * 2.0, ONE * 3.0, ONE * 5.0]
    assert vjp(f, x)[1](t)[0].tolist() == [ONE * 2.0, ONE * 3.0, ONE * 5.0]
    assert jacrev(f)(x).diagonal().tolist() == jacfwd(f)(x).diagonal().tolist() == [float(ONE)] * 3
    assert hessian(lambda y: (f(y) * y).sum())(x).diagonal().tolist() == [2.0 * ONE] * 3
    assert vmap(grad(lambda y: f(y).sum()))(x.expand(2, 3)).tolist() == [[float(ONE)] * 3] * 2
    assert functionalize(lambda y: y.view(tt.int32))(x).tolist() == [ONE] * 3
    with dual_level():
        bits = make_dual(x, t).view(tt.int32)
        assert unpack_dual(bits).tangent is None
        assert bits.tolist() == [ONE] * 3
    _, moved = jvp(lambda y: y.view(tt.float32) + y, (x,), (t,))  # the same type is cut off too
    assert moved.tolist() == t.tolist()


def test_examples() -> None:
    m = tt.tensor([[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]])
    assert vmap(lambda y: y.view(tt.int32))(m).tolist() == m.view(tt.int32).tolist()
    assert vmap(lambda y: y.view(tt.int32), 1, 1)(m).tolist() == m.view(tt.int32).tolist()
    assert vmap(lambda y: y.view(tt.float16))(m).tolist() == m.view(tt.float16).tolist()
    assert vmap(lambda y: y.view(tt.float64))(m).tolist() == m.view(tt.float64).tolist()
    assert vmap(lambda y: y.view(tt.int32))(m[0]).tolist() == m[0].view(tt.int32).tolist()
    with pytest.raises(ShapeError, match="a 0-d tensor keeps the width of its element"):
        vmap(lambda y: y.view(tt.float64))(m[0])
    with pytest.raises(ShapeError, match="the last dimension must be contiguous"):
        vmap(lambda y: y.view(tt.float64), 1)(m)
    with pytest.raises(ShapeError, match="must be multiples of 2 elements"):
        vmap(lambda y: y.view(tt.float64))(m[:, :3].clone())

    def written(y: tt.Tensor) -> tt.Tensor:
        z = y * 1
        z.view(tt.int32)[1:].zero_()
        return z

    assert vmap(written)(m).tolist() == [[1.0, 0.0, 0.0, 0.0], [5.0, 0.0, 0.0, 0.0]]


def drawn(seed: int, *shape: int) -> tt.Tensor:
    return tt.from_numpy(np.random.default_rng(seed).standard_normal(shape))


def test_complex_numbers_as_their_parts() -> None:
    """|z|^4 by the parts: its gradient is 4 |z|^2 z, its Hessian 4 |z|^2 1 + 8 z z^T."""
    x, t = drawn(0, 3, 2), drawn(1, 3, 2)

    def f(y: tt.Tensor) -> tt.Tensor:
        return (tt.view_as_real(tt.view_as_complex(y) * 1.0) ** 2).sum(-1).square().sum()

    norm = (x**2).sum(1, keepdim=True)
    want = (4 * norm * x).numpy()
    np.testing.assert_allclose(grad(f)(x).numpy(), want, 1e-10)
    np.testing.assert_allclose(vmap(grad(f), 1, 1)(x[:, None].contiguous())[:, 0].numpy(), want, 1e-10)
    along = (4 * norm * t + 8 * (x * t).sum(1, keepdim=True) * x).numpy()
    np.testing.assert_allclose(jvp(grad(f), (x,), (t,))[1].numpy(), along, 1e-10)
    np.testing.assert_allclose(jvp(grad(f), (x,), (t.t().contiguous().t(),))[1].numpy(), along, 1e-10)
    np.testing.assert_allclose(grad(lambda y: (grad(f)(y) * t).sum())(x).numpy(), along, 1e-10)
    np.testing.assert_allclose((hessian(f)(x).reshape(6, 6) @ t.reshape(6)).reshape(3, 2).numpy(), along, 1e-10)
    np.testing.assert_allclose((jacrev(jacfwd(f))(x).reshape(6, 6) @ t.reshape(6)).reshape(3, 2).numpy(), along, 1e-10)
