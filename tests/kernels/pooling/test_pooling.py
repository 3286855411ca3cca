"""Pooling beyond the table's samples: a plain loop as witness, ties, NaN and infinities, every layout, messages."""

import itertools

import numpy as np
import pytest

import tritensor as tt
import tritensor.kernels
from tritensor.array import from_host, to_host
from tritensor.device import device
from tritensor.errors import DTypeError, ShapeError
from tritensor.kernels.pooling import average_pooling, max_pooling
from tritensor.table import ops
from tritensor.tensor.core import Tensor

rng = np.random.default_rng(9)
cuda = device("cuda", 0)
CASES = [
    {"kernel_size": k, "stride": s, "padding": p, "ceil_mode": c}
    for k, s, p, c in itertools.product([(2, 2), (3, 2)], [(2, 2), (1, 3)], [(0, 0), (1, 1)], [False, True])
]


def cells(s, r, q):
    """Rows and columns of window (r, q) inside the image, in order."""
    rows = [r * s.sh - s.ph + i * s.dh for i in range(s.kh)]
    cols = [q * s.sw - s.pw + j * s.dw for j in range(s.kw)]
    return [(h, v) for h in rows for v in cols if 0 <= h < s.height and 0 <= v < s.width]


def plain_max(x, s):
    y, index = np.empty((*x.shape[:2], s.rows, s.cols), x.dtype), np.empty((*x.shape[:2], s.rows, s.cols), np.int64)
    for n, c, r, q in np.ndindex(y.shape):
        best, found = -np.inf, None
        for h, v in cells(s, r, q):
            value = x[n, c, h, v]
            if found is None or value > best or np.isnan(value):
                best, found = value, h * s.width + v
        y[n, c, r, q], index[n, c, r, q] = best, found
    return y, index


def plain_mean(x, s, include):
    y = np.empty((*x.shape[:2], s.rows, s.cols))
    for n, c, r, q in np.ndindex(y.shape):
        inside = cells(s, r, q)
        high = min(r * s.sh - s.ph + s.kh, s.height + s.ph), min(q * s.sw - s.pw + s.kw, s.width + s.pw)
        count = (high[0] - r * s.sh + s.ph) * (high[1] - q * s.sw + s.pw) if include else len(inside)
        y[n, c, r, q] = sum(x[n, c, h, v] for h, v in inside) / count
    return y


@pytest.mark.parametrize("axes", [(0, 1, 2, 3), (1, 2, 3, 0), (0, 2, 3, 1), (2, 0, 1, 3)])
@pytest.mark.parametrize("attrs", CASES, ids=str)
def test_max_against_a_loop(attrs, axes):
    x = rng.integers(-2, 3, (2, 3, 6, 7)).astype(np.float32)  # many ties
    x[rng.random(x.shape) < 0.1] = np.nan
    x[rng.random(x.shape) < 0.2] = -np.inf
    expected = plain_max(x, max_pooling.windows(x.shape, **attrs))
    laid = np.ascontiguousarray(x.transpose(axes)).transpose(np.argsort(axes))
    for found, wanted in zip(max_pooling.reference(laid, **attrs), expected, strict=True):
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("attrs", CASES[::3], ids=str)
def test_the_max_kernel_treats_ties_nan_and_infinity_alike(attrs):
    x = rng.integers(-2, 3, (1, 2, 6, 7)).astype(np.float32)
    x[rng.random(x.shape) < 0.1] = np.nan
    x[rng.random(x.shape) < 0.3] = -np.inf
    found = max_pooling.forward(from_host(x, cuda), **attrs, dilation=(1, 1))
    for mine, wanted in zip(found, plain_max(x, max_pooling.windows(x.shape, **attrs)), strict=True):
        np.testing.assert_array_equal(to_host(mine), wanted)


@pytest.mark.parametrize("include", [True, False])
@pytest.mark.parametrize("attrs", CASES, ids=str)
def test_mean_against_a_loop(attrs, include):
    x = rng.standard_normal((2, 2, 6, 7))
    s = max_pooling.windows(x.shape, attrs["kernel_size"], attrs["stride"], attrs["padding"], (1, 1), attrs["ceil_mode"])
    np.testing.assert_allclose(average_pooling.avg_reference(x, **attrs, count_include_pad=include), plain_mean(x, s, include), rtol=1e-12)


def test_an_infinite_gradient_stays_in_its_cell():
    x = rng.permutation(16).reshape(1, 1, 4, 4).astype(np.float32)
    two = {"kernel_size": (2, 2), "stride": (2, 2)}
    _, index = max_pooling.reference(x, **two)
    g = np.array([[[[np.inf, 1], [2, np.nan]]]], np.float32)
    dx = max_pooling.scatter_reference(g, index, size=(4, 4), padding=(0, 0), dilation=(1, 1), **two)
    expected = np.zeros(16, np.float32)
    expected[index.ravel()] = g.ravel()
    np.testing.assert_array_equal(dx.ravel(), expected)


def test_wide_images_keep_their_indices():
    x = rng.permutation(4 * 600).reshape(1, 1, 4, 600).astype(np.float32)
    y, index = max_pooling.reference(x, kernel_size=(2, 2), stride=(2, 2))
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
