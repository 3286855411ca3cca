"""Pooling beyond the table's samples: a plain loop as witness, ties, NaN and infinities, every layout, messages."""

import itertools

import numpy as np
import pytest

import tritensor as tt
import tritensor.kernels
from tritensor.ground.device import device
from tritensor.ground.errors import DTypeError, ShapeError
from tritensor.kernels.pooling import max_pooling
from tritensor.kernels.pooling.windows import inner_strides, pooling_windows
from tritensor.ops.array import from_host, to_host
from tritensor.ops.table import ops, registry
from tritensor.tensor.core import Tensor

rng = np.random.default_rng(9)
cuda = device("cuda", 0)
CASES = [
    {"kernel_size": k, "stride": s, "padding": p, "ceil_mode": c}
    for k, s, p, c in itertools.product([(2, 2), (3, 2)], [(2, 2), (1, 3)], [(0, 0), (1, 1)], [False, True])
]


def cells(s, window):
    """The cells of a window inside the image, in order."""
    along = [
        [o * step - p + i * d for i in range(k)] for o, step, p, k, d in zip(window, s.stride, s.padding, s.kernel, s.dilation, strict=True)
    ]
    return [cell for cell in itertools.product(*along) if all(0 <= v < n for v, n in zip(cell, s.size, strict=True))]


def plain_max(x, s):
    y, index = np.empty((*x.shape[:2], *s.outs), x.dtype), np.empty((*x.shape[:2], *s.outs), np.int64)
    for n, c, *window in np.ndindex(y.shape):
        best, found = -np.inf, None
        for cell in cells(s, window):
            value = x[(n, c, *cell)]
            if found is None or value > best or np.isnan(value):
                best, found = value, np.ravel_multi_index(cell, s.size)
        y[(n, c, *window)], index[(n, c, *window)] = best, found
    return y, index


def plain_mean(x, s, include):
    y = np.empty((*x.shape[:2], *s.outs))
    for n, c, *window in np.ndindex(y.shape):
        inside = cells(s, window)
        count = len(inside)
        if include:
            lows = [o * step - p for o, step, p in zip(window, s.stride, s.padding, strict=True)]
            count = np.prod([min(low + k, m + p) - low for low, k, m, p in zip(lows, s.kernel, s.size, s.padding, strict=True)])
        y[(n, c, *window)] = sum(x[(n, c, *cell)] for cell in inside) / count
    return y


@pytest.mark.parametrize("axes", [(0, 1, 2, 3), (1, 2, 3, 0), (0, 2, 3, 1), (2, 0, 1, 3)])
@pytest.mark.parametrize("attrs", CASES, ids=str)
def test_max_against_a_loop(attrs, axes):
    x = rng.integers(-2, 3, (2, 3, 6, 7)).astype(np.float32)  # many ties
    x[rng.random(x.shape) < 0.1] = np.nan
    x[rng.random(x.shape) < 0.2] = -np.inf
    expected = plain_max(x, pooling_windows(x.shape, **attrs))
    laid = np.ascontiguousarray(x.transpose(axes)).transpose(np.argsort(axes))
    for found, wanted in zip(max_pooling.cpu_forward(laid, **attrs, dilation=(1, 1)), expected, strict=True):
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("attrs", CASES[::3], ids=str)
def test_the_max_kernel_treats_ties_nan_and_infinity_alike(attrs):
    x = rng.integers(-2, 3, (1, 2, 6, 7)).astype(np.float32)
    x[rng.random(x.shape) < 0.1] = np.nan
    x[rng.random(x.shape) < 0.3] = -np.inf
    found = max_pooling.forward(from_host(x, cuda), **attrs, dilation=(1, 1))
    for mine, wanted in zip(found, plain_max(x, pooling_windows(x.shape, **attrs)), strict=True):
        np.testing.assert_array_equal(to_host(mine), wanted)


