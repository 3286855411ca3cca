"""Results' places in memory: one rule for elementwise results, C order elsewhere, channels last where images come in so."""

from __future__ import annotations

import numpy as np
import pytest

import tritensor as tt
from tritensor.ground import strides
from tritensor.kernels.parts.copying import to_strides
from tritensor.nn import functional as F
from tritensor.ops.array import element_strides, to_host, to_layout

DEVICES = ("cpu", "cuda")


def permuted(on: str) -> tt.Tensor:
    """(2, 3, 4) with strides (3, 1, 6)."""
    return tt.arange(24.0).reshape(4, 2, 3).to(on).permute(1, 2, 0)


def image(on: str) -> tt.Tensor:
    """(2, 3, 4, 6), channels innermost."""
    return tt.arange(144.0).reshape(2, 4, 6, 3).to(on).permute(0, 3, 1, 2)


@pytest.mark.parametrize("on", DEVICES)
def test_elementwise_keeps_a_dense_layout(on: str) -> None:
    x = permuted(on)
    for y in (
        -x,
        x * 2.0,
        x + x,
        1 - x,
        x.exp(),
        F.relu(x),
        F.gelu(x),
        x > 3,
        x.to(tt.float64),
        tt.where(x > 3, x, 0.0),
        x.clamp(1, 2),
        x**2,
    ):
        assert y.stride() == (3, 1, 6)
    assert (x[:1] + x).stride() == (x + tt.ones(4, device=on)).stride() == (tt.ones(4, device=on) + x).stride() == (3, 1, 6)
    assert (
        F.normalize(x).stride() == F.dropout(x).stride() == x.flip(0).stride() == F.mse_loss(x, x, reduction="none").stride() == (3, 1, 6)
    )


@pytest.mark.parametrize("on", DEVICES)
def test_the_first_operand_that_says_decides(on: str) -> None:
    x = permuted(on)
    c = tt.ones(2, 3, 4, device=on)
    assert (x + c).stride() == (3, 1, 6)
    assert (c + x).stride() == (12, 4, 1)


@pytest.mark.parametrize("on", DEVICES)
def test_gaps_are_closed_and_repeats_are_undone(on: str) -> None:
    sliced = tt.zeros(8, 6, device=on).t()[::2, ::2]  # (3, 4)
    assert sliced.exp().stride() == (1, 3)
    assert tt.zeros(3, 1, device=on).expand(3, 4).exp().stride() == (4, 1)


@pytest.mark.parametrize("on", DEVICES)
def test_everything_else_is_contiguous(on: str) -> None:
    x = permuted(on)
    for y in (
        x.sum(0),
        x.sum(0, keepdim=True),
        x.mean(-1),
        x.amax(0),
        x.var(0),
        x.cumsum(0),
        x.softmax(1),
        tt.cat([x, x]),
        x.roll(1, 0),
        x.tril(),
    ):
        assert y.is_contiguous()
    for y in (x.gather(0, tt.zeros(1, 3, 4, dtype=tt.int64, device=on)), x @ x.mT, x.prod(1), x.argmax(0)):
        assert y.is_contiguous()


@pytest.mark.parametrize("on", DEVICES)
def test_images_keep_channels_last(on: str) -> None:
    x, w = image(on), tt.ones(5, 3, 3, 3, device=on)
    for y in (F.conv2d(x, w), F.max_pool2d(x, 2), F.avg_pool2d(x, 2)):
        assert y.stride(1) == 1
        assert y.is_contiguous(memory_format=tt.channels_last)
    for y in (F.conv2d(x.contiguous(), w), F.max_pool2d(x.contiguous(), 2), F.avg_pool2d(x.contiguous(), 2)):
        assert y.is_contiguous()
    assert F.conv2d(x.contiguous(), w.contiguous(memory_format=tt.channels_last)).is_contiguous(memory_format=tt.channels_last)


def test_order_of_undecided_dimensions() -> None:
    # the first operand says that dim 1 lies outside dim 0, the second that dim 2 does; dim 1 lies outside dim 2 by C order
    assert strides.elementwise_strides((2, 3, 4), (((2, 3, 1), (1, 2, 1)), ((3, 4), (1, 3)))) == (1, 8, 2)
    assert strides.elementwise_strides((2, 3), ()) == (3, 1)
    assert strides.elementwise_strides((0, 3), (((0, 3), (1, 7)),)) == (3, 1)


def test_flipped_memory_counts_by_the_size_of_its_steps() -> None:
    x = tt.from_numpy(np.arange(6.0).reshape(2, 3)[::-1, ::-1])
    assert (x + x).stride() == x.exp().stride() == (3, 1)


@pytest.mark.parametrize("shape", [(64, 6, 28, 28), (3, 5, 700), (512, 40), (5000, 2), (2, 5000), (1, 5000), (70, 3, 5)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int8])
def test_what_lies_with_its_first_dimension_innermost_is_laid_in_c_order(shape: tuple[int, ...], dtype: type) -> None:
    """Copied by tiles where it is large, as results of convolutions are."""
    memory = np.random.default_rng(0).integers(0, 100, (*shape[1:], shape[0])).astype(dtype)
    x = memory.transpose(-1, *range(len(shape) - 1))
    for rule in (strides.CONTIGUOUS, strides.ELEMENTWISE, *([strides.IMAGES] if len(shape) == 4 else [])):
        y = to_layout(rule, x, (np.empty(shape, dtype),))
        assert y.flags.c_contiguous
        np.testing.assert_array_equal(y, x)


@pytest.mark.parametrize("on", DEVICES)
@pytest.mark.parametrize("size", [1, 2, 3])
def test_strides_that_are_asked_for(on: str, size: int) -> None:
    x = tt.arange(float(size * size)).reshape(size, size).to(on)
    turned = to_strides(x._array, (1, size))
    assert size == 1 or element_strides(turned) == (1, size)
    assert (turned is x._array) == (size == 1)
    assert to_strides(turned, (1, size)) is turned
    np.testing.assert_array_equal(to_host(turned), x.cpu().numpy())
