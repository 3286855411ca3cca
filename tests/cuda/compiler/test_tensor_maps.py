"""Tensor maps: the 128 bytes that reach the driver, where they stand among the parameters, the cache of maps, what is not encoded."""

from __future__ import annotations

import ctypes
import struct
from typing import Any, NamedTuple

import numpy as np
import pytest

from tests.cuda.compiler.tiles import BF16, F32, GPU, Copies, copy, gathered, in_a_tuple, product
from tests.stub import control
from tests.stub.child import on_stub
from tritensor.cuda.compiler import cubin_cache
from tritensor.cuda.compiler.arguments import LaunchCall, specialize
from tritensor.cuda.compiler.compile import compile
from tritensor.cuda.compiler.tensor_descriptor import TensorDescriptor, rounding_is_known
from tritensor.cuda.driver import tensor_maps
from tritensor.cuda.driver.kernels import Block
from tritensor.cuda.launch import launch
from tritensor.cuda.runtime.active import runtime
from tritensor.ground.errors import LaunchError
from tritensor.ops.array import CudaArray, empty
from tritensor.ops.replay import Corner


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


@pytest.mark.skipif(not rounding_is_known(), reason="this Triton does not round to tf32 on the way")
@on_stub()
def test_a_map_that_rounds_is_of_tf32() -> None:
    x, y = empty((64, 64), F32, GPU), empty((64, 64), F32, GPU)
    for rounds in (False, True):
        launch(copy, (1, 1), TensorDescriptor(x, (32, 32), rounds=rounds), TensorDescriptor(y, (32, 32)), M=32, N=32)
    before, after = (read_map(seen.raw[0]).type for seen in control.launches()[-2:])
    assert (before, after) == (7, 11)


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
    copies = Copies()
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
    corner = Corner(Copies())
    x = empty((36, 32), F32, GPU)
    corner(x)
    live = runtime().allocator(0).live
    control.fail_at("cuTensorMapEncodeTiled", 1, control.INVALID_VALUE)
    other = empty((36, 32), F32, GPU)
    with pytest.raises(LaunchError, match=r"copy: tensor map of 0x.*sizes \(32, 32\), strides \(128,\) bytes.*CUDA_ERROR_INVALID_VALUE"):
        corner(other)
    assert runtime().allocator(0).live == live + other.nbytes - other.nbytes % 512 + 512 * bool(other.nbytes % 512)
    assert isinstance(corner(other), CudaArray)


@on_stub(STUB_CAPABILITY=80)
def test_an_older_gpu_gets_addresses() -> None:
    x, y = empty((256, 128), BF16, GPU), empty((100, 72), BF16, GPU)
    copies = Corner(Copies())
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
    spec = specialize(LaunchCall(copy, (1,), (TensorDescriptor(x, (64, 64)),) * 2, {"M": 64, "N": 64}))[0]
    cubin_cache.forget()
    made = cubin_cache.find_cubin(spec, 90)
    cubin_cache.forget()
    assert cubin_cache.cache_file(cubin_cache.keys(spec, 90)[0]).exists()  # type: ignore[union-attr]
    again = cubin_cache.find_cubin(spec, 90)
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
    spec = specialize(LaunchCall(product, (1,), (a, b, c, 128), {"M": 64, "N": 64, "BLOCK": 32}))[0]
    assert spec.types[:3] == ("tensordesc<bf16[64, 32]>", "tensordesc<bf16[32, 64]>", "tensordesc<bf16[64, 64]>")
    hopper, ampere = (compile(spec, arch).asm["ptx"] for arch in (90, 80))
    assert "cp.async.bulk.tensor.2d" in hopper
    assert "wgmma.mma_async" in hopper
    assert "cp.async.bulk" not in ampere
    assert "mma.sync" in ampere
