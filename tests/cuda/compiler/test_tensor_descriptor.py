"""Tensor descriptors: numbers on the emulated device, replay, and what is refused before anything runs."""

from __future__ import annotations

import weakref
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tritensor as tt
from tests.cuda.compiler.tiles import (
    BF16,
    F32,
    FP8,
    GPU,
    Copies,
    copied,
    copy,
    copy_cube,
    copy_row,
    gathered,
    in_a_tuple,
    on_gpu,
    product,
    sample,
    two_stores,
)
from tritensor.cuda.compiler.tensor_descriptor import TensorDescriptor, rounding_is_known
from tritensor.cuda.emulator.sanitizer import SanitizerError
from tritensor.cuda.launch import launch
from tritensor.ground.device import device
from tritensor.ground.errors import DeviceError, DTypeError, ShapeError
from tritensor.ops.array import empty, from_host, to_host
from tritensor.ops.replay import Corner


# numbers, on the emulated device
@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.int32, np.int64, np.float16, BF16, F32, np.float64, ml_dtypes.float8_e5m2])
def test_tiles_are_copied_and_cut_at_the_edges(dtype: Any) -> None:
    host = sample(50, 80, dtype=np.dtype(dtype))
    assert np.array_equal(to_host(copied(on_gpu(host))), host)


def test_one_dimension_and_three() -> None:
    row, cube = sample(100), sample(3, 20, 24)
    y = on_gpu(np.zeros_like(row))
    launch(copy_row, (2,), TensorDescriptor(on_gpu(row), (64,)), TensorDescriptor(y, (64,)), N=64)
    assert np.array_equal(to_host(y), row)
    y = on_gpu(np.zeros_like(cube))
    launch(copy_cube, (3, 2, 2), TensorDescriptor(on_gpu(cube), (1, 16, 16)), TensorDescriptor(y, (1, 16, 16)), M=16, N=16)
    assert np.array_equal(to_host(y), cube)


@pytest.mark.skipif(not rounding_is_known(), reason="this Triton does not round to tf32 on the way")
def test_float32_is_rounded_to_tf32_on_its_way_in() -> None:
    host = np.ones((16, 16), F32)
    host[0, :5] = 1 + np.array([2.0**-11, 3 * 2.0**-11, 2.0**-11 + 2.0**-20, 2.0**-10, -(2.0**-12)])  # ties go to even
    host[1, :2] = np.inf, -np.inf
    want = np.ones((16, 16), F32)
    want[0, :5] = 1 + np.array([0, 2.0**-9, 2.0**-10, 2.0**-10, 0])
    want[1, :2] = host[1, :2]
    y = empty((16, 16), F32, GPU)
    launch(copy, (1, 1), TensorDescriptor(on_gpu(host), (16, 16), rounds=True), TensorDescriptor(y, (16, 16)), M=16, N=16)
    assert np.array_equal(to_host(y), want)


@pytest.mark.skipif(rounding_is_known(), reason="this Triton rounds to tf32 on the way")
def test_a_triton_that_does_not_round_says_so() -> None:
    with pytest.raises(DTypeError, match="does not round to tf32 on the way; take a later one"):
        TensorDescriptor(on_gpu(sample(16, 16)), (16, 16), rounds=True)


def test_views_are_described_by_their_strides() -> None:
    host = sample(64, 96)
    x = on_gpu(host)
    for view, want in ((x[4:40], host[4:40]), (x[::2, 32:], host[::2, 32:]), (x[:, :40], host[:, :40])):
        assert np.array_equal(to_host(copied(view)), want)


def test_a_dimension_of_one_may_have_any_stride() -> None:
    host = sample(1, 32)
    odd = on_gpu(sample(64)).as_strided((1, 32), (3, 1), 0)
    assert TensorDescriptor(odd, (1, 32)).strides == (32, 1)
    assert np.array_equal(to_host(copied(odd)), host)
    # Rows of 20 bytes round up to 32, a last dimension of one is dense.
    assert TensorDescriptor(on_gpu(sample(8)).as_strided((1, 5), (5, 1), 0), (1, 4)).strides == (8, 1)
    assert TensorDescriptor(on_gpu(sample(64)).as_strided((8, 1), (4, 9), 0), (8, 4)).strides == (4, 1)


