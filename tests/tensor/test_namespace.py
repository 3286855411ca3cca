"""Names that PyTorch publishes beside methods: in-place functions, networks' functions as torch.<name>, generators, settings, files as tensors."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest

import tritensor as tt
import tritensor.nn.functional as F
from tritensor.tensor.public_api.publish import INPLACE_FUNCTIONS, public
from tritensor.torch_compat import recorded_names


def test_every_method_that_writes_is_a_function_where_pytorch_has_one() -> None:
    listed = {n for n in recorded_names.names_of("") if n.endswith("_") and not n.startswith("_")}
    assert listed > INPLACE_FUNCTIONS
    assert not [n for n in listed if hasattr(tt.Tensor, n) and n not in public]
    assert not [
        n for n in public if n.endswith("_") and n in recorded_names.names_of("Tensor") and n not in listed and n in INPLACE_FUNCTIONS
    ]
    assert tt.abs_.__wrapped__ is tt.Tensor.abs_.__wrapped__  # type: ignore[attr-defined]


@pytest.mark.parametrize("on", ["cpu", "cuda"])
def test_dropout_in_place_and_with_its_mask_draw_as_dropout(on: str) -> None:
    x = tt.arange(1.0, 65.0, device=on)
    tt.manual_seed(3)
    expected = tt.dropout(x, 0.25, True)
    tt.manual_seed(3)
    y, mask = tt.native_dropout(x, 0.25, True)
    tt.manual_seed(3)
    z = x.clone()
    assert tt.dropout_(z, 0.25, True) is z
    assert tt.equal(z, expected)
    assert tt.equal(mask, expected != 0)
    assert tt.allclose(y, expected, rtol=1e-6)
    assert 0 < int(mask.sum()) < 64


@pytest.mark.parametrize("on", ["cpu", "cuda"])
def test_embedding_has_the_table_first_and_the_padded_row_no_gradient(on: str) -> None:
    weight = tt.arange(6.0, device=on).reshape(3, 2).requires_grad_()
    tt.embedding(weight, tt.tensor([2, 0, 2], device=on), 0).sum().backward()
    assert weight.grad is not None
    assert weight.grad.tolist() == [[0, 0], [0, 0], [2, 2]]


def test_the_same_functions_where_the_order_is_the_same() -> None:
    assert tt.conv2d is F.conv2d
    assert tt.bilinear is F.bilinear
    assert tt.adaptive_avg_pool1d is F.adaptive_avg_pool1d


def test_a_file_as_a_tensor(tmp_path: Path) -> None:
    path = tmp_path / "numbers"
    shared = tt.from_file(str(path), shared=True, size=4, dtype=tt.int32)
    shared.copy_(tt.tensor([1, 2, 3, 4], dtype=tt.int32))
    assert np.fromfile(path, np.int32).tolist() == [1, 2, 3, 4]
    own = tt.from_file(str(path), size=3, dtype=tt.int32)
    own += 10
    assert own.tolist() == [11, 12, 13]
    assert np.fromfile(path, np.int32).tolist() == [1, 2, 3, 4]
    tt.from_file(path, shared=True, size=3, dtype=tt.float64)
    assert path.stat().st_size == 24
    with pytest.raises(ValueError, match=r"^from_file: 9 elements of float32 need 36 bytes, .* has 24; give a smaller size"):
        tt.from_file(path, size=9)
    with pytest.raises((RuntimeError, FileNotFoundError), match=r"^from_file: no file '.*gone'; give one that exists, or shared=True"):
        tt.from_file(tmp_path / "gone", size=1)
    with pytest.raises(ValueError, match=r"^from_file: device is cuda; a file is mapped into the CPU's memory"):
        tt.from_file(path, size=1, device="cuda")


def test_a_capsule_is_taken_by_another_library_and_shares_memory() -> None:
    x = tt.arange(3.0)
    other = tt.from_dlpack(tt.to_dlpack(x))
    other[0] = 7
    assert x.tolist() == [7, 1, 2]
    with pytest.raises(BufferError, match=r"export \.detach"):
        tt.to_dlpack(x.requires_grad_())


def test_the_default_generator_is_what_manual_seed_seeds() -> None:
    tt.manual_seed(11)
    assert tt.default_generator.initial_seed() == 11
    state = tt.default_generator.get_state()
    first = tt.rand(3)
    tt.default_generator.set_state(state)
    assert tt.equal(tt.rand(3), first)
    tt.default_generator.manual_seed(11)
    assert tt.equal(tt.rand(3, generator=tt.default_generator), first)


def test_autocast_is_asked_and_set() -> None:
    try:
        tt.set_autocast_enabled("cpu", True)
        assert tt.is_autocast_cpu_enabled()
        assert (tt.ones(2, 2) @ tt.ones(2, 2)).dtype is tt.bfloat16
        tt.set_autocast_dtype("cpu", tt.float16)
        assert tt.get_autocast_cpu_dtype() is tt.float16
        assert (tt.ones(2, 2) @ tt.ones(2, 2)).dtype is tt.float16
        assert tt.amp.autocast("cpu", enabled=False).fast_dtype is tt.float16
        assert tt.get_autocast_gpu_dtype() is tt.float16
        tt.set_autocast_cache_enabled(False)
        assert not tt.is_autocast_cache_enabled()
    finally:
        tt.set_autocast_cpu_enabled(False)
        tt.set_autocast_dtype("cpu", tt.bfloat16)
        tt.set_autocast_cache_enabled(True)
    assert not tt.is_autocast_enabled("cpu")
    assert (tt.ones(2, 2) @ tt.ones(2, 2)).dtype is tt.float32
    with pytest.raises(tt.DeviceError, match=r"^get_autocast_dtype: 'gpu' is not a device"):
        tt.get_autocast_dtype("gpu")


def test_settings_that_scripts_ask_for() -> None:
    tt.set_warn_always(True)
    assert tt.is_warn_always_enabled()
    tt.set_warn_always(False)
    assert not tt.is_warn_always_enabled()
    assert tt.get_device_module("cuda") is tt.cuda
    assert tt.get_device_module("cpu").__name__.endswith("cpu")
    with pytest.raises(tt.DeviceError, match=r"^get_device_module: 'tpu' is not a device"):
        tt.get_device_module("tpu")


def test_resize_warns_as_in_pytorch() -> None:
    with pytest.warns(UserWarning, match=r"^resize: the form that is not in place is deprecated"):
        assert tt.arange(6).resize(2, 3).shape == (2, 3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(tt.ShapeError, match=r"^resize_as: size \(2, 2\) has 4 elements, the tensor \(6,\) 6; use resize_"):
            tt.arange(6).resize_as(tt.zeros(2, 2))


def test_a_number_beyond_its_type_is_every_error_that_pytorch_raises_there() -> None:
    u, f = tt.zeros(2, dtype=tt.uint8), tt.zeros(2)
    for error in (OverflowError, RuntimeError, ValueError, tt.NumberRangeError):
        with pytest.raises(error, match=r"^fill_: 300 does not fit uint8 \(0 to 255\)"):
            u.fill_(300)
        with pytest.raises(error, match=r"^tensor: an integer does not fit int64; give dtype=tritensor.float64"):
            tt.tensor(2**64)
        with pytest.raises(error, match=r"^masked_fill: 1e\+40 does not fit float32 \(up to 3.40282e\+38\); give float\('inf'\)"):
            f.masked_fill(f == 0, 1e40)
        with pytest.raises(error, match=r"^arange: from 0 to .* by 1 are more numbers than memory can address"):
            tt.arange(2**70)
    assert u.tolist() == [0, 0]
    assert f.fill_(float("inf")).tolist() == [float("inf")] * 2
    with pytest.raises(tt.ShapeError, match=r"^zeros: shape \(4611686018427387904,\) has 4611686018427387904 elements, more than memory"):
        tt.zeros(2**62)


def test_out_says_the_type_to_add_up_in() -> None:
    half = tt.full((4096,), 0.1, dtype=tt.float16)
    out = tt.zeros((), dtype=tt.float64)
    assert tt.sum(half, 0, out=out) is out
    assert abs(float(out) - 4096 * float(half[0])) < 1e-9, "added in float16, and widened afterwards"
    assert tt.sum(tt.tensor([1.9, 1.9]), 0, out=tt.zeros((), dtype=tt.int32)).item() == 2
    with pytest.raises(tt.DTypeError, match=r"^sum: dtype is float64, out is float32; give one of the two, or the same in both"):
        tt.sum(half, 0, dtype=tt.float64, out=tt.zeros(()))
    with pytest.raises(tt.DTypeError, match=r"^cumsum: dtype is bool, which holds no running results"):
        tt.cumsum(half, 0, out=tt.zeros(4096, dtype=tt.bool))


def test_numbers_that_pytorch_traces_are_plain_ones() -> None:
    assert type(tt.sym_max(4, 3.0)) is float
    assert tt.sym_sum(1, 2) == 3
    with pytest.raises(TypeError, match=r"^sym_max: 'a' is of type str; give a number"):
        tt.sym_max("a", 1)
    with pytest.raises(TypeError, match=r"^sym_ite: 1, 2, 3; give a bool and two values of one type"):
        tt.sym_ite(1, 2, 3)
    with pytest.raises(ValueError, match=r"^sym_sqrt: -1 is negative; give 0 or more"):
        tt.sym_sqrt(-1)


@pytest.mark.parametrize("name", ["mps", "xpu:1", "hpu", "mtia", "privateuseone"])
def test_devices_that_are_not_here_are_names_to_compare_with(name: str) -> None:
    there = tt.device(name)
    assert (str(there), there.index) == (name, 1 if ":" in name else None)
    assert there == tt.device(name)
    assert tt.ones(2).device != there
    for use in (
        lambda: tt.ones(2, device=there),
        lambda: tt.ones(2).to(name),
        lambda: tt.nn.Linear(1, 1).to(there),
        lambda: tt.set_default_device(name),
    ):
        with pytest.raises(tt.DeviceError, match=f"'{name}' is not a device"):
            use()
    with pytest.raises(tt.DeviceError, match=f"'{name}' is not a device"), there:
        tt.ones(2)
    assert tt.ones(2).device.type == "cpu"


def test_a_cpu_with_a_number_is_a_name_of_the_one_cpu() -> None:
    numbered = tt.device("cpu:64")
    assert (str(numbered), numbered.index, numbered == tt.device("cpu")) == ("cpu:64", 64, False)
    for on in (numbered, "cpu:64"):
        assert str(tt.ones(2, device=on).device) == str(tt.ones(2).to(on).device) == "cpu"
