"""Matrix products beyond the table's samples: exactness, accuracy, layouts that BLAS cannot take, precision, messages."""

import numpy as np
import pytest

import tritensor as tt
import tritensor.kernels
from tritensor.ground.device import device
from tritensor.ground.errors import DTypeError, ShapeError
from tritensor.kernels.parts.launch_rules import gemm_tiles
from tritensor.kernels.products import matmul
from tritensor.ops import matmul_precision
from tritensor.ops.array import CudaArray, from_host, to_host
from tritensor.ops.table import ops, registry
from tritensor.tensor.core import Tensor

rng = np.random.default_rng(7)
cuda = device("cuda", 0)


def on_device(a, b):
    return to_host(matmul.forward(from_host(a, cuda), from_host(b, cuda)))


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.int64])
def test_integers_wrap_as_numpys_do(dtype):
    info = np.iinfo(dtype)
    a = rng.integers(info.min, info.max, (9, 40), dtype, endpoint=True)
    b = rng.integers(info.min, info.max, (40, 5), dtype, endpoint=True)
    expected = np.matmul(a.astype(object), b.astype(object))
    modulus = 1 << info.bits
    wrapped = np.array([[(int(v) - info.min) % modulus + info.min for v in row] for row in expected], dtype)
    assert np.array_equal(registry["matmul"].cpu(a, b), wrapped)
    assert np.array_equal(on_device(a, b), wrapped)


def test_large_integer_products_are_exact_through_float64():
    a, b = rng.integers(-(2**20), 2**20, (70, 90)), rng.integers(-(2**20), 2**20, (90, 3))
    assert np.array_equal(registry["matmul"].cpu(a, b), np.einsum("ij,jk->ik", a, b))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_error_stays_below_eight_eps_of_the_magnitudes(dtype):
    a, b = rng.standard_normal((33, 700)).astype(dtype), rng.standard_normal((700, 21)).astype(dtype)
    exact = a.astype(np.longdouble) @ b.astype(np.longdouble)
    bound = 8 * np.finfo(dtype).eps * (np.abs(a) @ np.abs(b))
    assert (np.abs(registry["matmul"].cpu(a, b) - exact) <= bound).all()
    assert (np.abs(on_device(a, b) - exact) <= bound).all()


@pytest.mark.parametrize("cut", [np.s_[::2, ::3], np.s_[::-1, ::-1], np.s_[:, ::-2]])
def test_layouts_that_blas_refuses(cut):
    a, b = rng.standard_normal((12, 12))[cut], rng.standard_normal((12, 12))[cut].T
    np.testing.assert_allclose(registry["matmul"].cpu(a, b), np.array(a) @ np.array(b), rtol=1e-12)


def test_negative_and_zero_strides_reach_the_kernel():
    a, b = rng.standard_normal((6, 5)).astype(np.float32), rng.standard_normal((5, 7)).astype(np.float32)
    da, db = from_host(a, cuda), from_host(b, cuda)
    assert isinstance(da, CudaArray)
    assert isinstance(db, CudaArray)
    np.testing.assert_allclose(to_host(matmul.forward(da[::-1, ::-1], db[::-1])), a[::-1, ::-1] @ b[::-1], rtol=1e-5, atol=1e-6)
    row = da[0:1].expand((4, 5))
    np.testing.assert_allclose(to_host(matmul.forward(row, db)), np.broadcast_to(a[0], (4, 5)) @ b, rtol=1e-5, atol=1e-6)


def test_split_sum_is_the_same_twice():
    a, b = rng.standard_normal((3, 900)).astype(np.float32), rng.standard_normal((900, 2)).astype(np.float32)
    assert gemm_tiles(3, 2, 900, 1, a.dtype).split > 1
    assert np.array_equal(on_device(a, b), on_device(a, b))


