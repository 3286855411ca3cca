"""Clipping and unscaling take all gradients of a type on a GPU in a few launches, and give what one by one gives."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import tritensor as tt
from tests.kernels.optimizers.launched import note_launches
from tritensor import nn
from tritensor.kernels.optimizers import multi_tensor
from tritensor.nn.utils import clip_grad_norm_, get_total_norm, gradients
from tritensor.nn.utils.gradients import norms, scale_

RNG = np.random.default_rng(3)
SHAPES = [(3, 5), (), (0,), (1030,), (multi_tensor.CHUNK,), (multi_tensor.CHUNK + 5,), (2, 0), *[(2,)] * 20, (0,)]


def some(on: str, dtype: Any = tt.float32, shapes: Any = SHAPES) -> list[tt.Tensor]:
    rng = np.random.default_rng(5)
    return [tt.tensor(rng.standard_normal(s), dtype=dtype, device=on) for s in shapes]


@pytest.fixture
def launches(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the kernels that are launched."""
    return note_launches(monkeypatch)


@pytest.mark.parametrize("dtype", [tt.float32, tt.float64, tt.float16, tt.bfloat16])
@pytest.mark.parametrize("order", [1.0, 2.0, math.inf])
def test_the_norm_of_many(order: float, dtype: Any, launches: list[str]) -> None:
    got = get_total_norm(some("cuda", dtype, SHAPES), order)
    assert launches == ["_note", "_norm_parts", "_norm"]
    values = np.concatenate([x.double().numpy().reshape(-1) for x in some("cpu", dtype, SHAPES)])
    want = tt.tensor(np.linalg.norm(values, order), dtype=dtype)
    assert got.dtype is dtype
    np.testing.assert_allclose(got.cpu().double().numpy(), want.double().numpy(), rtol=1e-12 if dtype is tt.float64 else 1e-6)


def test_an_order_without_a_kernel_goes_one_by_one(launches: list[str]) -> None:
    assert get_total_norm(some("cuda"), 3.0).item() == pytest.approx(get_total_norm(some("cpu"), 3.0).item())
    assert not launches


@pytest.mark.parametrize("order", [1.0, 2.0, math.inf])
def test_types_devices_and_layouts_beside_one_another(order: float, launches: list[str]) -> None:
    strided = tt.tensor(RNG.standard_normal((4, 6)), dtype=tt.float32, device="cuda").t()
    listed = [*some("cuda", shapes=SHAPES), *some("cuda", tt.bfloat16, SHAPES), strided, *some("cpu", tt.float64, SHAPES)]
    values = np.concatenate([x.cpu().double().numpy().reshape(-1) for x in listed])
    assert get_total_norm(listed, order).item() == pytest.approx(float(np.linalg.norm(values, order)), rel=1e-6)
    assert launches.count("_norm_parts") == 2


@pytest.mark.parametrize("bad", [math.nan, math.inf])
@pytest.mark.parametrize("where", [0, 3, 5])
def test_what_is_not_finite_is_found(where: int, bad: float) -> None:
    listed = some("cuda")
    listed[where].view(-1)[-1] = bad
    for order in multi_tensor.ORDERS:
        got = get_total_norm([x for x in listed if x.numel()], order).item()
        assert math.isnan(got) if math.isnan(bad) else got == bad
    found = tt.zeros((), device="cuda")
    assert scale_(listed, tt.tensor(0.5, device="cuda"), found) == []
    assert found.item() == 1.0
    found = tt.zeros((), device="cuda")
    scale_(some("cuda"), tt.tensor(0.5, device="cuda"), found)
    assert found.item() == 0.0


@pytest.mark.parametrize("dtype", [tt.float32, tt.float64, tt.float16, tt.bfloat16])
def test_all_are_scaled(dtype: Any, launches: list[str]) -> None:
    listed = some("cuda", dtype)
    versions = [x._version for x in listed]
    assert scale_(listed, tt.tensor(0.3, device="cuda")) == []
    assert launches == ["_note", "_scale"]
    for x, y, version in zip(listed, some("cpu", dtype), versions, strict=True):
        wide = y.double().numpy() if dtype is tt.float64 else y.float().numpy()
        np.testing.assert_array_equal(x.cpu().double().numpy(), tt.tensor(wide * np.float32(0.3), dtype=dtype).double().numpy())
        assert x._version > version


