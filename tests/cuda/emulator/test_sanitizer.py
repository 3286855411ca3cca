"""The tests of the tests: every kind of planted bug must be found by the sanitizer, and clean kernels must pass."""

from contextlib import ExitStack

import ml_dtypes
import numpy as np
import pytest
import triton
import triton.language as tl

from tritensor.cuda.emulator import last_writer
from tritensor.cuda.emulator.sanitizer import SanitizerError
from tritensor.cuda.launch import launch
from tritensor.ground.device import device
from tritensor.ops.array import CudaArray, empty, from_host, to_host

GPU = device("cuda", 0)
F32, BF16 = np.dtype(np.float32), np.dtype(ml_dtypes.bfloat16)


def on_gpu(values) -> CudaArray:
    return from_host(np.asarray(values), GPU)


@triton.jit
def copy(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i, mask=i < n), mask=i < n)


@triton.jit
def copy_unmasked_load(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i), mask=i < n)


@triton.jit
def copy_unmasked_store(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i, mask=i < n, other=0.0))


@triton.jit
def one_before(x, y):
    tl.store(y, tl.load(x - 1))


@triton.jit
def strided_copy(x, y, stride, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i * stride, mask=i < n), mask=i < n)


@triton.jit
def all_store_one_cell(y):
    tl.store(y, tl.program_id(0))


@triton.jit
def all_add_to_one_cell(y):
    tl.atomic_add(y, tl.program_id(0))


@triton.jit
def shift_in_place(x, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + i, tl.load(x + i + 1, mask=i + 1 < n, other=0.0), mask=i < n)


@triton.jit
def double_in_place(x, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + i, tl.load(x + i, mask=i < n) * 2, mask=i < n)


@triton.jit
def last_one_sums(x, partial, counter, y, PROGRAMS: tl.constexpr):
    p = tl.program_id(0)
    tl.store(partial + p, tl.load(x + p))
    if tl.atomic_add(counter, 1) == PROGRAMS - 1:
        tl.store(y, tl.sum(tl.load(partial + tl.arange(0, PROGRAMS)), 0))


