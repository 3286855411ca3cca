"""Requests of a launch beside a grid: clusters, a cooperative grid, dependent launches, scratch memory, much shared memory; one GPU per launch."""

from __future__ import annotations

import itertools
import re
from typing import Any

import numpy as np
import pytest
import triton
import triton.language as tl
from triton.language.extra import cuda as extra

import tritensor as tt
from tests.stub import control
from tests.stub.child import on_stub
from tritensor.cuda.compiler import cubin_cache
from tritensor.cuda.compiler.arguments import LaunchCall, specialize
from tritensor.cuda.compiler.compile import compile
from tritensor.cuda.compiler.tensor_descriptor import TensorDescriptor
from tritensor.cuda.launch import launch
from tritensor.cuda.runtime.active import runtime
from tritensor.ground.device import device
from tritensor.ground.errors import DeviceError, LaunchError
from tritensor.ops.array import CudaArray, empty, from_host, to_host
from tritensor.ops.replay import Corner

GPU, OTHER = device("cuda", 0), device("cuda", 1)
F32, I32 = np.dtype(np.float32), np.dtype(np.int32)


@triton.jit
def doubled(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i, mask=i < n, other=0) * 2, mask=i < n)


@triton.jit
def turned(x, y, met, BLOCK: tl.constexpr):
    """y holds 2 * x when all programs have met; x is then y read backwards, which only a cooperative grid may do."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    programs = tl.num_programs(0)
    tl.store(y + i, tl.load(x + i) * 2)
    tl.debug_barrier()
    tl.atomic_add(met, 1, sem="release", scope="gpu")
    while tl.atomic_add(met, 0, sem="acquire", scope="gpu") < programs:
        pass
    tl.store(x + i, tl.load(y + (programs * BLOCK - 1 - i)))


@triton.jit
def first_half(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    read = tl.load(x + i, mask=i < n, other=0)
    extra.gdc_launch_dependents()
    tl.store(y + i, read * 2, mask=i < n)


@triton.jit
def second_half(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    extra.gdc_wait()
    tl.store(y + i, tl.load(x + i, mask=i < n, other=0) + 1, mask=i < n)


@triton.jit
def by_scratch(x, y, M, N, BLOCK: tl.constexpr, ROW: tl.constexpr):
    """Copies by tensor maps that each program writes for itself, on sm_90 into its part of the scratch area."""
    source = tl.make_tensor_descriptor(x, [M, N], [N, 1], [BLOCK, ROW])
    target = tl.make_tensor_descriptor(y, [M, N], [N, 1], [BLOCK, ROW])
    i = tl.program_id(0) * BLOCK
    target.store([i, 0], source.load([i, 0]))


@triton.jit
def product(a, b, c, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    p = i[:, None] * BLOCK + i[None, :]
    tl.store(c + p, tl.dot(tl.load(a + p), tl.load(b + p)))


@triton.jit
def of_pair(pair, y, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(pair[0] + i) + tl.load(pair[1] + i))


@triton.jit
def of_tile(x, y, BLOCK: tl.constexpr):
    tl.store(y + tl.arange(0, BLOCK), tl.sum(x.load([0, 0]), 0))


def on_gpu(count: int = 64, at: device = GPU) -> CudaArray:
    found = from_host(np.arange(count, dtype=np.float32), at)
    assert isinstance(found, CudaArray)
    return found


# numbers, on the emulated device
def test_dependent_launches_give_the_same_numbers() -> None:
    x, y, z = on_gpu(60), on_gpu(60), on_gpu(60)
    launch(first_half, (2,), x, y, 60, BLOCK=32)
    launch(second_half, (2,), y, z, 60, BLOCK=32, launch_pdl=True)
    assert np.array_equal(to_host(z), np.arange(60) * 2 + 1)


def test_a_cooperative_grid_of_one_program() -> None:
    x, y, met = on_gpu(32), on_gpu(32), empty((1,), I32, GPU)
    met.storage.write(np.zeros(1, I32), 0)
    launch(turned, (1,), x, y, met, BLOCK=32, launch_cooperative_grid=True)
    assert np.array_equal(to_host(x), 2 * np.arange(31, -1, -1))


def test_programs_that_wait_for_each_other_are_refused_where_they_run_in_turn() -> None:
    x, y, met = on_gpu(64), on_gpu(64), empty((1,), I32, GPU)
    with pytest.raises(
        LaunchError, match="launch turned: a cooperative grid of 2 programs: the emulated device runs one program after another"
    ):
        launch(turned, (2,), x, y, met, BLOCK=32, launch_cooperative_grid=True)


def test_maps_that_programs_make_for_themselves() -> None:
    host = np.arange(100 * 60, dtype=np.float32).reshape(100, 60)
    x, y = from_host(host, GPU), empty((100, 60), F32, GPU)
    launch(by_scratch, (4,), x, y, 100, 60, BLOCK=32, ROW=64)
    assert np.array_equal(to_host(y), host)


def test_a_grid_that_no_gpu_takes_is_refused_everywhere() -> None:
    x = on_gpu()
    for grid in [(1, 65536), (1, 1, 65536), (2**31, 1)]:
        with pytest.raises(
            LaunchError, match=r"launch doubled: a grid of .*; a GPU takes at most \(2147483647, 65535, 65535\): put the long"
        ):
            launch(doubled, grid, x, x, 4, BLOCK=4)


def test_clusters_change_no_number() -> None:
    x, y = on_gpu(), on_gpu()
    launch(doubled, (2,), x, y, 64, BLOCK=32, num_ctas=2)
    assert np.array_equal(to_host(y), 2 * np.arange(64))


def test_a_cluster_of_three_is_refused_everywhere() -> None:
    with pytest.raises(LaunchError, match="launch doubled: num_ctas is 3; a cluster has 1, 2, 4, 8 or 16 blocks"):
        launch(doubled, (2,), on_gpu(), on_gpu(), 64, BLOCK=32, num_ctas=3)


# clusters, cooperation and dependence, as the driver is told
@pytest.mark.parametrize("blocks", [2, 4, 16])
@on_stub()
def test_clusters_arrive(blocks: int) -> None:
    x, y = on_gpu(256), on_gpu(256)
    with control.counted() as calls:
        launch(doubled, (2, 3), x, y, 256, BLOCK=128, num_ctas=blocks)
    seen = control.launches()[-1]
    assert (seen.grid, seen.cluster, seen.cooperative, seen.programmatic) == ((2 * blocks, 3, 1), (blocks, 1, 1), False, False)
    assert calls.get("cuFuncSetAttribute", 0) == (blocks > 8)  # more than 8 blocks are not portable, and asked for once
    with control.counted() as calls:
        launch(doubled, (2, 3), x, y, 256, BLOCK=128, num_ctas=blocks)
    assert calls == {"cuLaunchKernelEx": 1}


@on_stub()
def test_everything_at_once() -> None:
    x, y = on_gpu(), on_gpu()
    launch(doubled, (4,), x, y, 64, BLOCK=32, num_ctas=2, launch_cooperative_grid=True, launch_pdl=True)
    seen = control.launches()[-1]
    assert (seen.grid, seen.cluster, seen.cooperative, seen.programmatic) == ((8, 1, 1), (2, 1, 1), True, True)
    launch(doubled, (4,), x, y, 64, BLOCK=32)
    seen = control.launches()[-1]
    assert (seen.grid, seen.cluster, seen.cooperative, seen.programmatic) == ((4, 1, 1), (1, 1, 1), False, False)


@on_stub(STUB_CAPABILITY=80)
def test_what_an_older_gpu_does_not_have_is_refused_before_it_is_compiled() -> None:
    x, y = on_gpu(), on_gpu()
    for options, said in (
        ({"num_ctas": 2}, r"launch doubled: clusters \(num_ctas=2\) need compute capability 9.0 or later, cuda:0 has 8.0; launch it with num_ctas=1"),
        ({"launch_pdl": True}, "launch doubled: launch_pdl needs compute capability 9.0 or later, cuda:0 has 8.0"),
    ):  # fmt: skip
        with pytest.raises(LaunchError, match=said):
            launch(doubled, (2,), x, y, 64, BLOCK=32, **options)
    assert control.calls("cuModuleLoadData") == 0
    launch(doubled, (2,), x, y, 64, BLOCK=32, launch_cooperative_grid=True)
    assert control.launches()[-1].cooperative


@on_stub()
def test_a_cooperative_grid_that_the_gpu_does_not_hold() -> None:
    x, y, met = on_gpu(), on_gpu(), empty((1,), I32, GPU)
    launch(turned, (2,), x, y, met, BLOCK=32, launch_cooperative_grid=True)
    assert control.launches()[-1].cooperative
    with pytest.raises(LaunchError) as caught:
        launch(turned, (10**6,), x, y, met, BLOCK=32, launch_cooperative_grid=True)
    said = re.search(r"launch turned: grid \(1000000,\).* at most (\d+) programs at once on cuda:0: .*COOPERATIVE_LAUNCH_TOO_LARGE.*use fewer", str(caught.value))  # fmt: skip
    assert said is not None, str(caught.value)
    assert "cooperative grid of more than" in control.complaints()[0]
    most = int(said[1])
    launch(turned, (most,), x, y, met, BLOCK=32, launch_cooperative_grid=True)
    with pytest.raises(LaunchError, match="TOO_LARGE"):
        launch(turned, (most + 1,), x, y, met, BLOCK=32, launch_cooperative_grid=True)
    control.complaints()


@on_stub()
def test_a_pair_of_dependent_kernels() -> None:
    x, y, z = on_gpu(), on_gpu(), on_gpu()
    launch(first_half, (2,), x, y, 64, BLOCK=32)
    launch(second_half, (2,), y, z, 64, BLOCK=32, launch_pdl=True)
    assert [(seen.name, seen.programmatic) for seen in control.launches()] == [("first_half", False), ("second_half", True)]
    specs = [specialize(LaunchCall(k, (1,), (x, y, 64), {"BLOCK": 32}))[0] for k in (first_half, second_half)]
    first, second = (compile(spec, 90).asm["ptx"] for spec in specs)
    assert "griddepcontrol.launch_dependents" in first
    assert "griddepcontrol.wait" in second


@on_stub()
def test_attributes_go_with_replayed_launches_too() -> None:
    def corner(x: CudaArray) -> CudaArray:
        y = empty(x.shape, x.dtype, GPU)
        assert isinstance(y, CudaArray)
        launch(doubled, (2,), x, y, 64, BLOCK=32, num_ctas=2, launch_pdl=True)
        return y

    replayed = Corner(corner)
    for _ in range(3):
        y = replayed(on_gpu())
        seen = control.launches()[-1]
        assert (seen.grid, seen.cluster, seen.programmatic, seen.values[1]) == ((4, 1, 1), (2, 1, 1), True, y.pointer)


# scratch memory
def _scratch(x: CudaArray, y: CudaArray) -> int:
    launch(by_scratch, (64,), x, y, 128, 64, BLOCK=2, ROW=64)
    seen = control.launches()[-1]
    assert seen.values[:2] == (x.pointer, y.pointer)
    area, profile = seen.values[-2:]
    assert profile == 0
    assert isinstance(area, int)
    return area


@on_stub()
def test_scratch_comes_from_the_cache_and_goes_back() -> None:
    x, y = empty((128, 64), F32, GPU), empty((128, 64), F32, GPU)
    area = _scratch(x, y)
    (cubin,) = [c for c in cubin_cache._memory.values() if c.name == "by_scratch"]
    assert cubin.global_scratch_size >= 256  # two maps of 128 bytes
    assert area % cubin.global_scratch_align == 0
    live = runtime().allocator(0).live
    with control.counted() as calls:
        assert _scratch(x, y) == area
    assert calls == {"cuLaunchKernelEx": 1}
    assert runtime().allocator(0).live == live
    allocated = control.live_allocations(0)
    start = max(a for a in allocated if a <= area)
    assert start + allocated[start] >= area + 64 * cubin.global_scratch_size


@on_stub()
def test_scratch_in_replayed_calls() -> None:
    runs = []

    def corner(x: CudaArray) -> CudaArray:
        runs.append(1)
        y, z = empty(x.shape, x.dtype, GPU), empty(x.shape, x.dtype, GPU)
        assert isinstance(y, CudaArray)
        assert isinstance(z, CudaArray)
        _scratch(x, y)
        _scratch(y, z)
        return z

    replayed = Corner(corner)
    keep = []
    for _ in range(3):
        x = empty((128, 64), F32, GPU)
        z = replayed(x)
        first, second = control.launches()[-2:]
        areas = {seen.values[-2] for seen in (first, second)}  # eager launches may use one in turn
        assert all(isinstance(a, int) and a and a % 128 == 0 for a in areas)
        spans: list[Any] = sorted([(p, 64 * 128 * 4) for p in (x.pointer, z.pointer, first.values[1])] + [(a, 64 * 256) for a in areas])
        assert all(start + size <= then for (start, size), (then, _) in itertools.pairwise(spans))
        assert (first.values[0], second.values[0], second.values[1]) == (x.pointer, first.values[1], z.pointer)
        keep += [x, z]
    assert len(runs) == 1
    live = runtime().allocator(0).live
    del z, keep[-1]
    with control.counted() as calls:
        keep.append(replayed(x))
    assert calls == {"cuLaunchKernelEx": 2}
    assert runtime().allocator(0).live == live


@on_stub()
def test_a_scratch_area_that_does_not_fit_leaves_the_books_right() -> None:
    x, y = empty((128, 64), F32, GPU), empty((128, 64), F32, GPU)
    runtime().empty_cache()
    live = runtime().allocator(0).live
    control.fail_at("cuMemAllocFromPoolAsync", 1, control.OUT_OF_MEMORY, times=5)
    with pytest.raises(MemoryError):
        launch(by_scratch, (2**20,), x, y, 128, 64, BLOCK=32, ROW=64)
    control.no_faults()
    assert runtime().allocator(0).live == live
    assert _scratch(x, y)


@on_stub()
def test_scratch_in_a_graph() -> None:
    x, y = empty((128, 64), F32, GPU), empty((128, 64), F32, GPU)
    _scratch(x, y)
    with tt.cuda.graph() as g:
        launch(by_scratch, (4,), x, y, 128, 64, BLOCK=32, ROW=64)
    tt.cuda.empty_cache()
    for _ in range(2):
        g.replay()
        seen = control.launches()[-1]
        area = seen.values[-2]
        assert seen.from_graph
        assert isinstance(area, int)
        assert any(start <= area < start + size for start, size in control.live_allocations(0).items())


@on_stub()
def test_scratch_at_an_alignment_that_allocations_do_not_have(monkeypatch: pytest.MonkeyPatch) -> None:
    found = cubin_cache.find_cubin
    monkeypatch.setattr(cubin_cache, "find_cubin", lambda spec, arch: found(spec, arch)._replace(global_scratch_align=1024))
    with pytest.raises(LaunchError, match="by_scratch: wants scratch memory at multiples of 1024; allocations lie at 256"):
        _scratch(empty((128, 64), F32, GPU), empty((128, 64), F32, GPU))


# shared memory
@on_stub()
def test_shared_memory_beyond_48_kib_is_asked_for_once() -> None:
    x, y = empty((128, 128), F32, GPU), empty((128, 128), F32, GPU)
    seen = []
    for _ in range(3):
        with control.counted() as calls:
            launch(product, (1,), x, x, y, BLOCK=128)
        seen.append(calls.get("cuFuncSetAttribute", 0))
    assert seen == [1, 0, 0]
    assert 48 * 1024 < control.launches()[-1].shared <= 227 * 1024
    with control.counted() as calls:
        launch(product, (1,), x, x, y, BLOCK=32)
    assert "cuFuncSetAttribute" not in calls


@on_stub()
def test_more_shared_memory_than_the_gpu_has_is_refused_by_name_need_and_limit() -> None:
    big = empty((256, 256), F32, GPU)
    with pytest.raises(
        LaunchError, match=r"product: needs 524288 bytes of shared memory, a block on cuda:0 may have 232448; use smaller tiles"
    ):
        launch(product, (1,), big, big, big, BLOCK=256, num_warps=8)
    assert control.calls("cuModuleLoadData") == 0


# one GPU per launch
def _mixed() -> None:
    x, y, far = on_gpu(), on_gpu(), on_gpu(at=OTHER)
    said = r"launch {}: {} is on cuda:0 and {} on cuda:1; a kernel runs on one GPU"
    with pytest.raises(DeviceError, match=said.format("doubled", "x", "y")):
        launch(doubled, (2,), x, far, 64, BLOCK=32)
    with pytest.raises(DeviceError, match=said.format("of_pair", r"pair\[0\]", r"pair\[1\]")):
        launch(of_pair, (1,), (x, far), y, BLOCK=64)
    with pytest.raises(DeviceError, match=said.format("of_tile", "x", "y")):
        launch(of_tile, (1,), TensorDescriptor(x.reshape((4, 16)), (4, 16)), far, BLOCK=16)
    launch(doubled, (2,), far, on_gpu(at=OTHER), 64, BLOCK=32)


def test_a_pointer_of_another_gpu_is_refused_by_name_on_the_emulated_device() -> None:
    _mixed()


@on_stub(STUB_DEVICES=2)
def test_a_pointer_of_another_gpu_is_refused_by_name() -> None:
    _mixed()
    (seen,) = control.launches()  # the one that was right
    assert seen.device == 1


@on_stub(STUB_DEVICES=2)
def test_devices_are_compared_by_what_they_are() -> None:
    x, y = on_gpu(at=OTHER), on_gpu(at=OTHER)
    y.storage.device = device("cuda", 1)
    assert y.storage.device is not x.storage.device
    launch(doubled, (2,), x, y, 64, BLOCK=32)
    assert control.launches()[-1].device == 1
