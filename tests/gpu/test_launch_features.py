"""Tensor maps, scratch memory, clusters, cooperative and dependent launches on the GPU: the numbers of tests/cuda, and what only a GPU can show."""

from __future__ import annotations

import numpy as np
import pytest

import tritensor as tt
from tests.cuda.compiler import test_launch_features as features
from tests.cuda.compiler import test_tensor_descriptor as descriptors
from tests.cuda.compiler.test_launch_features import by_scratch, first_half, second_half, turned
from tests.cuda.compiler.tiles import copied, product, sample
from tests.gpu.scale import real, scaled
from tritensor.cuda.compiler.tensor_descriptor import TensorDescriptor
from tritensor.cuda.launch import launch
from tritensor.ground.device import device
from tritensor.ground.errors import LaunchError
from tritensor.ops.array import CudaArray, empty, from_host, to_host

pytestmark = pytest.mark.gpu
GPU = device("cuda", 0)
F32, F16, I32 = np.dtype(np.float32), np.dtype(np.float16), np.dtype(np.int32)


# Numbers that tests/cuda wants of the emulated device.
test_a_cluster_of_three_is_refused_everywhere = features.test_a_cluster_of_three_is_refused_everywhere
test_maps_that_programs_make_for_themselves = features.test_maps_that_programs_make_for_themselves
test_a_dimension_of_one_may_have_any_stride = descriptors.test_a_dimension_of_one_may_have_any_stride
test_a_matrix_product_of_tiles = descriptors.test_a_matrix_product_of_tiles
test_a_replayed_corner_describes_the_arrays_it_is_given = descriptors.test_a_replayed_corner_describes_the_arrays_it_is_given
test_descriptors_beside_plain_arguments_and_in_tuples = descriptors.test_descriptors_beside_plain_arguments_and_in_tuples
test_one_dimension_and_three = descriptors.test_one_dimension_and_three
test_tiles_are_copied_and_cut_at_the_edges = descriptors.test_tiles_are_copied_and_cut_at_the_edges
test_views_are_described_by_their_strides = descriptors.test_views_are_described_by_their_strides
test_what_lies_beyond_the_array_is_zero_or_nan = descriptors.test_what_lies_beyond_the_array_is_zero_or_nan


def hopper() -> bool:
    return tt.cuda.get_device_capability() >= (9, 0)


def on_gpu(x: np.ndarray) -> CudaArray:
    found = from_host(x, GPU)
    assert isinstance(found, CudaArray)
    return found


def test_small_and_large_arrays_are_described_alike() -> None:
    """Below 128 KiB a bit of the map is cleared for old drivers: both sides of that size, whole and cut."""
    for rows in scaled((31, 1023, 1024, 1025, 5000), (31,)):
        host = sample(rows, 64, dtype=F16)
        assert np.array_equal(to_host(copied(on_gpu(host))), host)


def test_a_large_product_of_tiles() -> None:
    size = scaled(1024, 128)
    draw = np.random.default_rng(5)
    a, b = (draw.standard_normal((size, size)).astype(F16) for _ in range(2))
    c = empty((size, size), F16, GPU)
    args = TensorDescriptor(on_gpu(a), (128, 64)), TensorDescriptor(on_gpu(b), (64, 128)), TensorDescriptor(c, (128, 128))
    launch(product, (size // 128, size // 128), *args, size, M=128, N=128, BLOCK=64, num_warps=8)
    want = a.astype(np.float32) @ b.astype(np.float32)
    np.testing.assert_allclose(to_host(c).astype(np.float32), want, rtol=2e-3, atol=2e-3 * np.sqrt(size))


def test_a_grid_that_meets() -> None:
    programs = tt.cuda.get_device_properties().multi_processor_count if real() else 1
    host = np.arange(programs * 32, dtype=np.float32)
    for _ in range(scaled(20, 2)):
        x, y, met = on_gpu(host), empty((programs * 32,), F32, GPU), on_gpu(np.zeros(1, I32))
        launch(turned, (programs,), x, y, met, BLOCK=32, launch_cooperative_grid=True)
        assert np.array_equal(to_host(x), 2 * host[::-1])


def test_a_grid_too_large_to_meet() -> None:
    x = on_gpu(np.zeros(64, np.float32))
    with pytest.raises(LaunchError, match=r"at most \d+ programs at once" if real() else "one program after another"):
        launch(turned, (10**6,), x, x, on_gpu(np.zeros(1, I32)), BLOCK=32, launch_cooperative_grid=True)
    tt.cuda.synchronize()


def test_dependent_kernels_wait() -> None:
    """A chain of pairs, so that a second kernel that did not wait would read what is not there yet."""
    if not hopper():
        with pytest.raises(LaunchError, match="launch_pdl needs compute capability 9"):
            launch(second_half, (1,), on_gpu(np.zeros(32, F32)), on_gpu(np.zeros(32, F32)), 32, BLOCK=32, launch_pdl=True)
        return
    count = scaled(1 << 20, 1 << 8)
    x, y = on_gpu(np.ones(count, F32)), empty((count,), F32, GPU)
    rounds, value = scaled(16, 3), 1.0
    for _ in range(rounds):
        launch(first_half, (count // 256,), x, y, count, BLOCK=256)
        launch(second_half, (count // 256,), y, x, count, BLOCK=256, launch_pdl=True)
        value = 2 * value + 1
    assert np.all(to_host(x) == value)


def test_scratch_is_nobody_elses() -> None:
    """Copies in flight at once, each with a scratch area that the next one may get when this one has ended."""
    host = np.random.default_rng(1).standard_normal((scaled(4096, 64), 64)).astype(np.float32)
    arrays = [on_gpu(host)] + [empty(host.shape, F32, GPU) for _ in range(scaled(32, 2))]
    for x, y in zip(arrays, arrays[1:], strict=False):
        launch(by_scratch, (len(host) // 32,), x, y, len(host), 64, BLOCK=32, ROW=64)
    assert np.array_equal(to_host(arrays[-1]), host)


def test_clusters() -> None:
    x, y = on_gpu(np.arange(4096, dtype=np.float32)), empty((4096,), F32, GPU)
    for blocks in (2, 4, 8):
        if hopper():
            launch(first_half, (32,), x, y, 4096, BLOCK=128, num_ctas=blocks)
            assert np.array_equal(to_host(y), 2 * np.arange(4096))
        else:
            with pytest.raises(LaunchError, match="need compute capability 9"):
                launch(first_half, (32,), x, y, 4096, BLOCK=128, num_ctas=blocks)
