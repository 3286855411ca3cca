"""Convolutions over blocks of channels and depthwise ones on the emulated device, in tiles that cut every axis, and at every split."""

from typing import Any

import numpy as np
import pytest

import tritensor as tt
from tests.kernels.planting import planted
from tritensor.cuda.emulator.sanitizer import SanitizerError
from tritensor.ground.device import device
from tritensor.kernels.convolution.gpu import channel_blocks, depthwise, kernel_choice, weight_blocks
from tritensor.kernels.convolution.gpu.rules import taps_together, weight_tiles
from tritensor.kernels.parts.axes import Blocks
from tritensor.kernels.parts.configs.spaces import tiles_problem
from tritensor.kernels.parts.launch_rules import Tiles, forced
from tritensor.ops.table import Sample, registry
from tritensor.testing.questions.cases import Case
from tritensor.testing.questions.forward import forward

GPU = device("cuda", 0)
# x, weight, stride, padding, dilation, groups; on the diagonal kernels of 4 and 5 columns meet 16 bits, where three taps go together
BLOCKS: dict[str, tuple[Any, ...]] = {
    "padded": ((1, 20, 5, 4), (18, 20, 3, 2), 1, 1, 1, 1),
    "stride": ((2, 17, 9, 7), (16, 17, 3, 3), 2, 1, 1, 1),
    "dilation": ((1, 16, 7, 8), (16, 16, 3, 3), 1, 2, 2, 1),
    "no padding": ((1, 16, 7, 6), (18, 16, 2, 4), 1, 0, 1, 1),
    "rows": ((2, 16, 19), (17, 16, 5), 1, 2, 1, 1),
    "groups": ((1, 36, 5, 6), (34, 18, 3, 3), 1, 1, 1, 2),
    "single pixels": ((3, 24, 5, 3), (40, 24, 1, 1), 1, 0, 1, 1),
    "volumes": ((1, 16, 3, 4, 3), (18, 16, 2, 2, 3), 1, 1, 1, 1),
}
DEPTHWISE: dict[str, tuple[Any, ...]] = {
    "images": ((2, 5, 6, 7), (5, 1, 3, 3), 1, 1, 1, 5),
    "two kernels a channel": ((2, 3, 6, 5), (6, 1, 2, 4), 1, 1, 1, 3),
    "stride, dilation": ((2, 3, 9, 8), (6, 1, 3, 2), 2, 2, 2, 3),
    "a long kernel": ((1, 4, 1, 11), (4, 1, 1, 7), 1, 3, 1, 4),
    "rows": ((2, 3, 13), (3, 1, 5), 2, 2, 1, 3),
    "volumes": ((2, 2, 3, 4, 5), (2, 1, 2, 2, 3), 1, 1, 1, 2),
}


def calls(case: tuple[Any, ...]) -> list[tuple[str, Sample]]:
    """A convolution, with a bias, and, as the ops that they are, its two gradients."""
    x, w, stride, padding, dilation, groups = case
    axes = len(x) - 2
    rng = np.random.default_rng(5)

    how: dict[str, Any] = {"stride": (stride,) * axes, "padding": (padding,) * axes, "dilation": (dilation,) * axes, "groups": groups}
    x_, w_, bias = rng.standard_normal(x), rng.standard_normal(w), rng.standard_normal(w[0])
    g = rng.standard_normal(registry[f"conv{axes}d"].cpu(x_, w_, **how).shape)
    return [
        (f"conv{axes}d", Sample(x_, w_, bias, **how)),
        (f"conv{axes}d_input", Sample(g, w_, size=x[2:], **how)),
        (f"conv{axes}d_weight", Sample(x_, g, kernel_size=w[2:], **how)),
    ]


def wrong(name: str, sample: Sample, dtype: str, layout: str = "plain") -> list[str]:
    return forward(Case(registry[name], 0, sample, dtype, layout, GPU))


@pytest.mark.quick
@pytest.mark.crossed
@pytest.mark.parametrize(("dtype", "split", "block_k"), [("bfloat16", 3, 16), ("float32", 2, 32)])
@pytest.mark.parametrize("case", BLOCKS)
def test_blocks_of_channels_in_small_tiles(case: str, split: int, block_k: int, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """In 16 bits up to three taps of a row together, in float32 one by one."""
    monkeypatch.setattr(kernel_choice, "PAYS", 0)
    tiles = Tiles(16, 16, block_k, split, 4, 2)
    for name, sample in calls(BLOCKS[case]):
        asked: list[Any] = []

        def chosen(key: Any, default: Tiles, asked: list[Any] = asked) -> Tiles:
            asked.append(key)
            return tiles

        with forced(conv2d_blocks=chosen, conv2d_weight_blocks=chosen, sum_parts=64):
            assert not wrong(name, sample, dtype)
        assert asked


def test_blocks_of_channels_of_long_offsets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_choice, "PAYS", 0)
    monkeypatch.setattr(weight_blocks, "long_offsets", lambda x: True)
    with forced(conv2d_weight_blocks=Tiles(16, 16, 16, 2, 4, 2)):
        assert not wrong(*calls(BLOCKS["padded"])[2], "float32")


@pytest.mark.crossed
@pytest.mark.parametrize(
    ("dtype", "blocks", "layout"),
    [("bfloat16", Blocks(8, 2, 3), "rotated"), ("float32", Blocks(16, 4, 1), "plain"), ("float64", Blocks(32, 1, 0), "plain")],
)
@pytest.mark.parametrize("case", DEPTHWISE)
def test_depthwise_in_small_tiles(case: str, dtype: str, blocks: Blocks, layout: str) -> None:
    for name, sample in calls(DEPTHWISE[case]):
        asked: list[Any] = []

        def chosen(key: Any, default: Blocks, asked: list[Any] = asked) -> Blocks:
            asked.append(key)
            return blocks

        with forced(conv2d_depthwise=chosen):
            assert not wrong(name, sample, dtype, layout)
        last = layout == "rotated" and len(sample.inputs[0].shape) > 3
        assert any(key[-1] == last for key in asked)