def test_tiles_are_powers_of_two_that_a_kernel_can_hold():
    for m in (1, 17, 64, 500, 4096):
        for n in (1, 33, 200, 8192):
            for k in (1, 40, 3000):
                for name in ("float16", "float32", "float64"):
                    t = gemm_tiles(m, n, k, 1, np.dtype(name), aligned=k % 8 == 0)
                    assert all(v & (v - 1) == 0 and 16 <= v <= 256 for v in t[:3])
                    assert 1 <= t.split <= max(1, k // 16)
                    assert t.warps in (4, 8)
                    assert t.stages * (t.block_m + t.block_n) * t.block_k * np.dtype(name).itemsize <= 200 * 1024


def test_precision_setting():
    assert matmul_precision.get_float32_matmul_precision() == "highest"
    try:
        for name, word in (("high", "tf32x3"), ("medium", "tf32"), ("highest", "ieee")):
            matmul_precision.set_float32_matmul_precision(name)
            assert matmul_precision.dot_precision() == word
        with pytest.raises(ValueError, match=r"set_float32_matmul_precision: 'low'; give one of"):
            matmul_precision.set_float32_matmul_precision("low")
    finally:
        matmul_precision.set_float32_matmul_precision("highest")


def tensor(*shape, dtype=np.float32):
    return Tensor.wrap(np.ones(shape, dtype))


@pytest.mark.parametrize(
    ("a", "b", "message"),
    [
        ((4, 3), (5, 2), r"matmul: a \(4, 3\) @ b \(5, 2\): a's last size 3 is not b's first 5"),
        ((4,), (5,), r"matmul: a \(4,\) @ b \(5,\): a's last size 4 is not b's first 5"),
        ((), (5,), r"matmul: a \(\) @ b \(5,\): a 0-dimensional operand"),
        ((2, 4, 3), (3, 3, 2), r"matmul: a's batch \(2,\), b's batch \(3,\): sizes 2 and 3 at dim -1 do not broadcast"),
    ],
)
def test_shapes_that_do_not_fit(a, b, message):
    with pytest.raises(ShapeError, match=message):
        ops.matmul(tensor(*a), tensor(*b))


def test_bool_is_refused():
    with pytest.raises(DTypeError, match=r"matmul: a is bool; matmul takes uint, int, float, complex types"):
        ops.matmul(tensor(2, 2, dtype=bool), tensor(2, 2, dtype=bool))


def test_linear_refusals():
    with pytest.raises(ShapeError, match=r"linear: x \(4, 3\), weight \(5, 2\): x's last size 3 is not weight's last 2"):
        ops.linear(tensor(4, 3), tensor(5, 2))
    with pytest.raises(ShapeError, match=r"bias must have weight's first size, \(5,\)"):
        ops.linear(tensor(4, 3), tensor(5, 3), tensor(4))
    with pytest.raises(DTypeError, match=r"linear: x is float32, weight float64"):
        ops.linear(tensor(4, 3), tensor(5, 3, dtype=np.float64))


def test_a_sum_of_integers_just_above_2_to_53_is_exact() -> None:
    """Odd and between 2^53 and 2^54: float64 does not hold it."""
    a, b = np.full((64, 64), 1 << 24), np.full((64, 2), 11863283)
    a[0, 0] -= 1
    assert matmul.blas(a, b)[0, 0] == 64 * (1 << 24) * 11863283 - 11863283


@pytest.mark.parametrize("side", ["rows of a", "columns of a", "rows of b", "columns of b"])
def test_operands_of_every_second_element(side: str) -> None:
    """A step of 2 in memory along any of the four directions."""
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((5, 7)), rng.standard_normal((7, 6))
    left, right = tt.tensor(a, device="cuda"), tt.tensor(b, device="cuda")

    def spaced(x: tt.Tensor, across: bool) -> tt.Tensor:
        m, n = x.shape
        room = tt.zeros(n, 2 * m, device="cuda", dtype=tt.float64) if across else tt.zeros(m, 2 * n, device="cuda", dtype=tt.float64)
        window = room[:, ::2].t() if across else room[:, ::2]
        window.copy_(x)
        assert 2 in window.stride()
        return window

    if side.endswith("a"):
        left = spaced(left, side.startswith("rows"))
    else:
        right = spaced(right, side.startswith("rows"))
    np.testing.assert_allclose((left @ right).cpu().numpy(), a @ b, rtol=1e-12)
