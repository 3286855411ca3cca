"""Convolution in machine code against numpy alone: columns, tiles in registers, depthwise, every way of reading cells; parts and threads."""

import threading
import tracemalloc

import numpy as np
import pytest

from tritensor.kernels.convolution import columns, cpu, depthwise_llvm, direct_llvm, llvm_types, padded, plans, tiles_llvm, winograd
from tritensor.kernels.convolution.geometry import geometry
from tritensor.kernels.convolution.llvm_types import kind_in
from tritensor.llvm import threads

rng = np.random.default_rng(12)
# x, weight, stride, padding, dilation, groups
CASES = {
    "rows": ((3, 2, 40), (9, 2, 5), 1, 2, 1, 1),
    "rows, no padding": ((2, 4, 33), (4, 2, 4), 1, 0, 2, 2),
    "rows, stride": ((2, 3, 50), (4, 3, 5), 3, 1, 2, 1),
    "images": ((3, 3, 9, 11), (10, 3, 3, 3), 1, 1, 1, 1),
    "images, wide rows": ((2, 2, 5, 37), (3, 2, 2, 3), 1, 0, 1, 1),
    "images, narrow rows": ((2, 2, 6, 5), (3, 2, 2, 3), 1, 0, 1, 1),
    "images, stride": ((2, 4, 9, 12), (6, 2, 3, 3), 2, 1, 1, 2),
    "one place": ((5, 3, 3, 3), (7, 3, 3, 3), 1, 0, 1, 1),
    "pixels": ((2, 5, 17, 17), (3, 5, 1, 1), 1, 0, 1, 1),
    "pixels of several images, stride": ((3, 5, 33, 33), (3, 5, 1, 1), 2, 0, 1, 1),  # an axis of one tap: its stride says nothing
    "depthwise": ((2, 6, 8, 9), (6, 1, 3, 3), 1, 1, 1, 6),
    "depthwise, stride": ((2, 3, 9, 9), (6, 1, 3, 3), 2, 1, 1, 3),
    "depthwise, several kernels, one row": ((2, 2, 30), (6, 1, 3), 1, 1, 1, 2),
    "stride of the kernel's size": ((2, 3, 12, 8), (5, 3, 4, 4), 4, 0, 1, 1),
    "stride over cells that nothing reads": ((2, 3, 13, 14), (5, 3, 2, 2), 3, 0, 1, 1),
    "more padding than kernel": ((2, 2, 6, 9), (3, 2, 2, 3), 2, 4, 1, 1),
    "dilated past the image": ((1, 2, 9, 9), (4, 2, 3, 3), 1, 4, 4, 1),
    "groups": ((2, 12, 9, 10), (8, 3, 3, 3), 1, 1, 1, 4),
    "whole images": ((3, 4, 5, 2), (7, 4, 5, 2), 1, 0, 1, 1),
    "volumes": ((2, 2, 4, 5, 6), (5, 2, 3, 2, 3), 1, 1, 1, 1),
    "volumes, stride": ((1, 4, 5, 4, 7), (4, 1, 2, 2, 3), 2, 1, 2, 4),
}


def made(case, dtype):
    x, w, stride, padding, dilation, groups = CASES[case]
    n = len(x) - 2
    return made_of(geometry(x, w, (stride,) * n, (padding,) * n, (dilation,) * n, groups), dtype)