def test_bias_gradient_of_a_weight_gradient_by_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sum of g is a launch of its own there."""
    monkeypatch.setattr(kernel_choice, "PAYS", 0)
    rng = np.random.default_rng(6)
    x, w, b = rng.standard_normal((2, 16, 5, 4)), rng.standard_normal((17, 16, 3, 3)), rng.standard_normal(17)
    found = []
    for on in ("cpu", "cuda"):
        given = [tt.tensor(v, dtype=tt.float64, device=on, requires_grad=True) for v in (x, w, b)]
        y = tt.nn.functional.conv2d(*given, padding=1)
        found.append([v.cpu().numpy() for v in tt.autograd.grad((y * y).sum(), given)])
    for mine, wanted in zip(*found, strict=True):
        np.testing.assert_allclose(mine, wanted, rtol=1e-11, atol=1e-11)


def test_both_gradients_read_one_copy_of_what_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_choice, "PAYS", 0)
    copied: list[tuple[int, ...]] = []
    convert = kernel_choice.convert
    monkeypatch.setattr(kernel_choice, "convert", lambda x, y: (copied.append(x.shape), convert(x, y)))
    x, w = (tt.ones(s, device="cuda", requires_grad=True) for s in ((1, 16, 5, 4), (18, 16, 3, 3)))
    y = tt.nn.functional.conv2d(x, w)
    assert copied == [(1, 16, 5, 4)]
    tt.autograd.grad(y, (x, w), tt.ones_like(y))
    assert sorted(copied[1:]) == [(1, 16, 5, 4), (1, 18, 3, 2)]  # the image is copied anew: a copy kept for the gradient would cost memory


@pytest.mark.parametrize("size", [(64, 64, 9, 3), (256, 256, 9, 3), (512, 2048, 1, 1), (16, 24, 25, 5), (1000, 33, 3, 3)])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_the_rule_of_weight_gradients_gives_tiles_that_kernels_take(size: tuple[int, ...], dtype: Any) -> None:
    m, channels, taps, columns = size
    for pixels in (1, 49, 3136, 100352):
        key = (m, channels * taps, pixels, 1, np.dtype(dtype), True, channels, columns)
        tiles = weight_tiles(*key)
        assert not tiles_problem(tiles, key)
        assert 1 <= taps_together(tiles, columns, np.dtype(dtype).itemsize) <= min(columns, 3)


WEIGHT_FAULTS = {
    "the second tap's cells": ("_cells(x_here + shift, 1", "_cells(x_here, 1"),
    "the third tap's border": (
        "v, size[2], some, PADDED, EVEN)\n            third",
        "v - 1, size[2], some, PADDED, EVEN)\n            third",
    ),
    "the part's start forgotten": ("part.to(tl.int64) * k_part if LONG else part * k_part", "0 * k_part"),
    "rows by columns": ("tile // tiles_m % tiles_n", "tile // tiles_n % tiles_n"),
}


@pytest.mark.parametrize("fault", list(WEIGHT_FAULTS))
def test_a_wrong_weight_gradient_is_found(fault: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.setattr(kernel_choice, "PAYS", 0)
    name = "_weight_blocks_kernel"
    monkeypatch.setattr(weight_blocks, name, planted(weight_blocks, name, *WEIGHT_FAULTS[fault], tmp_path))
    with forced(conv2d_weight_blocks=Tiles(16, 16, 16, 2, 4, 2)):
        assert wrong(*calls(((1, 20, 6, 5), (40, 20, 3, 3), 1, 1, 1, 1))[2], "bfloat16")


BIT_FAULTS = {
    "the first cell is left out": ("else (-first, size - first)", "else (1 - first, size - first)"),
    "a cell behind the last": ("else (-first, size - first)", "else (-first, size - first + 1)"),
    "before the first, going back": ("(first - size + 1, first + 1) if BACK", "(first - size + 1, first + 2) if BACK"),
    "rows and columns in the same bits": (") << AT", ") << 0"),
}


@pytest.mark.parametrize("fault", list(BIT_FAULTS))
def test_a_wrong_bit_for_a_tap_is_found(fault: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.setattr(kernel_choice, "PAYS", 0)
    monkeypatch.setattr(channel_blocks, "_reached", planted(channel_blocks, "_reached", *BIT_FAULTS[fault], tmp_path))
    found = []
    with forced(conv2d_blocks=Tiles(16, 16, 16, 1, 4, 2)):
        for name, sample in calls(BLOCKS["padded"])[:2]:
            try:
                found += wrong(name, sample, "bfloat16")
            except SanitizerError as error:
                found.append(str(error))
    assert found


DEPTHWISE_FAULTS = {
    "another channel's cells": ("own, read = channel, channel // SEVERAL", "own, read = channel, channel"),
    "taps of another row": ("(e * KERNEL[1] + i) * KERNEL[2] + k) * w_t", "(e * KERNEL[1] + i) * KERNEL[1] + k) * w_t"),
}


@pytest.mark.parametrize("fault", list(DEPTHWISE_FAULTS))
def test_a_wrong_depthwise_sum_is_found(fault: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    name = "_depthwise_kernel"
    monkeypatch.setattr(depthwise, name, planted(depthwise, name, *DEPTHWISE_FAULTS[fault], tmp_path))
    with forced(conv2d_depthwise=Blocks(16, 2, 0)):
        assert wrong(*calls(DEPTHWISE["two kernels a channel"])[0], "float32")
