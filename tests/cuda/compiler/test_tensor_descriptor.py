"""Tensor descriptors: numbers on the emulated device, the 128 bytes that reach the driver, the cache of maps, replay, what is refused."""

from __future__ import annotations

import ctypes
import struct
import weakref
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import pytest
import triton
import triton.language as tl

import tritensor as tt
from tests.stub import control
from tests.stub.child import on_stub
from tritensor.array import CudaArray, empty, from_host, to_host
from tritensor.cuda.compiler import cubin_cache
from tritensor.cuda.compiler.arguments import specialize
from tritensor.cuda.compiler.compile import compile
from tritensor.cuda.compiler.tensor_descriptor import TensorDescriptor
from tritensor.cuda.driver import tensor_maps
from tritensor.cuda.driver.kernels import Block
from tritensor.cuda.emulator.sanitizer import SanitizerError
from tritensor.cuda.launch import launch
from tritensor.cuda.runtime.serving import runtime
from tritensor.device import device
from tritensor.errors import DeviceError, DTypeError, LaunchError, ShapeError
from tritensor.replay import Corner

GPU = device("cuda", 0)
F32, BF16 = np.dtype(np.float32), np.dtype(ml_dtypes.bfloat16)
FP8 = np.dtype(ml_dtypes.float8_e4m3fn)


@triton.jit
def copy(x, y, M: tl.constexpr, N: tl.constexpr):
    i, j = tl.program_id(0) * M, tl.program_id(1) * N
    y.store([i, j], x.load([i, j]))


@triton.jit
def copy_row(x, y, N: tl.constexpr):
    i = tl.program_id(0) * N
    y.store([i], x.load([i]))


@triton.jit
def copy_cube(x, y, M: tl.constexpr, N: tl.constexpr):
    i, j, k = tl.program_id(0), tl.program_id(1) * M, tl.program_id(2) * N
    y.store([i, j, k], x.load([i, j, k]))


@triton.jit
def gathered(x, y, rows, scale, M: tl.constexpr, N: tl.constexpr):
    """A map between plain addresses and numbers: y[i] = scale * x[rows[i]]."""
    i = tl.program_id(0)
    row = tl.load(rows + i)
    y.store([i, 0], x.load([row, 0]) * scale)


@triton.jit
def product(a, b, c, K, M: tl.constexpr, N: tl.constexpr, BLOCK: tl.constexpr):
    i, j = tl.program_id(0) * M, tl.program_id(1) * N
    total = tl.zeros((M, N), tl.float32)
    for k in range(0, K, BLOCK):
        total = tl.dot(a.load([i, k]), b.load([k, j]), total)
    c.store([i, j], total.to(c.dtype))


@triton.jit
def in_a_tuple(pair, N: tl.constexpr):
    i = tl.program_id(0) * N
    pair[1].store([i, 0], pair[0].load([i, 0]))


@triton.jit
def two_stores(x, y, N: tl.constexpr):
    y.store([0, 0], x.load([tl.program_id(0) * N, 0]))


def on_gpu(x: Any) -> CudaArray:
    found = from_host(np.asarray(x), GPU)
    assert isinstance(found, CudaArray)
    return found


def sample(*shape: int, dtype: np.dtype = F32) -> np.ndarray:
    return (np.arange(np.prod(shape)) % 240).reshape(shape).astype(dtype)