@pytest.mark.parametrize("include", [True, False])
@pytest.mark.parametrize("attrs", CASES, ids=str)
def test_mean_against_a_loop(attrs, include):
    x = rng.standard_normal((2, 2, 6, 7))
    s = pooling_windows(x.shape, attrs["kernel_size"], attrs["stride"], attrs["padding"], (1, 1), attrs["ceil_mode"])
    np.testing.assert_allclose(registry["avg_pool2d"].cpu(x, **attrs, count_include_pad=include), plain_mean(x, s, include), rtol=1e-12)


VOLUMES = [{"kernel_size": (2, 3, 2), "stride": (1, 2, 2), "padding": (1, 1, 0), "ceil_mode": c} for c in (False, True)] + [
    {"kernel_size": (2, 2, 2), "stride": (2, 2, 2), "padding": (0, 0, 0), "ceil_mode": False}
]


@pytest.mark.parametrize("attrs", VOLUMES, ids=str)
def test_volumes_against_a_loop(attrs):
    x = rng.integers(-2, 3, (1, 2, 3, 4, 5)).astype(np.float32)
    x[rng.random(x.shape) < 0.1] = np.nan
    expected = plain_max(x, pooling_windows(x.shape, **attrs))
    for found in (
        max_pooling.cpu_forward(x, **attrs, dilation=(1, 1, 1)),
        map(to_host, max_pooling.forward(from_host(x, cuda), **attrs, dilation=(1, 1, 1))),
    ):
        for mine, wanted in zip(found, expected, strict=True):
            np.testing.assert_array_equal(mine, wanted)
    x = rng.standard_normal(x.shape)
    mean = plain_mean(x, pooling_windows(x.shape, **attrs), False)
    np.testing.assert_allclose(registry["avg_pool3d"].cpu(x, **attrs, count_include_pad=False), mean, rtol=1e-12)


def test_an_infinite_gradient_stays_in_its_cell():
    x = rng.permutation(16).reshape(1, 1, 4, 4).astype(np.float32)
    two = {"kernel_size": (2, 2), "stride": (2, 2)}
    _, index = max_pooling.cpu_forward(x, **two, padding=(0, 0), dilation=(1, 1))
    g = np.array([[[[np.inf, 1], [2, np.nan]]]], np.float32)
    dx = max_pooling.cpu_scatter(g, index, size=(4, 4), padding=(0, 0), dilation=(1, 1), **two)
    expected = np.zeros(16, np.float32)
    expected[index.ravel()] = g.ravel()
    np.testing.assert_array_equal(dx.ravel(), expected)


def test_wide_images_keep_their_indices():
    x = rng.permutation(4 * 600).reshape(1, 1, 4, 600).astype(np.float32)
    y, index = max_pooling.cpu_forward(x, kernel_size=(2, 2), stride=(2, 2), padding=(0, 0), dilation=(1, 1))
    np.testing.assert_array_equal(x.ravel()[index], y)


@pytest.mark.parametrize(
    ("shape", "attrs", "message"),
    [
        (
            (1, 1, 4, 4),
            {"padding": (2, 0)},
            r"max_pool2d: x \(1, 1, 4, 4\), kernel_size \(2, 2\): padding \(2, 0\) must be between 0 and half of kernel_size",
        ),
        ((1, 1, 1, 4), {}, r"the window spans 2 x 2, the padded image only 1 x 4"),
        ((1, 4, 4), {}, r"x must be \(N, C, H, W\)"),
        ((1, 1, 4, 4), {"stride": (0, 2)}, r"stride \(0, 2\) and dilation \(1, 1\) must be at least 1"),
    ],
)
def test_refusals(shape, attrs, message):
    two = {"kernel_size": (2, 2), "stride": (2, 2), "padding": (0, 0), "dilation": (1, 1), "ceil_mode": False}
    with pytest.raises(ShapeError, match=message):
        ops.max_pool2d(Tensor.wrap(np.ones(shape, np.float32)), **(two | attrs))


