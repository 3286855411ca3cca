"""Images beyond what every op is asked: whole types, numbers that are not finite, two axes at a time, layouts, refusals."""

from __future__ import annotations

import math

import numpy as np
import pytest

import tritensor as tt
import tritensor.nn.functional as F
from tritensor import ShapeError
from tritensor.kernels.images.grid_sampling import cpu as sampling
from tritensor.ops.table import ops

DEVICES = ["cpu", "cuda"]


@pytest.mark.parametrize("on", DEVICES)
@pytest.mark.parametrize("dtype", ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16"])
def test_padding_takes_every_type(dtype: str, on: str) -> None:
    x = tt.tensor([[[[0, 1, 2], [3, 0, 5]]]], device=on).to(getattr(tt, dtype))
    for mode, rows in {"reflect": [1, 0, 1], "replicate": [0, 0, 1], "circular": [1, 0, 1]}.items():
        want = np.asarray(x.cpu().to(tt.float32).numpy())[0, 0][rows][:, [1, 0, 1, 2] if mode != "replicate" else [0, 0, 1, 2]]
        if mode == "circular":
            want = np.asarray(x.cpu().to(tt.float32).numpy())[0, 0][rows][:, [2, 0, 1, 2]]
        y = F.pad(x, (1, 0, 1, 0), mode)
        assert y.dtype is x.dtype
        assert y.cpu().to(tt.float32).numpy()[0, 0].tolist() == want.tolist()
    assert F.pad(x, (0, 1), value=1).dtype is x.dtype


@pytest.mark.parametrize("on", DEVICES)
def test_nearest_of_bytes_copies_them(on: str) -> None:
    x = tt.tensor([[[[0, 255], [7, 8]]]], dtype=tt.uint8, device=on)
    y = F.interpolate(x, scale_factor=2)
    assert y.dtype is tt.uint8
    assert y.tolist() == [[[[0, 0, 255, 255], [0, 0, 255, 255], [7, 7, 8, 8], [7, 7, 8, 8]]]]


MAPS = [
    ((7, 6), (4, 3), "linear-aa", False), ((4, 5), (6, 9), "cubic-aa", False), ((5, 4), (3, 6), "cubic", True), ((2, 3, 4), (3, 2, 5), "linear", False),
    ((5, 3), (5, 7), "linear", False), ((1, 4), (3, 1), "linear", True),
]  # fmt: skip


@pytest.mark.parametrize(("cells", "size", "mode", "align"), MAPS)
def test_maps_of_several_axes_are_the_same_on_both_devices(cells: tuple[int, ...], size: tuple[int, ...], mode: str, align: bool) -> None:
    rng = np.random.default_rng(3)
    attributes = {"mode": mode, "align_corners": align, "factors": (None,) * len(size)}
    x, g = rng.standard_normal((1, 1, *cells)), rng.standard_normal((1, 1, *size))
    there = ops.resample(tt.tensor(x, device="cuda"), size=size, **attributes).cpu().numpy()
    np.testing.assert_allclose(there, ops.resample(tt.tensor(x), size=size, **attributes).numpy(), rtol=1e-12, atol=1e-13)
    back = ops.resample_adjoint(tt.tensor(g, device="cuda"), size=cells, **attributes).cpu().numpy()
    np.testing.assert_allclose(back, ops.resample_adjoint(tt.tensor(g), size=cells, **attributes).numpy(), rtol=1e-12, atol=1e-13)
    assert math.isclose(float((there * g).sum()), float((back * x).sum()), rel_tol=1e-10)  # <A x, g> = <x, A' g>


def test_the_adjoint_holds_at_many_sizes() -> None:
    """On the CPU at 300 sizes: <A x, g> = <x, A' g>, and ones stay ones."""
    rng = np.random.default_rng(5)
    for _ in range(300):
        n, m = (int(k) for k in rng.integers(1, 70, 2))
        mode = str(rng.choice(["nearest", "nearest-exact", "linear", "cubic", "area", "linear-aa", "cubic-aa"]))
        attributes = {"mode": mode, "align_corners": bool(rng.integers(2)) and mode in ("linear", "cubic"), "factors": (None,)}
        x, g = tt.tensor(rng.standard_normal((1, 2, n))), tt.tensor(rng.standard_normal((1, 2, m)))
        y, back = ops.resample(x, size=(m,), **attributes), ops.resample_adjoint(g, size=(n,), **attributes)
        assert math.isclose((y * g).sum().item(), (back * x).sum().item(), rel_tol=1e-9, abs_tol=1e-9), (n, m, attributes)
        np.testing.assert_allclose(ops.resample(tt.ones(1, 1, n, dtype=tt.float64), size=(m,), **attributes).numpy(), 1.0, rtol=1e-12)


@pytest.mark.parametrize("mode", ["bilinear", "bicubic", "area"])
def test_an_infinity_stays_where_it_is_taken(mode: str) -> None:
    x = tt.zeros(1, 1, 40, 40)
    x[0, 0, 20, 20] = math.inf
    y = F.interpolate(x, (43, 43), mode=mode)
    bad = np.argwhere(~np.isfinite(y.numpy()[0, 0]))
    assert len(bad)
    assert np.abs(bad - 21.5).max() <= 3
    assert np.isfinite(F.interpolate(tt.full((1, 1, 9, 9), 3e38), 5, mode="area").numpy()).all()


def test_channels_last_stays_where_pytorch_keeps_it() -> None:
    x = tt.randn(2, 3, 6, 4).contiguous(memory_format=tt.channels_last)
    kept = [
        F.interpolate(x, 5), F.interpolate(x, 5, mode="bicubic"), F.pad(x, (1, 1, 1, 1), "reflect"), F.pad(x, (1, 1)), F.adaptive_avg_pool2d(x, 2),
        F.adaptive_max_pool2d(x, 2), F.pixel_unshuffle(x, 2), F.channel_shuffle(x, 3),
    ]  # fmt: skip
    assert all(y.is_contiguous(memory_format=tt.channels_last) for y in kept)
    assert F.pad(x, (1, 1, 1, 1), "circular").is_contiguous()
    assert F.grid_sample(x, tt.zeros(2, 3, 3, 2)).is_contiguous()


@pytest.mark.parametrize("on", DEVICES)
def test_the_maximum_of_a_window_is_the_first_of_equals_and_nan_is_above_all(on: str) -> None:
    x = tt.tensor([[[[1.0, 2, 2, 0], [2, 0, 0, 2], [0, 0, math.nan, 1]]]], device=on)
    y, at = F.adaptive_max_pool2d(x, (1, 2), return_indices=True)
    assert y[0, 0, 0, 0].item() == 2
    assert at.tolist() == [[[[1, 10]]]]
    assert math.isnan(y[0, 0, 0, 1].item())


@pytest.mark.parametrize("on", DEVICES)
def test_a_grid_outside_sees_zeros_the_border_or_a_mirror(on: str) -> None:
    x = tt.tensor([[[[1.0, 2.0, 3.0]]]], device=on)
    grid = tt.tensor([[[[-9.0, 0.0], [9.0, 0.0], [-1.0, 0.0]]]], device=on)
    assert F.grid_sample(x, grid).tolist() == [[[[0.0, 0.0, 0.5]]]]
    assert F.grid_sample(x, grid, padding_mode="border").tolist() == [[[[1.0, 3.0, 1.0]]]]
    assert F.grid_sample(x, grid, "nearest", "reflection").shape == (1, 1, 1, 3)


REFUSED = {
    "interpolate(1 of 2)": (lambda: F.interpolate(tt.ones(1, 1, 4, 4), (3,)), r"interpolate: size \(3,\) has 1 numbers, the input 2 axes"),
    "interpolate(neither)": (lambda: F.interpolate(tt.ones(1, 1, 4)), "interpolate: size is None, scale_factor None; give one of them"),
    "grid batch": (lambda: F.grid_sample(tt.ones(2, 1, 3, 3), tt.zeros(1, 2, 2, 2)), r"grid_sample: input \(2, 1, 3, 3\), grid .*one batch size"),
    "grid axes": (lambda: F.grid_sample(tt.ones(1, 1, 3, 3), tt.zeros(1, 2, 2, 3)), "the grid's last size must be 2"),
    "fold": (lambda: F.fold(tt.ones(1, 8, 5), (3, 3), 2), r"fold: input \(1, 8, 5\), output_size \(3, 3\).*x must be \(N, C \* 4, 4\)"),
    "unfold": (lambda: F.unfold(tt.ones(1, 1, 2, 2), 3), "unfold: size .*the windows, 0 x 0, must be at least 1 x 1"),
    "pixel_shuffle": (lambda: F.pixel_shuffle(tt.ones(1, 3, 2, 2), 2), "its 3 channels are no multiple of upscale_factor squared, 4"),
    "channel_shuffle": (lambda: F.channel_shuffle(tt.ones(1, 3, 2, 2), 2), "its 3 channels are no multiple of groups 2"),
    "adaptive": (lambda: F.adaptive_avg_pool2d(tt.ones(1, 2, 0, 2), 1), r"adaptive_avg_pool2d: input \(1, 2, 0, 2\) has a size of 0"),
    "affine_grid": (lambda: F.affine_grid(tt.ones(1, 2, 2), (1, 1, 2, 2)), r"affine_grid: theta \(1, 2, 2\), .*theta must be \(1, 2, 3\)"),
    "constant_pad_nd": (lambda: tt.constant_pad_nd(tt.ones(2), (-3, 0)), r"constant_pad_nd: \(-3, 0\) takes more off input \(2,\) than there is"),
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSED)
def test_refusals(what: str) -> None:
    call, says = REFUSED[what]
    with pytest.raises((ShapeError, ValueError), match=says):
        call()


@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
@pytest.mark.parametrize("padding", ["zeros", "reflection"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_grid_sampling_by_machine_and_by_numpy(mode: str, padding: str, dtype: type, monkeypatch: pytest.MonkeyPatch) -> None:
    """Several images at a time and one, cells beyond the image's end, infinities under weights of 0."""
    rng = np.random.default_rng(5)
    x, g = rng.standard_normal((3, 7, 4, 5)).astype(dtype), rng.standard_normal((3, 7, 13)).astype(dtype)
    grid = rng.uniform(-1.3, 1.3, (3, 13, 2)).astype(dtype)
    grid[0, :3] = [[1, 1], [-1, -1], [1, -1]]

    def answers() -> list[np.ndarray]:
        wild = x.copy()
        wild[:, :, -1, -1] = np.inf
        return [
            sampling.sample(x, grid, mode, padding, True), sampling.sample(wild, grid, mode, padding, True),
            sampling.to_image(g, grid, x.shape[2:], mode, padding, True), sampling.to_grid(g, x, grid, mode, padding, True),
        ]  # fmt: skip

    found = answers()
    monkeypatch.setattr(sampling, "POSITIONS", 26)
    found += answers()
    monkeypatch.setattr(sampling.cpu_llvm, "function", lambda *_: None)
    for mine, wanted in zip(found, answers() * 2, strict=True):
        np.testing.assert_allclose(mine, wanted, rtol=0, atol=64 * np.finfo(dtype).eps)