def copied(x: CudaArray, padding: str = "zero", block: int = 32) -> CudaArray:
    y = on_gpu(np.full(x.shape, 7, x.dtype))
    grid = (-(-x.shape[0] // block), -(-x.shape[1] // block))
    launch(copy, grid, TensorDescriptor(x, (block, block), padding), TensorDescriptor(y, (block, block)), M=block, N=block)
    return y


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
    with pytest.raises(SanitizerError, match=r"two_stores: program .*: stores to y\[0\], which program number .* stored to as well"):
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


class _Copies:
    """A corner that copies by tiles, and how often its Python ran."""

    def __init__(self) -> None:
        self.runs = 0

    def __call__(self, x: CudaArray) -> CudaArray:
        self.runs += 1
        y = empty(x.shape, x.dtype, GPU)
        assert isinstance(y, CudaArray)
        launch(copy, (1, 1), TensorDescriptor(x[4:], (32, 32)), TensorDescriptor(y, (32, 32)), M=32, N=32)
        return y


def test_a_replayed_corner_describes_the_arrays_it_is_given() -> None:
    copies = _Copies()
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


# what reaches the driver
class Map(NamedTuple):
    """A map as the stub driver writes it; sizes innermost first, strides in bytes."""

    flags: int
    address: int
    strides: tuple[int, ...]
    sizes: tuple[int, ...]
    box: tuple[int, ...]
    type: int
    swizzle: int
    fill: int


def read_map(raw: bytes) -> Map:
    mark, flags, address, *rest = struct.unpack_from("<8sQQ4Q5I5I5I", raw)
    assert mark == b"_STUBMAP"
    strides, sizes, box, (rank, kind, swizzle, interleave, fill) = rest[:4], rest[4:9], rest[9:14], rest[14:]
    assert interleave == 0
    return Map(flags, address, tuple(strides[: rank - 1]), tuple(sizes[:rank]), tuple(box[:rank]), kind, swizzle, fill)


def _halves(x: CudaArray, y: CudaArray, block: int = 64) -> None:
    launch(copy, (1, 1), TensorDescriptor(x, (block, block), "nan"), TensorDescriptor(y, (block, block)), M=block, N=block)


@on_stub()
def test_maps_arrive_aligned_and_complete() -> None:
    x, y = empty((256, 128), BF16, GPU), empty((100, 72), BF16, GPU)
    _halves(x[8:], y)
    seen = control.launches()[-1]
    assert [len(raw) for raw in seen.raw] == [128, 4, 4, 8, 8, 128, 4, 4, 8, 8, 8, 8]
    assert seen.values[1:5] == (248, 128, 128, 1)
    assert seen.values[6:] == (100, 72, 72, 1, 0, 0)
    first, second = read_map(seen.raw[0]), read_map(seen.raw[5])
    assert first[1:] == (x.pointer + 8 * 128 * 2, (256,), (128, 248), (64, 64), 9, 3, 1)
    assert second[1:] == (y.pointer, (144,), (72, 100), (64, 64), 9, 3, 0)


def test_the_block_of_a_kernel_that_takes_maps() -> None:
    types = ("*", "map", "i32", "map", "i64", "*")
    block = Block(types, [-5, 2**40], [lambda address: address.to_bytes(128, "little"), lambda address: (address + 1).to_bytes(128, "big")])
    block.pack(block.memory, 0, 10, 20, 30, 40)
    places = (ctypes.c_uint64 * len(types)).from_address(block.address)
    assert all(p % 128 == 0 for p in (places[1], places[3]))
    got = [ctypes.string_at(p, n) for p, n in zip(places, (8, 128, 4, 128, 8, 8), strict=True)]
    assert got == [struct.pack("<Q", 10), (20).to_bytes(128, "little"), struct.pack("<i", -5), (31).to_bytes(128, "big"),
                   struct.pack("<q", 2**40), struct.pack("<Q", 40)]  # fmt: skip
    start = ctypes.addressof(block.memory)
    assert all(start <= p and p + n <= start + len(block.memory) for p, n in zip(places, (8, 128, 4, 128, 8, 8), strict=True))


@on_stub()
def test_maps_stand_between_addresses_and_numbers() -> None:
    x, y, rows = empty((8, 16), F32, GPU), empty((3, 16), F32, GPU), empty((3,), np.dtype(np.int32), GPU)
    launch(gathered, (3,), TensorDescriptor(x, (1, 16)), TensorDescriptor(y, (1, 16)), rows, 2.0, M=1, N=16)
    seen = control.launches()[-1]
    assert [len(raw) for raw in seen.raw] == [128, 4, 4, 8, 8, 128, 4, 4, 8, 8, 8, 4, 8, 8]
    assert (read_map(seen.raw[0]).address, read_map(seen.raw[5]).address, seen.values[10]) == (x.pointer, y.pointer, rows.pointer)
    assert seen.floating(11) == 2.0
    launch(in_a_tuple, (2,), (TensorDescriptor(x, (4, 16)), TensorDescriptor(x, (4, 16))), N=4)
    assert read_map(control.launches()[-1].raw[5]).address == x.pointer


@pytest.mark.parametrize(("dtype", "kind"), [(np.uint8, 0), (np.int16, 1), (np.int32, 3), (np.int64, 5), (np.float16, 6), (F32, 7), (np.float64, 8), (BF16, 9)])  # fmt: skip
@on_stub()
def test_element_types_are_numbered_as_the_host_does(dtype: Any, kind: int) -> None:
    x = empty((16, 16), np.dtype(dtype), GPU)
    launch(copy, (1, 1), TensorDescriptor(x, (16, 16)), TensorDescriptor(x, (16, 16)), M=16, N=16)
    assert read_map(control.launches()[-1].raw[0]).type == kind


@on_stub()
def test_a_large_block_is_several_boxes() -> None:
    x = empty((1024, 128), BF16, GPU)
    launch(copy, (1, 1), TensorDescriptor(x, (512, 128)), TensorDescriptor(x, (512, 128)), M=512, N=128)
    assert read_map(control.launches()[-1].raw[0]).box == (64, 256)


def _flags(rows: int) -> int:
    x = empty((rows, 64), BF16, GPU)
    _halves(x, x)
    return read_map(control.launches()[-1].raw[0]).flags


@on_stub(STUB_DRIVER_VERSION=13010)
def test_a_bit_is_cleared_for_small_arrays_on_old_drivers() -> None:
    assert _flags(1023) == 2**64 - 1 - 2**21
    assert _flags(1025) == 2**64 - 1  # 128 KiB and more


@on_stub(STUB_DRIVER_VERSION=13020)
def test_newer_drivers_need_no_mending() -> None:
    assert _flags(64) == 2**64 - 1


@on_stub()
def test_maps_are_kept_by_address_and_form() -> None:
    x = empty((128, 64), BF16, GPU)
    wide, other = x.reshape((64, 128)), empty((128, 64), BF16, GPU)
    encodings = []
    for source, target in ((x, x), (x, x), (x[64:], x), (x[64:], x), (wide, x), (other, other)):
        with control.counted() as calls:
            _halves(source, target)
        encodings.append(calls.get("cuTensorMapEncodeTiled", 0))
        seen = control.launches()[-1]
        assert (read_map(seen.raw[0]).address, read_map(seen.raw[5]).address) == (source.pointer, target.pointer)
    assert encodings == [2, 0, 1, 0, 1, 2]  # zero and NaN are two forms


@on_stub()
def test_the_cache_of_maps_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tensor_maps, "KEPT", 4)
    x = empty((64, 64), BF16, GPU)
    maps = runtime().kernels.maps  # type: ignore[attr-defined]
    for i in range(12):
        _halves(x[i:], x)  # a form each
        assert len(maps._forms) <= 4
    big = empty((12, 64, 64), BF16, GPU)
    for i in range(12):
        _halves(big[i], big[i])  # an address each
    assert max(len(kept) for kept in maps._forms.values()) == 4
    with control.counted() as calls:
        _halves(big[11], big[11])
    assert "cuTensorMapEncodeTiled" not in calls


@on_stub()
def test_a_replay_encodes_for_the_arrays_it_is_given() -> None:
    copies = _Copies()
    corner = Corner(copies)
    kept = []
    for _ in range(3):
        x = empty((36, 32), F32, GPU)
        y = corner(x)
        kept += [x, y]
        first, second = (read_map(control.launches()[-1].raw[i]) for i in (0, 5))
        assert (first.address, second.address) == (x.pointer + 4 * 32 * 4, y.pointer)
    assert copies.runs == 1
    y = corner(x)
    del y
    with control.counted() as calls:
        corner(x)
    assert calls == {"cuLaunchKernelEx": 1}


@on_stub()
def test_a_map_that_the_driver_refuses_leaves_everything_as_it_was() -> None:
    corner = Corner(_Copies())
    x = empty((36, 32), F32, GPU)
    corner(x)
    live = runtime().memory_allocated(0)
    control.fail_at("cuTensorMapEncodeTiled", 1, control.INVALID_VALUE)
    other = empty((36, 32), F32, GPU)
    with pytest.raises(LaunchError, match=r"copy: tensor map of 0x.*sizes \(32, 32\), strides \(128,\) bytes.*CUDA_ERROR_INVALID_VALUE"):
        corner(other)
    assert runtime().memory_allocated(0) == live + other.nbytes - other.nbytes % 512 + 512 * bool(other.nbytes % 512)
    assert isinstance(corner(other), CudaArray)


@on_stub(STUB_CAPABILITY=80)
def test_an_older_gpu_gets_addresses() -> None:
    x, y = empty((256, 128), BF16, GPU), empty((100, 72), BF16, GPU)
    copies = Corner(_Copies())
    _halves(x, y)
    seen = control.launches()[-1]
    flags = 2 if len(seen.values) == 24 else 1  # Triton's later versions pass a second one
    one = (256, 128, 128, 1)
    two = (100, 72, 72, 1)
    zeros = (0,) * (flags - 1)
    assert seen.values == (x.pointer, *one, 1, *zeros, *one, y.pointer, *two, 0, *zeros, *two, 0, 0)
    assert control.calls("cuTensorMapEncodeTiled") == 0
    for _ in range(2):  # recorded, then replayed
        source = empty((36, 32), F32, GPU)
        target = copies(source)
        pointers = [v for v, p in zip(control.launches()[-1].values, control.launches()[-1].pointers, strict=True) if p and v]
        assert pointers == [source.pointer + 4 * 32 * 4, target.pointer]


@on_stub()
def test_what_the_compiler_says_of_maps_is_kept_on_disk(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITENSOR_CACHE", str(tmp_path))
    x = empty((64, 64), BF16, GPU)
    spec = specialize(copy, (TensorDescriptor(x, (64, 64)),) * 2, {"M": 64, "N": 64}, 4, 3)[0]
    cubin_cache.forget()
    made = cubin_cache.find(spec, 90)
    cubin_cache.forget()
    assert cubin_cache.file_of(cubin_cache.keys(spec, 90)[0]).exists()  # type: ignore[union-attr]
    again = cubin_cache.find(spec, 90)
    assert made is not again
    assert made == again
    assert [m["block_size"] for m in again.tensordesc] == [[64, 64], [64, 64]]


@on_stub()
def test_what_tritensor_does_not_encode_is_named() -> None:
    x = TensorDescriptor(empty((64, 64), BF16, GPU), (64, 64))
    wanted = {"swizzle": 3, "elem_size": 2, "elem_type": 10, "block_size": [64, 64], "fp4_padded": False}
    assert tensor_maps.form_of(x, wanted, "k").box == (64, 64)
    for change, said in (
        ({"fp4_padded": True}, "k: wants a tensor map of 4-bit floats"),
        ({"is_im2col": True}, "k: wants a tensor map of convolution windows"),
        ({"elem_size": 4}, "k: was compiled for elements of 4 bytes"),
    ):
        with pytest.raises(LaunchError, match=said):
            tensor_maps.form_of(x, wanted | change, "k")


@on_stub()
def test_the_product_of_tiles_is_tma_and_wgmma_on_sm_90() -> None:
    a, b, c = (TensorDescriptor(empty((128, 128), BF16, GPU), block) for block in ((64, 32), (32, 64), (64, 64)))
    spec = specialize(product, (a, b, c, 128), {"M": 64, "N": 64, "BLOCK": 32}, 4, 3)[0]
    assert spec.types[:3] == ("tensordesc<bf16[64, 32]>", "tensordesc<bf16[32, 64]>", "tensordesc<bf16[64, 64]>")
    hopper, ampere = (compile(spec, arch).asm["ptx"] for arch in (90, 80))
    assert "cp.async.bulk.tensor.2d" in hopper
    assert "wgmma.mma_async" in hopper
    assert "cp.async.bulk" not in ampere
    assert "mma.sync" in ampere
