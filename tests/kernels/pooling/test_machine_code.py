"""Max pooling in machine code against numpy alone: every stride and border, ties, NaN, threads, indices of no cell."""

import itertools

import numpy as np
import pytest

from tritensor.kernels.pooling import cpu, cpu_llvm, max_pooling
from tritensor.kernels.pooling.windows import pooling_windows
from tritensor.llvm import compiler, threads

pytestmark = pytest.mark.skipif(bool(compiler.refusal()), reason=f"no machine code here: {compiler.refusal()}")
rng = np.random.default_rng(4)
SIZES = [(24, 24), (8, 8), (7, 33), (1, 40), (19, 5), (3, 2)]


def image(planes, size, dtype):
    """Few different numbers, so that many are equal."""
    return rng.integers(-3, 4, (planes, *size)).astype(dtype)


def alike(x, s):
    """Both ways' largest elements and places of x (P, H, W), and both ways' gradients to it."""
    found, wanted = cpu_llvm.largest(x, s), cpu._by_taps(x[..., None], s)
    assert found is not None
    for mine, one in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(mine, one[..., 0])
    g = rng.standard_normal(found[0].shape).astype(x.dtype)
    dx = cpu_llvm.scatter(g, found[1], s.size)
    wanted = np.zeros(x.shape)
    np.add.at(wanted.reshape(len(x), -1), (np.arange(len(x))[:, None], found[1].reshape(len(x), -1)), g.reshape(len(x), -1))
    np.testing.assert_allclose(dx, wanted, rtol=0, atol=32 * np.finfo(x.dtype).eps)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("stride", [(1, 1), (2, 2), (3, 3), (2, 1), (1, 2)])
@pytest.mark.parametrize("kernel", [(2, 2), (3, 3), (1, 3), (3, 1), (5, 4)])
def test_as_numpy(kernel, stride, dtype):
    tried = 0
    for size, padding, ceil_mode in itertools.product(SIZES, [(0, 0), (1, 1), (0, 1), (2, 2)], [False, True]):
        s = pooling_windows((1, 1, *size), kernel, stride, padding, (1, 1), ceil_mode)
        if min(s.outs) < 1 or any(2 * p > k for p, k in zip(padding, kernel, strict=True)):
            continue
        x = image(3, size, dtype)
        alike(x, s)
        x[rng.random(x.shape) < 0.1] = np.nan
        x[0] = -np.inf
        alike(x, s)
        tried += 1
    assert tried > 4


def test_threads_share_the_planes(monkeypatch):
    monkeypatch.setattr(cpu_llvm, "_SHARED", 0)
    monkeypatch.setattr(threads, "count", lambda: 3)
    for planes in (1, 2, 7):
        alike(image(planes, (9, 12), np.float32), pooling_windows((1, 1, 9, 12), (3, 3), (2, 2), (1, 1)))


def test_what_is_left_to_numpy():
    s = pooling_windows((1, 1, 6, 6), (2, 2), (2, 2), (0, 0))
    for x in (np.zeros((2, 6, 6), np.int32), np.zeros((0, 6, 6), np.float32), np.zeros((2, 6, 6, 6), np.float32)):
        assert cpu_llvm.largest(x, s) is None
    assert cpu_llvm.largest(np.zeros((2, 6, 6), np.float32), pooling_windows((1, 1, 6, 6), (2, 2), (2, 2), (0, 0), (2, 2))) is None
    assert cpu_llvm.scatter(np.zeros((2, 3, 3), np.int32), np.zeros((2, 3, 3), np.int64), (6, 6)) is None


@pytest.mark.parametrize("place", [36, -1, 1 << 40])
def test_an_index_of_no_cell_writes_nothing(place):
    index = np.zeros((2, 3, 3), np.int64)
    index[1, 2, 2] = place
    assert cpu_llvm.scatter(np.ones((2, 3, 3), np.float32), index, (6, 6)) is None


@pytest.mark.parametrize("place", [36, 1 << 40])
def test_numpy_refuses_it(place):
    index = np.full((1, 1, 3, 3), place)
    windows_ = {"kernel_size": (2, 2), "stride": (2, 2), "padding": (0, 0), "dilation": (1, 1)}
    with pytest.raises(IndexError):
        max_pooling.cpu_scatter(np.ones((1, 1, 3, 3), np.float32), index, size=(6, 6), **windows_)