def test_integers_are_refused():
    with pytest.raises(DTypeError, match=r"avg_pool2d: x is int64; avg_pool2d takes float types"):
        ops.avg_pool2d(
            Tensor.wrap(np.ones((1, 1, 4, 4), np.int64)),
            kernel_size=(2, 2),
            stride=(2, 2),
            padding=(0, 0),
            ceil_mode=False,
            count_include_pad=True,
        )


@pytest.mark.parametrize("on", ["cpu", "cuda"])
def test_rows_of_windows_that_all_lie_outside(on):
    """Of dilated windows the first and last row lie in the padding for every window: the middle one alone is looked at."""
    x = tt.tensor(np.random.default_rng(3).standard_normal((1, 2, 3, 4)), device=on, requires_grad=True)
    y = tt.nn.functional.max_pool2d(x, (3, 1), stride=1, padding=(1, 0), dilation=(2, 1))
    assert y.tolist() == x[:, :, 1:2].tolist()
    y.sum().backward()
    assert x.grad.sum((0, 1, 3)).tolist() == [0.0, 8.0, 0.0]
    assert x.grad[:, :, 1].eq(1).all()


@pytest.mark.parametrize("on", ["cpu", "cuda"])
@pytest.mark.parametrize(
    ("kernel", "stride", "padding", "dilation"), [(3, 1, 1, 1), (3, 2, 1, 2), (4, 3, 2, 2), (5, 1, 2, 1), (2, 2, 0, 1)]
)
def test_where_nothing_is_larger_the_first_cell_is_chosen(on, kernel, stride, padding, dilation):
    """Of windows of -infinities alone: their first cell inside the image, row by row."""
    x = tt.full((1, 1, 9, 8), -np.inf, device=on)
    y, index = tt.nn.functional.max_pool2d(x, kernel, stride, padding, dilation, return_indices=True)
    first = [
        [next(c for c in (s * stride - padding + k * dilation for k in range(kernel)) if c >= 0) for s in range(n)] for n in y.shape[2:]
    ]
    assert index[0, 0].tolist() == [[8 * r + q for q in first[1]] for r in first[0]]
    assert (y == -np.inf).all()


@pytest.mark.parametrize("on", ["cpu", "cuda"])
@pytest.mark.parametrize("stride", [1, 4])
@pytest.mark.parametrize("shape", [(2, 3, 1, 4), (2, 3, 1, 1, 4), (2, 3, 5, 1, 4)])
def test_windows_that_see_no_cell_send_nothing_back(on, stride, shape):
    """Of an axis of one cell, which the dilated taps pass by on both sides: no cell of this plane or the next gets a gradient."""
    axes = len(shape) - 2
    x = tt.tensor(rng.standard_normal(shape), device=on, requires_grad=True)
    pool = tt.nn.functional.max_pool2d if axes == 2 else tt.nn.functional.max_pool3d
    ones = (1,) * (axes - 2)
    y = pool(x, (*ones, 2, 1), stride=stride, padding=(*(0,) * (axes - 2), 1, 0), dilation=(*ones, 2, 1))
    assert y.numel()
    assert (y == -np.inf).all()
    (dx,) = tt.autograd.grad(y, x, tt.ones_like(y), create_graph=True)
    assert not dx.detach().numpy(force=True).any()
    (twice,) = tt.autograd.grad((dx * x).sum(), x)
    assert not twice.numpy(force=True).any()


@pytest.mark.quick
def test_strides_are_said_to_divide_by_what_divides_them_all() -> None:
    """A wrong promise to the compiler makes wide accesses that a GPU refuses."""
    for channels, promised in ((9, 1), (6, 2), (12, 4), (24, 8)):
        x = from_host(np.zeros((2, 4, 5, channels), np.float32), cuda).transpose((0, 3, 1, 2))
        assert inner_strides(x, True) == {"UNIT": True, "ALIGN": promised}
        assert inner_strides(x, False) == {"UNIT": False, "ALIGN": 1}
