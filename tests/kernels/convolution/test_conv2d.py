"""Convolution beyond the table's samples: a direct sum as witness, layouts, blocks of rows, higher derivatives, messages."""

import itertools
import types

import numpy as np
import pytest

import tritensor.kernels  # noqa: F401  (fills the table)
from tritensor.autograd.engine import grad
from tritensor.ground.errors import DTypeError, ShapeError
from tritensor.kernels.convolution import columns, llvm_types
from tritensor.kernels.convolution import convolution as conv2d
from tritensor.kernels.convolution.gpu import pixel_indices
from tritensor.ops.table import ops
from tritensor.tensor.core import Tensor

rng = np.random.default_rng(8)
PLAIN = {"stride": (1, 1), "padding": (0, 0), "dilation": (1, 1), "groups": 1}
CASES = [
    {"stride": s, "padding": p, "dilation": d, "groups": g}
    for s, p, d, g in itertools.product([(1, 1), (2, 3)], [(0, 0), (1, 2)], [(1, 1), (2, 1)], [1, 2])
]


def direct(x, w, stride, padding, dilation, groups):
    """The definition, one output row and column at a time."""
    x = np.pad(x, ((0, 0), (0, 0), (padding[0],) * 2, (padding[1],) * 2))
    n, c, height, width = x.shape
    o, _, kh, kw = w.shape
    rows = (height - dilation[0] * (kh - 1) - 1) // stride[0] + 1
    cols = (width - dilation[1] * (kw - 1) - 1) // stride[1] + 1
    y = np.zeros((n, groups, o // groups, rows, cols))
    for r, q in itertools.product(range(rows), range(cols)):
        window = x[:, :, r * stride[0] :, q * stride[1] :][
            :, :, : dilation[0] * (kh - 1) + 1 : dilation[0], : dilation[1] * (kw - 1) + 1 : dilation[1]
        ]
        y[..., r, q] = np.einsum(
            "ngcij,gocij->ngo", window.reshape(n, groups, c // groups, kh, kw), w.reshape(groups, o // groups, c // groups, kh, kw)
        )
    return y.reshape(n, o, rows, cols)


@pytest.mark.parametrize("attrs", CASES, ids=str)
@pytest.mark.parametrize("batch", [1, 20])
def test_it_is_the_definition(attrs, batch):
    x, w, b = rng.standard_normal((batch, 4, 9, 11)), rng.standard_normal((6, 4 // attrs["groups"], 3, 2)), rng.standard_normal(6)
    np.testing.assert_allclose(conv2d.cpu_forward(x, w, b, **attrs), direct(x, w, **attrs) + b[:, None, None], rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("attrs", CASES, ids=str)
@pytest.mark.parametrize("batch", [1, 20])
def test_the_three_ops_are_adjoint(attrs, batch):
    x, w = rng.standard_normal((batch, 4, 9, 11)), rng.standard_normal((6, 4 // attrs["groups"], 3, 2))
    y = direct(x, w, **attrs)
    g = rng.standard_normal(y.shape)
    expected = (g * y).sum()
    np.testing.assert_allclose((conv2d.input_cpu(g, w, size=(9, 11), **attrs) * x).sum(), expected, rtol=1e-9)
    np.testing.assert_allclose((conv2d.weight_cpu(x, g, kernel_size=(3, 2), **attrs) * w).sum(), expected, rtol=1e-9)


@pytest.mark.parametrize("size", [1, 2, 3])
def test_windows_side_by_side(size):
    """Kernels as wide as their stride, of which those of one element have a way of their own."""
    attrs = PLAIN | {"stride": (size, size)}
    x, w = rng.standard_normal((2, 3, 6, 12)), rng.standard_normal((4, 3, size, size))
    y = direct(x, w, **attrs)
    g = rng.standard_normal(y.shape)
    np.testing.assert_allclose(conv2d.cpu_forward(x, w, **attrs), y, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose((conv2d.input_cpu(g, w, size=(6, 12), **attrs) * x).sum(), (g * y).sum(), rtol=1e-9)
    np.testing.assert_allclose((conv2d.weight_cpu(x, g, kernel_size=(size, size), **attrs) * w).sum(), (g * y).sum(), rtol=1e-9)


@pytest.mark.parametrize("axes", [(0, 1, 2, 3), (1, 2, 3, 0), (0, 2, 3, 1), (3, 1, 0, 2)])
def test_the_layout_in_memory_does_not_matter(axes):
    x, w = rng.standard_normal((7, 3, 8, 20)), rng.standard_normal((4, 3, 3, 3))
    laid = np.ascontiguousarray(x.transpose(axes)).transpose(np.argsort(axes))
    np.testing.assert_allclose(conv2d.cpu_forward(laid, w, **PLAIN), direct(x, w, **PLAIN), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("axes", [(0, 1, 2, 3), (1, 2, 3, 0), (0, 2, 3, 1), (0, 1, 3, 2), (3, 1, 0, 2)])
@pytest.mark.parametrize("groups", [1, 2])
def test_nor_on_a_gpu(axes, groups):
    """Whichever dimension lies innermost, of the images and of the gradient alike."""
    attrs = PLAIN | {"groups": groups}
    x, w = rng.standard_normal((3, 4, 8, 7)), rng.standard_normal((6, 4 // groups, 3, 2))
    g = rng.standard_normal((3, 6, 6, 6))
    here, there = [], []
    for device, found in (("cpu", here), ("cuda", there)):
        x_, w_, g_ = (
            Tensor.wrap(np.ascontiguousarray(v.transpose(axes))).to(device).permute(*np.argsort(axes).tolist()) for v in (x, w, g)
        )
        assert x_.shape == x.shape
        found += [
            ops.conv2d(x_, w_, None, **attrs),
            ops.conv2d_input(g_, w_, size=(8, 7), **attrs),
            ops.conv2d_weight(x_, g_, kernel_size=(3, 2), **attrs),
        ]
    for a, b in zip(here, there, strict=True):
        np.testing.assert_allclose(b.cpu().numpy(), a.numpy(), rtol=1e-10, atol=1e-10)


def test_offsets_inside_an_image_grow_to_64_bits_only_when_needed():
    last = [types.SimpleNamespace(shape=(1, 2, 1, 1), strides=(1 << 40, n, 1, 1)) for n in ((1 << 31) - 1, 1 << 31)]
    assert [pixel_indices.long_offsets(x) for x in last] == [False, True]


@pytest.mark.parametrize("batch", [1, 30])
@pytest.mark.parametrize("attrs", [PLAIN, PLAIN | {"stride": (2, 1), "padding": (1, 0)}], ids=str)
def test_blocks_of_rows(monkeypatch, batch, attrs):
    x, w = rng.standard_normal((batch, 3, 12, 9)), rng.standard_normal((2, 3, 3, 3))
    g = rng.standard_normal(direct(x, w, **attrs).shape)
    whole = conv2d.cpu_forward(x, w, **attrs), conv2d.weight_cpu(x, g, kernel_size=(3, 3), **attrs)
    monkeypatch.setattr(columns, "_BLOCK", 1)  # as few rows at a time as there can be
    monkeypatch.setattr(llvm_types, "_KEEP", 0)  # and no buffer kept
    np.testing.assert_allclose(conv2d.cpu_forward(x, w, **attrs), whole[0], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(conv2d.weight_cpu(x, g, kernel_size=(3, 3), **attrs), whole[1], rtol=1e-10, atol=1e-10)


def test_the_kept_buffer_is_not_the_result():
    x, w = rng.standard_normal((20, 1, 6, 8)), rng.standard_normal((2, 1, 1, 1))
    first = conv2d.cpu_forward(x, w, **PLAIN)
    held = first.copy()
    conv2d.cpu_forward(x + 1, w, **PLAIN)
    gx = conv2d.input_cpu(first, w, size=(6, 8), **PLAIN)
    kept = gx.copy()
    conv2d.input_cpu(first + 1, w, size=(6, 8), **PLAIN)
    assert np.array_equal(first, held)
    assert np.array_equal(gx, kept)


def test_third_derivative():
    x, w = (Tensor.wrap(rng.standard_normal(s)) for s in ((2, 2, 5, 4), (3, 2, 2, 3)))
    x.requires_grad = w.requires_grad = True
    attrs = PLAIN | {"padding": (1, 1), "stride": (2, 1)}

    def third(x, w):
        y = ops.conv2d(x, w, None, **attrs)
        (gx,) = grad((y * y * y).sum(), [x], create_graph=True)
        (gw,) = grad((gx * gx).sum(), [w], create_graph=True)
        return grad((gw * gw).sum(), [x])[0]

    step = rng.standard_normal(x.shape)

    def second(shift):
        moved = Tensor.wrap(x._array + shift * step)
        moved.requires_grad = True
        y = ops.conv2d(moved, w, None, **attrs)
        (gx,) = grad((y * y * y).sum(), [moved], create_graph=True)
        (gw,) = grad((gx * gx).sum(), [w])
        return float((gw._array**2).sum())

    measured = (second(1e-5) - second(-1e-5)) / 2e-5
    np.testing.assert_allclose((third(x, w)._array * step).sum(), measured, rtol=1e-6)


@pytest.mark.parametrize(
    ("x", "w", "attrs", "message"),
    [
        (
            (2, 3, 5, 5),
            (4, 2, 3, 3),
            {},
            r"conv2d: x \(2, 3, 5, 5\), weight \(4, 2, 3, 3\): x has 3 channels, weight with groups=1 takes 2 \* 1 = 2",
        ),
        ((2, 3, 5), (4, 3, 3, 3), {}, r"x must be \(N, C, H, W\)"),
        ((2, 3, 2, 5), (4, 3, 3, 3), {}, r"the kernel spans 3 x 3, the padded image only 2 x 5"),
        ((2, 4, 5, 5), (3, 2, 3, 3), {"groups": 2}, r"weight's 3 output channels do not divide into 2 groups"),
        ((2, 3, 5, 5), (4, 3, 3, 3), {"stride": (0, 1)}, r"stride \(0, 1\), dilation \(1, 1\) and groups 1 must be at least 1"),
    ],
)
def test_refusals(x, w, attrs, message):
    with pytest.raises(ShapeError, match=message):
        ops.conv2d(Tensor.wrap(np.ones(x, np.float32)), Tensor.wrap(np.ones(w, np.float32)), None, **(PLAIN | attrs))


@pytest.mark.parametrize("bias", [(3,), (1,), (4, 1), ()])
def test_a_bias_is_one_number_for_each_output_channel(bias):
    x, w = Tensor.wrap(np.ones((2, 3, 5, 5), np.float32)), Tensor.wrap(np.ones((4, 3, 3, 3), np.float32))
    with pytest.raises(ShapeError, match=rf"conv2d: .*bias \({', '.join(map(str, bias))},?\)"):
        ops.conv2d(x, w, Tensor.wrap(np.ones(bias, np.float32)), **PLAIN)


def test_types_must_agree():
    with pytest.raises(DTypeError, match=r"conv2d: x is float32, weight float64; cast one so that both are the same"):
        ops.conv2d(Tensor.wrap(np.ones((1, 1, 3, 3), np.float32)), Tensor.wrap(np.ones((1, 1, 2, 2))), None, **PLAIN)