@triton.jit
def lanes_disagree(y, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(y + i // 2, i)


@triton.jit
def lanes_agree(y, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(y + i // 2, i // 2)


@triton.jit
def total(x, y, n, BLOCK: tl.constexpr, SAFE: tl.constexpr):
    i = tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n, other=0) if SAFE else tl.load(x + i, mask=i < n)
    tl.store(y, tl.sum(v, 0))


@triton.jit
def greatest(x, y, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(y, tl.max(tl.load(x + i, mask=i < n), 0))


@triton.jit
def half_of(y, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(y + i, i.to(tl.float32), mask=i < n // 2)


@triton.jit
def through_table(table, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    p = tl.load(table + tl.program_id(0)).to(tl.pointer_type(tl.float32))
    tl.store(p + i, 7.0, mask=i < n)


@triton.jit
def read_arrival_order(y, counter):
    tl.store(y + tl.program_id(0), tl.atomic_add(counter, 1))


def test_clean_kernel_passes():
    x, y = on_gpu(np.arange(37, dtype=np.float32)), empty((37,), F32, GPU)
    launch(copy, (3,), x, y, 37, BLOCK=16)
    assert (to_host(y) == np.arange(37)).all()


def test_load_past_the_end():
    x, y = on_gpu(np.ones(37, np.float32)), empty((37,), F32, GPU)
    with pytest.raises(SanitizerError, match=r"copy_unmasked_load: program \(2, 0, 0\): load of x\[47\], but x has elements 0 to 36"):
        launch(copy_unmasked_load, (3,), x, y, 37, BLOCK=16)


def test_store_past_the_end():
    x, y = on_gpu(np.ones(37, np.float32)), empty((37,), F32, GPU)
    with pytest.raises(SanitizerError, match=r"store of y\[47\]"):
        launch(copy_unmasked_store, (3,), x, y, 37, BLOCK=16)


@triton.jit
def stored_by_a_helper(y, at):
    stored(y, at)


@triton.jit
def stored(y, at):
    tl.store(y + at, 1.0)


@pytest.mark.parametrize(("index", "offset", "said"), [
    ((slice(None), slice(None)), 35, r"y\[5, 0\], but y has elements \[0, 0\] to \[4, 6\]"),
    ((slice(None), slice(None)), -1, r"y\[-1, 6\]"),
    ((slice(None, None, 2), slice(None, None, 3)), 43, r"y\[3, 0\] \+ 1, "),  # rows of 14, columns of 3: rows 0 to 2
    ((slice(None, None, -1), slice(None, None, -1)), 3, r"y\[-1, 4\]"),
    ((2, slice(None)), 7, r"y\[7\], but y has elements 0 to 6"),
    ((2, 1), 1, r"y \+ 1, but y has one element"),
])  # fmt: skip
def test_an_element_is_named_in_the_tensors_own_coordinates(index, offset, said):
    y = on_gpu(np.zeros((5, 7), np.float32))
    y = y[index[0]][:, index[1]] if isinstance(index[0], slice) else y[index[0]][index[1]]
    with pytest.raises(SanitizerError, match="store of " + said):
        launch(stored_by_a_helper, (1,), y, offset)


def test_the_line_of_a_helper_and_of_the_kernel_that_calls_it():
    where = r"\(test_sanitizer.py:\d+: tl.store\(y \+ at, 1.0\), called from test_sanitizer.py:\d+: stored\(y, at\)\)$"
    with pytest.raises(SanitizerError, match=where):
        launch(stored_by_a_helper, (1,), on_gpu(np.zeros(3, np.float32)), 3)


def test_the_line_that_stored_an_element():
    y = empty((4, 3), F32, GPU)
    with last_writer.recorded() as record:
        launch(copy, (3,), on_gpu(np.ones(7, np.float32)), y, 7, BLOCK=4)
        one, other = (record.of(y.storage.pointer, y.data_ptr() + 4 * k) for k in (6, 7))
        assert str(one).startswith("stored by copy, program (1, 0, 0), test_sanitizer.py:")
        assert str(one).endswith(": tl.store(y + i, tl.load(x + i, mask=i < n), mask=i < n)")
        assert other is None
        y = y.storage.pointer
    assert last_writer.current() is None


def test_outside_the_window_though_inside_its_storage():
    base = on_gpu(np.arange(8, dtype=np.float32))
    with pytest.raises(SanitizerError, match=r"load of x\[-1\]"):
        launch(one_before, (1,), base[2:5], empty((1,), F32, GPU))
    with pytest.raises(SanitizerError, match=r"load of x\[4\]"):
        launch(strided_copy, (1,), base[:3], empty((3,), F32, GPU), 2, 3, BLOCK=4)


def test_a_kernel_that_takes_a_view_for_contiguous_is_told_so():
    one = on_gpu(np.ones(1, np.float32)).as_strided((37,), (0,), 0)
    with pytest.raises(
        SanitizerError, match=r"strides \[0\]\); the kernel takes it for contiguous, which it is not: give x.contiguous\(\)"
    ):
        launch(copy, (3,), one, empty((37,), F32, GPU), 37, BLOCK=16)
    with pytest.raises(SanitizerError, match=r"load of x\[36\].*strides \[1\]\) \("):
        launch(copy, (3,), on_gpu(np.ones(36, np.float32)), empty((37,), F32, GPU), 37, BLOCK=16)


@pytest.mark.parametrize("step", [2, -2, -1])
def test_strided_windows_pass(step):
    host = np.arange(9, dtype=np.float32)
    x, y = on_gpu(host)[::step], empty((host[::step].size,), F32, GPU)
    launch(strided_copy, (1,), x, y, step, y.size, BLOCK=16)
    assert (to_host(y) == host[::step]).all()


def test_empty_tensor_has_no_elements():
    with pytest.raises(SanitizerError, match=r"x has no elements"):
        launch(one_before, (1,), empty((0, 3), F32, GPU), empty((1,), F32, GPU))


def test_pointers_in_a_tuple_are_named():
    with pytest.raises(SanitizerError, match=r"load of xs\[1\]\[3\]"):
        launch(second_of_tuple, (1,), (empty((9,), F32, GPU), empty((3,), F32, GPU)), empty((4,), F32, GPU), BLOCK=4)


@triton.jit
def second_of_tuple(xs, y, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(xs[1] + i))


def test_two_programs_store_to_one_cell():
    y = on_gpu(np.zeros(1, np.int32))
    with pytest.raises(SanitizerError, match=r"stores to y\[0\], which program \(\d+, \d+, \d+\) of this launch stored to as well"):
        launch(all_store_one_cell, (4,), y)
    y = on_gpu(np.zeros(1, np.int32))
    launch(all_add_to_one_cell, (4,), y)
    assert to_host(y) == [0 + 1 + 2 + 3]


@triton.jit
def tiles_that_overlap(x, y, n, off, STEP: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * STEP + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n, other=0.0) + off * tl.program_id(0)
    tl.store(y + i, v.to(y.dtype.element_ty), mask=i < n)


@pytest.mark.parametrize("dtype", [F32, np.dtype(np.float16), BF16, np.dtype(np.int8), np.dtype(bool)], ids=str)
def test_two_programs_may_store_the_same_value(dtype):
    host = np.array([1, 0, 1, 1, 0, 3, 1] * 5, np.float32)
    x, y = on_gpu(host), empty((host.size,), dtype, GPU)
    launch(tiles_that_overlap, (9,), x, y, host.size, 0, STEP=4, BLOCK=8)
    assert np.array_equal(to_host(y), host.astype(dtype))
    if dtype.kind != "b":
        with pytest.raises(SanitizerError, match=r"stores to y\[\d+\], which program \(\d+, \d+, \d+\) of this launch stored to as well"):
            launch(tiles_that_overlap, (9,), x, y, host.size, 2, STEP=4, BLOCK=8)


@pytest.mark.parametrize(
    ("asked", "recorded", "refused"),
    [(None, False, False), (None, True, True), ("pass", True, False), ("refuse", False, True), ("no", False, None)],
)
def test_the_same_value_is_refused_where_a_test_asks(asked, recorded, refused, monkeypatch):
    monkeypatch.delenv("TRITENSOR_EQUAL_STORES", raising=False)
    if asked is not None:
        monkeypatch.setenv("TRITENSOR_EQUAL_STORES", asked)
    x, y = on_gpu(np.ones(35, np.float32)), empty((35,), F32, GPU)
    said = r"stores to y\[\d+\], which program \(\d+, \d+, \d+\) of this launch stored the same value to as well"
    with ExitStack() as stack:
        if recorded:
            stack.enter_context(last_writer.recorded())
        if refused is None:
            stack.enter_context(pytest.raises(ValueError, match="TRITENSOR_EQUAL_STORES=no: it is pass or refuse"))
        elif refused:
            stack.enter_context(pytest.raises(SanitizerError, match=said))
        launch(tiles_that_overlap, (9,), x, y, 35, 0, STEP=4, BLOCK=8)


@triton.jit
def all_store_a_number(y):
    zero = tl.program_id(0) * 0.0
    tl.store(y, tl.where(tl.program_id(0) == 2, zero * -1.0, zero))  # -0.0 as a literal is 0.0 to Triton 3.6


def test_zeros_of_either_sign_are_two_values():
    with pytest.raises(SanitizerError, match=r"stores to y\[0\], which program \(\d+, \d+, \d+\) of this launch stored to as well"):
        launch(all_store_a_number, (4,), on_gpu(np.zeros(1, np.float32)))


def test_a_program_loads_what_another_stores():
    x = on_gpu(np.arange(32, dtype=np.float32))
    with pytest.raises(SanitizerError, match=r"x\[16\]"):
        launch(shift_in_place, (2,), x, 32, BLOCK=16)
    x = on_gpu(np.arange(30, dtype=np.float32))
    launch(double_in_place, (2,), x, 30, BLOCK=16)
    assert (to_host(x) == np.arange(30) * 2).all()


def test_atomics_may_order_programs():
    x, counter, y = on_gpu(np.arange(4, dtype=np.float32)), on_gpu(np.zeros(1, np.int32)), empty((1,), F32, GPU)
    launch(last_one_sums, (4,), x, empty((4,), F32, GPU), counter, y, PROGRAMS=4)
    assert to_host(y) == [6]


def test_lanes_of_one_store_disagree():
    with pytest.raises(SanitizerError, match=r"two lanes of one store put different values into y\[0\]"):
        launch(lanes_disagree, (1,), empty((4,), np.dtype(np.int32), GPU), BLOCK=8)
    y = empty((4,), np.dtype(np.int32), GPU)
    launch(lanes_agree, (1,), y, BLOCK=8)
    assert (to_host(y) == np.arange(4)).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.int64])
def test_masked_lanes_are_poisoned(dtype):
    x, y = on_gpu(np.ones(5, dtype)), empty((1,), np.dtype(dtype), GPU)
    launch(total, (1,), x, y, 5, BLOCK=8, SAFE=False)
    assert to_host(y)[0] != 5
    launch(total, (1,), x, y, 5, BLOCK=8, SAFE=True)
    assert to_host(y)[0] == 5


def test_poison_shows_in_maxima():
    y = empty((1,), F32, GPU)
    launch(greatest, (1,), on_gpu(np.ones(5, np.float32)), y, 5, BLOCK=8)
    assert to_host(y)[0] != 1


def test_unwritten_output_is_poisoned():
    y = empty((6,), F32, GPU)
    launch(half_of, (1,), y, 6, BLOCK=8)
    assert (to_host(y)[:3] == np.arange(3)).all()
    assert np.isnan(to_host(y)[3:]).all()


def test_pointers_from_a_table_must_be_live():
    outs = [empty((5,), F32, GPU) for _ in range(2)]
    launch(through_table, (2,), on_gpu(np.array([o.data_ptr() for o in outs])), 5, BLOCK=8)
    assert all((to_host(o) == 7).all() for o in outs)
    with pytest.raises(SanitizerError, match="no live tensor"):
        launch(through_table, (2,), on_gpu(np.array([o.data_ptr() for o in outs])), 6, BLOCK=8)
    with pytest.raises(SanitizerError, match="no live tensor"):
        launch(through_table, (1,), on_gpu(np.array([4096])), 5, BLOCK=8)


def test_programs_run_shuffled_and_repeatably():
    orders = []
    for _ in range(2):
        y, counter = empty((16,), np.dtype(np.int32), GPU), on_gpu(np.zeros(1, np.int32))
        launch(read_arrival_order, (16,), y, counter)
        orders.append(to_host(y).tolist())
    assert orders[0] == orders[1]
    assert sorted(orders[0]) == list(range(16))
    assert orders[0] != list(range(16))
