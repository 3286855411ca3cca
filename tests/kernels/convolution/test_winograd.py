"""Winograd's convolutions on the CPU: tiles of all shapes against numpy in float64, threads, images at a time, numbers that are not finite."""

import numpy as np
import pytest

from tests.kernels.convolution.test_machine_code import answers, choose_anew, made_of, truth
from tritensor.kernels.convolution import cpu, plans, winograd
from tritensor.kernels.convolution.geometry import geometry
from tritensor.llvm import compiler, threads

pytestmark = pytest.mark.skipif(bool(compiler.refusal()), reason="no machine code for this processor")

# images (N, C, H, W), output channels, padding: tiles that end with the image and that do not, one column, rows longer than a vector
CASES = {
    "even": ((2, 32, 12, 16), 33, 1),
    "odd": ((4, 33, 9, 7), 32, 1),
    "no padding": ((2, 32, 15, 22), 32, 0),
    "long rows": ((1, 32, 6, 70), 32, 1),
    "narrow": ((24, 32, 3, 3), 32, 1),
    "one column": ((8, 32, 18, 3), 32, 0),
    "much padding": ((3, 32, 10, 10), 32, 2),
}


@pytest.fixture(autouse=True)
def fresh_choices():
    choose_anew()
    yield
    choose_anew()


def made(case):
    size, out, padding = CASES[case]
    return made_of(geometry(size, (out, size[1], 3, 3), (1, 1), (padding, padding), (1, 1)), np.float32)


@pytest.mark.parametrize("case", CASES)
def test_against_numpy(case):
    s, arrays = made(case)
    ways = (
        cpu._forward_way(s, np.dtype(np.float32))[0],
        cpu._input_ways(s, np.dtype(np.float32))[0][0],
        cpu._weight_ways(s, np.dtype(np.float32))[0],
    )
    assert ways == (cpu.Way.WINOGRAD,) * 3
    for mine, wanted, bound in zip(answers(s, *arrays), *truth(s, arrays), strict=True):
        assert np.all(np.abs(mine - wanted) <= bound)


@pytest.mark.parametrize("case", CASES)
def test_images_at_a_time_and_threads(case, monkeypatch):
    """A part alone, on one thread and on several, of one image at a time: what everything at once gives, up to the order of a gradient's sums."""
    s, arrays = made(case)
    whole = answers(s, *arrays)
    monkeypatch.setattr(winograd, "_CHUNK", 1)
    monkeypatch.setattr(winograd, "_FEW", 1)
    for count in (1, 3):
        monkeypatch.setattr(threads, "count", lambda count=count: count)
        for mine, wanted, bound in zip(answers(s, *arrays), whole, truth(s, arrays)[1], strict=True):
            assert np.all(np.abs(mine - wanted) <= bound)


def test_memory_around_the_results_is_left_alone():
    s, (x, w, *_) = made("odd")
    room = np.full((s.batch, s.out, s.outs[0] * s.outs[1] + 40), 7, np.float32)
    y = room[:, :, 20:-20].reshape(s.batch, s.out, *s.outs, copy=False)
    assert winograd.correlate(x, w.reshape(s.out, s.channels, 9), False, None, plans.of_windows(s), y)
    assert np.all(room[:, :, :20] == 7)
    assert np.all(room[:, :, -20:] == 7)
    np.testing.assert_array_equal(y, cpu.correlate(x, w, None, s))


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
def test_what_is_not_finite_reaches_its_own_outputs_alone(value):
    s, (x, w, g, *_) = made("even")
    x[1, 3, 5, 5] = value
    y = cpu.correlate(x, w, None, s)
    assert np.isfinite(y[0]).all()
    assert (~np.isfinite(y[1, 0])).sum() == 9
    g[0, 2, 4, 4] = value
    dx = cpu.input_gradient(g, w, None, s)
    assert (~np.isfinite(dx[0, 0])).sum() == 9
    assert np.isfinite(dx[1]).all()
    dw = cpu.weight_gradient(np.ones_like(x), g, s)
    assert (~np.isfinite(dw)).any(axis=(1, 2, 3)).sum() == 1


def test_what_is_taken_in_tiles():
    """3 x 3 cells side by side, of stride 1, float32, one group, and enough channels and tiles."""

    def taken(x, w, stride=1, padding=1, dilation=1, groups=1, dtype=np.float32):
        s = geometry(x, w, (stride,) * 2, (padding,) * 2, (dilation,) * 2, groups)
        return cpu._forward_way(s, np.dtype(dtype))[0] is cpu.Way.WINOGRAD

    assert taken((4, 32, 16, 16), (32, 32, 3, 3))
    assert not taken((4, 32, 16, 16), (32, 32, 3, 3), stride=2)
    assert not taken((4, 32, 16, 16), (32, 32, 3, 3), dilation=2)
    assert not taken((4, 64, 16, 16), (64, 32, 3, 3), groups=2)
    assert not taken((4, 32, 16, 16), (32, 32, 3, 3), dtype=np.float64)
    assert not taken((4, 32, 16, 16), (32, 32, 5, 3))
    assert not taken((4, 16, 16, 16), (32, 16, 3, 3))
    assert not taken((1, 32, 8, 8), (32, 32, 3, 3))


def test_a_phase_of_a_stride_is_no_convolution_of_all_cells():
    """Of 6 x 6 cells with stride 2 each phase of the gradient to the input has 3 x 3 taps, and cells of its own."""
    s, arrays = made_of(geometry((2, 32, 20, 20), (32, 32, 6, 6), (2, 2), (2, 2), (1, 1)), np.float32)
    for mine, wanted, bound in zip(answers(s, *arrays), *truth(s, arrays), strict=True):
        assert np.all(np.abs(mine - wanted) <= bound)