@pytest.mark.parametrize("dtype", [np.float16, BF16, F32, np.float64])
def test_what_lies_beyond_the_array_is_zero_or_nan(dtype: Any) -> None:
    x = on_gpu(np.ones((20, 24), dtype))
    y = empty((32, 32), np.dtype(dtype), GPU)
    for padding, beyond in (("zero", 0.0), ("nan", np.nan)):
        launch(copy, (1, 1), TensorDescriptor(x, (32, 32), padding), TensorDescriptor(y, (32, 32)), M=32, N=32)
        want = np.full((32, 32), beyond)
        want[:20, :24] = 1
        assert np.array_equal(to_host(y).astype(np.float64), want, equal_nan=True)


def test_a_matrix_product_of_tiles() -> None:
    draw = np.random.default_rng(3)
    a, b = (draw.standard_normal(shape).astype(BF16) for shape in ((100, 72), (72, 80)))
    c = empty((100, 80), BF16, GPU)
    args = (TensorDescriptor(on_gpu(a), (64, 32)), TensorDescriptor(on_gpu(b), (32, 64)), TensorDescriptor(c, (64, 64)), 72)
    launch(product, (2, 2), *args, M=64, N=64, BLOCK=32)
    want = (a.astype(np.float32) @ b.astype(np.float32)).astype(BF16).astype(np.float32)
    np.testing.assert_allclose(to_host(c).astype(np.float32), want, rtol=2**-7, atol=2**-7)


def test_descriptors_beside_plain_arguments_and_in_tuples() -> None:
    host, rows = sample(8, 16), np.array([5, 0, 7], np.int32)
    y = empty((3, 16), F32, GPU)
    launch(gathered, (3,), TensorDescriptor(on_gpu(host), (1, 16)), TensorDescriptor(y, (1, 16)), on_gpu(rows), 2.0, M=1, N=16)
    assert np.array_equal(to_host(y), 2 * host[rows])
    y = empty((8, 16), F32, GPU)
    launch(in_a_tuple, (2,), (TensorDescriptor(on_gpu(host), (4, 16)), TensorDescriptor(y, (4, 16))), N=4)
    assert np.array_equal(to_host(y), host)


def test_the_sanitizer_knows_whose_tile_it_was() -> None:
    x, y = on_gpu(sample(32, 16)), on_gpu(sample(16, 16))
    with pytest.raises(SanitizerError, match=r"two_stores: program .*: stores to y\[0, 0\], which program .* stored to as well"):
        launch(two_stores, (2,), TensorDescriptor(x, (16, 16)), TensorDescriptor(y, (16, 16)), N=16)


def test_a_graph_of_tiles_reads_what_is_there_when_it_runs() -> None:
    x = on_gpu(sample(32, 32))
    y = empty((32, 32), F32, GPU)
    with tt.cuda.graph() as g:
        launch(copy, (1, 1), TensorDescriptor(x, (32, 32)), TensorDescriptor(y, (32, 32)), M=32, N=32)
    x.storage.write(np.full((32, 32), 5, np.float32), 0)
    g.replay()
    assert np.all(to_host(y) == 5)


def test_a_graph_knows_addresses_and_keeps_no_array() -> None:
    x, y = (from_host(sample(32, 32), device("cuda", 1)) for _ in range(2))
    with tt.cuda.device(1), tt.cuda.graph() as g:
        launch(copy, (1, 1), TensorDescriptor(x, (32, 32)), TensorDescriptor(y, (32, 32)), M=32, N=32)
    storage = weakref.ref(x.storage)
    g.replay()
    del x
    assert storage() is None