def test_arrays_at_addresses_that_do_not_divide_by_16() -> None:
    base = tt.tensor(RNG.standard_normal(5000), dtype=tt.float32, device="cuda")
    before = base.cpu().numpy().copy()
    listed = [base[1:1500], base[1500:1501], base[1503:]]
    assert get_total_norm(listed).item() == pytest.approx(float(np.linalg.norm(np.delete(before, [0, 1501, 1502]))), rel=1e-6)
    scale_(listed, tt.tensor(2.0, device="cuda"))
    want = before * 2
    want[[0, 1501, 1502]] = before[[0, 1501, 1502]]
    np.testing.assert_array_equal(base.cpu().numpy(), want)


def test_more_arrays_than_a_launch_takes_addresses(monkeypatch: pytest.MonkeyPatch, launches: list[str]) -> None:
    monkeypatch.setattr(multi_tensor, "ROOMS", (2, 4))
    listed = some("cuda")
    (norm,), rest = norms(listed, 2.0)
    assert rest == []
    assert launches.count("_note") == math.ceil(len(listed) / 4)
    values = np.concatenate([x.cpu().numpy().reshape(-1) for x in listed])
    assert norm.item() == pytest.approx(float(np.linalg.norm(values)), rel=1e-6)


def test_clipping_of_a_model_is_a_handful_of_launches(launches: list[str]) -> None:
    models = []
    for on in ("cpu", "cuda"):
        tt.manual_seed(0)
        model = nn.Sequential(nn.Linear(4, 8), nn.LayerNorm(8), nn.Linear(8, 3)).to(on)
        for k, p in enumerate(model.parameters()):
            p.grad = tt.full_like(p, k + 1.0)
        models.append((model, clip_grad_norm_(model.parameters(), 0.5)))
    assert launches == ["_note", "_norm_parts", "_norm", "_note", "_scale"]
    (cpu, one), (gpu, two) = models
    assert one.item() == pytest.approx(two.item())
    for p, q in zip(cpu.parameters(), gpu.parameters(), strict=True):
        np.testing.assert_allclose(q.grad.cpu().numpy(), p.grad.numpy(), rtol=1e-6)


def test_strided_and_remembered_gradients_are_left_to_the_caller() -> None:
    strided = tt.ones(4, 6, device="cuda").t()
    tracked = tt.ones(3, device="cuda", requires_grad=True) * 2
    whole = tt.ones(2, device="cpu")
    left = scale_([strided, tracked, whole], tt.tensor(2.0, device="cuda"))
    assert [id(x) for x in left] == [id(x) for x in (strided, tracked, whole)]
    assert strided.cpu().tolist() == [[1.0] * 4] * 6


# -- on the CPU
def test_small_arrays_of_the_cpu_are_one_norm_for_each_type() -> None:
    large = tt.tensor(RNG.standard_normal(gradients._FEW + 1), dtype=tt.float32)
    strided = tt.tensor(RNG.standard_normal((4, 6)), dtype=tt.float32).t()
    listed = [
        *some("cpu", shapes=SHAPES),
        *some("cpu", tt.float64, SHAPES),
        *some("cpu", tt.bfloat16, SHAPES),
        large,
        strided,
        tt.zeros(0),
        tt.tensor(3.0),
    ]
    for order in (2.0, 1.0, math.inf):
        values = np.concatenate([x.double().numpy().reshape(-1) for x in listed])
        assert get_total_norm([x for x in listed if x.numel()], order).item() == pytest.approx(
            float(np.linalg.norm(values, order)), rel=1e-6
        )
    parts, left = norms(listed, 2.0)
    assert [(x.dtype, tuple(x.shape)) for x in parts] == [(tt.float32, ()), (tt.float64, ())]
    assert [x is large or x.dtype == tt.bfloat16 or not x.numel() for x in left] == [True] * len(left)
    assert math.isinf(get_total_norm([tt.full((3,), 3e38), tt.ones(2)]).item())


def test_arrays_of_the_cpu_are_scaled_in_place_and_their_writes_seen() -> None:
    x = tt.ones(3, requires_grad=True)
    g = tt.tensor([1.0, 2.0, 3.0])
    product = (x * g).sum()
    version = g._version
    half, fixed = tt.ones(2, dtype=tt.float16), tt.from_numpy(np.broadcast_to(np.float32(1), (3,)))
    assert [t is half or t is fixed for t in scale_([g, half, fixed], tt.tensor(0.5))] == [True, True]
    assert g.tolist() == [0.5, 1.0, 1.5]
    assert g._version == version + 1
    with pytest.raises(tt.GradError, match="mul_"):
        product.backward()
    y = x * 2
    assert scale_([y], tt.tensor(0.5)) == [y]  # a graph has a part in it
    with tt.no_grad():
        assert scale_([y], tt.tensor(0.5)) == []
    assert y.tolist() == [1.0] * 3