def made_of(s, dtype):
    x, w = (s.batch, s.channels, *s.size), (s.out, s.channels // s.groups, *s.kernel)
    arrays = [rng.standard_normal(shape).astype(dtype) for shape in (x, w, (s.batch, s.out, *s.outs), (s.out,), (s.channels,))]
    return s, arrays


def answers(s, x, w, g, bias, back):
    return cpu.correlate(x, w, bias, s), cpu.input_gradient(g, w, back, s), cpu.weight_gradient(x, g, s)


def truth(s, arrays):
    """What numpy gives in float64 where nothing else may, and how far off a product of matrices may be: 8 roundings of the sum of what is added."""
    eps = np.finfo(arrays[0].dtype).eps
    exact, bounds = (answers(s, *[f(a.astype(np.float64)) for a in arrays]) for f in (np.array, np.abs))
    return exact, [8 * eps * b for b in bounds]


def choose_anew():
    """Ways are chosen once for each geometry: what a test changes of the choice is not seen before."""
    for chosen in (cpu.way_of, cpu._forward_way, cpu._input_ways, cpu._weight_ways):
        chosen.cache_clear()


@pytest.fixture
def fresh_choices():
    choose_anew()
    yield
    choose_anew()


@pytest.fixture(autouse=True)
def without_bounds(fresh_choices, monkeypatch):
    """Ways that are chosen by size take what they can here; the next way is asked by refusing them."""
    monkeypatch.setattr(direct_llvm, "_DEEP", 1 << 20)
    monkeypatch.setattr(direct_llvm, "_FEW", 1)


@pytest.fixture
def numpy_alone(monkeypatch):
    def switch():
        for module in (columns, depthwise_llvm):
            monkeypatch.setattr(module, "machine", lambda *_: None)
        for module in (direct_llvm, tiles_llvm, winograd):
            monkeypatch.setattr(module, "fits", lambda *_: False)
        choose_anew()

    return switch


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("case", CASES)
def test_against_numpy(case, dtype, numpy_alone, monkeypatch):
    s, arrays = made(case, dtype)
    ways = [answers(s, *arrays)]
    for module in (direct_llvm, tiles_llvm):
        monkeypatch.setattr(module, "fits", lambda *_: False)
        choose_anew()
        ways.append(answers(s, *arrays))
    numpy_alone()
    for wanted, bound, *found in zip(*truth(s, arrays), answers(s, *arrays), *ways, strict=True):
        for mine in found:
            assert np.all(np.abs(mine - wanted) <= bound)


def wider(dtype):
    return kind_in(dtype, 64)


@pytest.mark.parametrize("rows", [1, 3, 8])
@pytest.mark.parametrize("case", CASES)
def test_tiles_of_other_sizes(case, rows, monkeypatch, numpy_alone):
    """What other processors have registers for: long vectors, tiles of one output channel and of many."""
    s, arrays = made(case, np.float32)
    monkeypatch.setattr(direct_llvm, "fits", lambda *_: False)
    monkeypatch.setattr(depthwise_llvm, "fits", lambda *_: False)
    monkeypatch.setattr(tiles_llvm, "kind_of", wider)
    monkeypatch.setattr(tiles_llvm, "tile", lambda out: (rows, 3))
    monkeypatch.setattr(tiles_llvm, "weight_tile", lambda out, taps: (rows, 2))
    choose_anew()
    found = answers(s, *arrays)
    numpy_alone()
    for mine, wanted, bound in zip(found, *truth(s, arrays), strict=True):
        assert np.all(np.abs(mine - wanted) <= bound)


@pytest.mark.parametrize("case", CASES)
def test_plans_are_what_they_say(case):
    """Every tap of every result reads the cell that the plan names, or a zero; every result goes to its place."""
    s, (x, *_) = made(case, np.float64)
    x = np.arange(1.0, 1 + x.size).reshape(x.shape)[:1, :1]
    for plan in (plans.of_windows(s), *(phase.plan for phase in plans.of_phases(s) if phase.taps)):
        image = np.resize(x, (1, 1, *plan.size))
        layout = padded.layout_of(plan, 4, 8)
        copy, results = np.zeros(layout.plane), np.full(layout.results, np.nan)
        padded.copy_pieces(image.ctypes.data, copy.ctypes.data, 8, (1, 1), (0, 0), (0, 0), layout.into)
        for tap, shift in enumerate(layout.shift):
            for read, write in zip(layout.reads, layout.writes, strict=True):
                at = (shift + read) // 8
                results[write // 8 : write // 8 + 4] = copy[at : at + 4]
            y = np.full(plan.outs, np.nan)
            padded.copy_pieces(results.ctypes.data, y.ctypes.data, 8, (1, 1), (0, 0), (0, 0), layout.back)
            wanted = np.zeros(plan.outs)
            inside = columns.slices(plan, tap)
            if inside is not None:
                wanted[inside[0]] = image[0, 0][inside[1]]
            np.testing.assert_array_equal(y, wanted)


@pytest.mark.parametrize("large", [1, 2000])
@pytest.mark.parametrize("alone", [True, False])
@pytest.mark.parametrize(
    "case", ["images", "rows, stride", "depthwise, stride", "more padding than kernel", "stride of the kernel's size", "volumes, stride"]
)
def test_parts_of_images(case, alone, large, numpy_alone, monkeypatch):
    """Rows of one image at a time, and few vectors in a run, give what everything at once gives."""
    s, arrays = made(case, np.float64)
    whole = answers(s, *arrays)
    monkeypatch.setattr(columns, "_BLOCK", 1)
    monkeypatch.setattr(cpu, "_LARGE", large)
    monkeypatch.setattr(direct_llvm, "_CHUNK", 1)
    monkeypatch.setattr(tiles_llvm, "_CHUNK", 1)
    monkeypatch.setattr(tiles_llvm, "_RUN", 2)
    if alone:
        numpy_alone()
    for found, wanted in zip(answers(s, *arrays), whole, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-12)


def test_parts_alike_share_a_plan():
    s, _ = made("images", np.float64)
    plan = plans.of_windows(s)
    parts = [plan.part(low, low + 2) for low in (2, 4)]
    assert parts[0][0] == parts[1][0]
    assert [p[1] for p in parts] == [slice(1, 5), slice(3, 7)]


def test_the_table_of_a_large_volume_is_made_in_little_room():
    """A byte for each lane of each tap, and a copy: bits are packed, not summed in 64 bits each."""
    s = geometry((1, 1, 40, 40, 40), (1, 1, 3, 3, 3), (1, 1, 1), (1, 1, 1), (1, 1, 1), 1)
    plan = plans.of_windows(s)
    tracemalloc.start()
    plans.table_of.__wrapped__(plan, 16, 4)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 6 * 27 * 40**3


def test_infinities_and_nan_stay_where_they_are_read():
    """Lanes outside an image, and those of the last tile, multiply nothing."""
    x, w = np.zeros((1, 1, 5, 19), np.float32), np.ones((1, 1, 3, 3), np.float32)
    x[0, 0, 2, 18], x[0, 0, 0, 0] = np.inf, np.nan
    s = geometry(x.shape, w.shape, (1, 1), (1, 1), (1, 1), 1)
    y = cpu.correlate(x, w, None, s)
    assert np.isinf(y).sum() == 6
    assert np.isnan(y).sum() == 4
    dw = cpu.weight_gradient(x, np.ones_like(y), s)
    assert np.isnan(dw).sum() == 4
    assert np.isinf(dw).sum() == 4


def test_work_is_shared_by_threads(monkeypatch):
    monkeypatch.setattr(threads, "count", lambda: 3)
    seen = []
    threads.share(lambda low, high: seen.append((low, high, threading.get_ident())), 8)
    assert sorted(part[:2] for part in seen) == [(0, 2), (2, 5), (5, 8)]
    assert (0, 2, threading.get_ident()) in seen
    seen.clear()
    threads.share(lambda low, high: seen.append((low, high)), 1)
    assert seen == [(0, 1)]

    def fails(low, high):
        if low:
            raise ValueError("of a thread")

    with pytest.raises(ValueError, match="of a thread"):
        threads.share(fails, 4)


def test_convolutions_on_several_threads(monkeypatch):
    monkeypatch.setattr(threads, "count", lambda: 2)
    monkeypatch.setattr(direct_llvm, "_ALONE", 0)
    for module in (depthwise_llvm, tiles_llvm):
        monkeypatch.setattr(module, "_ALONE", 0)
    monkeypatch.setattr(tiles_llvm, "_SMALL", 1 << 40)  # sums of each thread's own, below, are added in another order
    for case in ("images", "depthwise", "volumes", "volumes, stride", "one place"):
        s, arrays = made(case, np.float32)
        monkeypatch.setattr(threads, "count", lambda: 1)
        wanted = answers(s, *arrays)
        monkeypatch.setattr(threads, "count", lambda: 2)
        for mine, one in zip(answers(s, *arrays), wanted, strict=True):
            np.testing.assert_array_equal(mine, one)


@pytest.mark.parametrize("chunk", [1, 1 << 20])
@pytest.mark.parametrize("case", ["images", "images, stride", "rows, no padding", "depthwise, several kernels, one row"])
def test_sums_of_each_threads_own(case, chunk, monkeypatch):
    """Images of a weight's gradient are shared, and what each thread has summed is added up; the same where threads are at work elsewhere."""
    s, arrays = made(case, np.float32)
    monkeypatch.setattr(depthwise_llvm, "has_code", lambda *_: False)
    monkeypatch.setattr(tiles_llvm, "_ALONE", 0)
    monkeypatch.setattr(tiles_llvm, "_FEW", 0)
    monkeypatch.setattr(tiles_llvm, "_SMALL", 0)
    monkeypatch.setattr(tiles_llvm, "_CHUNK", chunk)
    choose_anew()
    monkeypatch.setattr(threads, "count", lambda: 2)
    programs, run_programs = [], threads.run_programs
    monkeypatch.setattr(threads, "run_programs", lambda given: programs.append(len(given)) or run_programs(given))
    wanted, bounds = truth(s, arrays)
    found = answers(s, *arrays)
    monkeypatch.setattr(threads, "call_parts", lambda *given: None)
    for mine, again, want, bound in zip(found, answers(s, *arrays), wanted, bounds, strict=True):
        assert np.all(np.abs(mine - want) <= bound)
        np.testing.assert_array_equal(mine, again)
    assert 2 in programs


def test_buffers_that_are_not_kept(monkeypatch):
    """Their memory lives as long as machine code has its address."""
    s, arrays = made("images", np.float32)
    wanted = answers(s, *arrays)
    monkeypatch.setattr(llvm_types, "_KEEP", 0)
    for mine, one in zip(answers(s, *arrays), wanted, strict=True):
        np.testing.assert_array_equal(mine, one)


@pytest.mark.parametrize("weight", [1, tiles_llvm._HEAVY])
def test_small_images_with_heavy_weights_are_left_to_blas(weight):
    """Of an image of 4 x 4 half of a tile's results, of vectors of 16, are nobody's."""
    plan = plans.of_windows(geometry((16, 512, 4, 4), (512, 512, 3, 3), (1, 1), (1, 1), (1, 1), 1))
    places = padded.layout_of(plan, tiles_llvm.kind_of(np.dtype(np.float32)).width, 4).results
    assert tiles_llvm.fits(np.dtype(np.float32), plan, weight) is (weight == 1 or 2 * places <= 3 * 16)