def test_a_replayed_corner_describes_the_arrays_it_is_given() -> None:
    copies = Copies()
    corner = Corner(copies)
    for value in range(3):
        assert np.all(to_host(corner(on_gpu(np.full((36, 32), value, F32))))[:32] == value)
    assert copies.runs == 1


# what is refused, before anything runs
def _bad(form: str) -> Any:
    x = on_gpu(sample(64, 64))
    return {
        "host": lambda: TensorDescriptor(np.zeros((16, 16)), (16, 16)),
        "bool": lambda: TensorDescriptor(on_gpu(np.zeros((16, 16), bool)), (16, 16)),
        "padding": lambda: TensorDescriptor(x, (16, 16), "one"),
        "nan of int": lambda: TensorDescriptor(on_gpu(sample(16, 16, dtype=np.dtype(np.int32))), (16, 16), "nan"),
        "nan of fp8": lambda: TensorDescriptor(on_gpu(sample(16, 16, dtype=FP8)), (16, 16), "nan"),
        "rounded halves": lambda: TensorDescriptor(on_gpu(sample(16, 16, dtype=np.dtype(np.float16))), (16, 16), rounds=True),
        "rank 0": lambda: TensorDescriptor(x[0, 0], ()),
        "rank 6": lambda: TensorDescriptor(x.reshape((2, 2, 2, 2, 2, 128)), (1, 1, 1, 1, 1, 16)),
        "empty": lambda: TensorDescriptor(x[:0], (16, 16)),
        "transposed": lambda: TensorDescriptor(x.transpose((1, 0)), (16, 16)),
        "rows": lambda: TensorDescriptor(on_gpu(sample(16, 18)), (16, 16)),
        "reversed": lambda: TensorDescriptor(x[::-1], (16, 16)),
        "address": lambda: TensorDescriptor(x[:, 1:], (16, 16)),
        "block rank": lambda: TensorDescriptor(x, (16,)),
        "block of 48": lambda: TensorDescriptor(x, (48, 16)),
        "block of 0": lambda: TensorDescriptor(x, (0, 16)),
        "short row": lambda: TensorDescriptor(x, (16, 2)),
        "big block": lambda: TensorDescriptor(x, (2048, 1024)),
    }[form]


@pytest.mark.parametrize(
    ("form", "error", "said"),
    [
        ("host", DeviceError, "ndarray is no array on a GPU"),
        ("bool", DTypeError, r"bool\[16, 16\].*no tensor map copies bool; give a view of numbers"),
        ("padding", ValueError, "padding 'one'; it is 'zero' or 'nan'"),
        ("nan of int", DTypeError, "int32.*padding 'nan' is for floating types"),
        ("nan of fp8", DTypeError, "float8_e4m3fn.*padding 'nan' is for floating types of 16 bits and more"),
        ("rounded halves", DTypeError, "only float32 is rounded to tf32; leave out rounds"),
        ("rank 0", ShapeError, "0 dimensions; a tensor map has 1 to 5"),
        ("rank 6", ShapeError, "6 dimensions; a tensor map has 1 to 5, so merge some by reshape"),
        ("empty", ShapeError, r"float32\[0, 64\].*sizes must be 1 to"),
        ("transposed", ShapeError, "the last stride is 64 and must be 1: describe a transposed view, or a contiguous copy"),
        ("rows", ShapeError, "stride 0 is 72 bytes and must be a multiple of 16"),
        ("reversed", ShapeError, "stride 0 is -256 bytes"),
        ("address", ShapeError, "the first element is 4 bytes behind a multiple of 16"),
        ("block rank", ShapeError, r"block_shape \[16\] has 1 sizes for 2 dimensions"),
        ("block of 48", ShapeError, r"block_shape \[48, 16\]: sizes are powers of two"),
        ("block of 0", ShapeError, "sizes are powers of two"),
        ("short row", ShapeError, "a row of it is 8 bytes and must be 16 or more"),
        ("big block", ShapeError, "has 2097152 elements; a block has at most 1048576"),
    ],
)
def test_what_no_map_describes(form: str, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        _bad(form)()
