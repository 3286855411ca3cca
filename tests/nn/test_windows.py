"""Layers over windows: what they compute in closed form, padding modes, sizes of transposed convolutions, the way back from pools."""

import numpy as np
import pytest

import tritensor as tt
import tritensor.nn.functional as F
from tritensor import nn

rng = np.random.default_rng(5)
SIZES = {1: (9,), 2: (7, 6), 3: (5, 4, 6)}


def image(axes, channels=4):
    return tt.tensor(rng.standard_normal((2, channels, *SIZES[axes])))


@pytest.mark.parametrize("axes", [1, 2, 3])
@pytest.mark.parametrize("mode", ["reflect", "replicate", "circular"])
def test_padding_modes_pad_and_then_convolve(axes, mode):
    layer = getattr(nn, f"Conv{axes}d")(4, 6, 3, padding="same", dilation=2, groups=2, padding_mode=mode, dtype=tt.float64)
    x = image(axes)
    padded = F.pad(x, (2, 2) * axes, mode=mode)
    wanted = getattr(F, f"conv{axes}d")(padded, layer.weight, layer.bias, dilation=2, groups=2)
    assert layer(x).shape == (2, 6, *SIZES[axes])
    np.testing.assert_array_equal(layer(x).detach().numpy(), wanted.detach().numpy())


@pytest.mark.parametrize("axes", [1, 2, 3])
def test_a_transposed_convolution_is_the_transpose(axes):
    """<conv(x), g> = <x, conv_transpose(g)>, for every size that the same result may come from."""
    down = getattr(nn, f"Conv{axes}d")(4, 6, 3, stride=2, padding=1, bias=False, dtype=tt.float64)
    up = getattr(nn, f"ConvTranspose{axes}d")(6, 4, 3, stride=2, padding=1, dtype=tt.float64)
    up.weight.data = down.weight.data
    x = image(axes)
    y = down(x)
    g = tt.tensor(rng.standard_normal(tuple(y.shape)))
    back = up(g, output_size=x.shape)
    assert back.shape == x.shape
    plain = back - up.bias.reshape(-1, *(1,) * axes)
    assert abs((plain * x).sum().item() - (y * g).sum().item()) < 1e-9
    with pytest.raises(ValueError, match="valid sizes range from"):
        up(g, output_size=[99] * axes)


@pytest.mark.parametrize("axes", [1, 2, 3])
def test_lazy_convolutions_learn_their_channels(axes):
    for name in (f"Conv{axes}d", f"ConvTranspose{axes}d"):
        layer = getattr(nn, "Lazy" + name)(6, 3, groups=2, dtype=tt.float64)
        assert layer.has_uninitialized_params()
        layer(image(axes))
        assert type(layer) is getattr(nn, name)
        assert layer.in_channels == 4
        assert layer.weight.shape == ((4, 3) if "Transpose" in name else (6, 2)) + (3,) * axes
        assert layer.bias.shape == (6,)
        with pytest.raises(ValueError, match="groups 3 must divide the input's 4 channels"):
            getattr(nn, "Lazy" + name)(6, 3, groups=3)(image(axes))


@pytest.mark.parametrize("axes", [1, 2, 3])
def test_unpooling_puts_maxima_back(axes):
    x = image(axes).requires_grad_()
    y, indices = getattr(nn, f"MaxPool{axes}d")(2, return_indices=True)(x)
    back = getattr(nn, f"MaxUnpool{axes}d")(2)(y, indices, output_size=x.shape)
    kept = back != 0
    assert int(kept.sum().item()) == y.numel()
    np.testing.assert_array_equal(back[kept].detach().numpy(), x[kept].detach().numpy())
    back.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), kept.numpy().astype(float))


@pytest.mark.parametrize("axes", [1, 2, 3])
def test_pools_of_whole_images(axes):
    x, size = image(axes).abs(), SIZES[axes]
    lead = tuple(range(2, axes + 2))
    mean = x.mean(lead, keepdim=True).numpy()
    for layer, wanted in (
        (getattr(nn, f"AvgPool{axes}d")(size), mean),
        (getattr(nn, f"AdaptiveAvgPool{axes}d")(1), mean),
        (getattr(nn, f"MaxPool{axes}d")(size), x.amax(lead, keepdim=True).numpy()),
        (getattr(nn, f"AdaptiveMaxPool{axes}d")(1), x.amax(lead, keepdim=True).numpy()),
        (getattr(nn, f"LPPool{axes}d")(3, size if axes > 1 else size[0]), ((x**3).sum(lead, keepdim=True) ** (1 / 3)).numpy()),
    ):
        np.testing.assert_allclose(layer(x).numpy(), wanted, rtol=1e-12)


@pytest.mark.parametrize("axes", [2, 3])
def test_fractional_windows_cover_the_ends(axes):
    x = image(axes)
    pool = getattr(nn, f"FractionalMaxPool{axes}d")(2, output_ratio=0.6, return_indices=True)
    y, indices = pool(x)
    assert y.shape == (2, 4, *[int(n * 0.6) for n in SIZES[axes]])
    np.testing.assert_array_equal(x.flatten(2).gather(2, indices.flatten(2)).numpy(), y.flatten(2).numpy())
    tt.manual_seed(3)
    first = pool(x)[0]
    tt.manual_seed(3)
    assert first.tolist() == pool(x)[0].tolist()
    with pytest.raises(ValueError, match="only one of output_size and output_ratio"):
        getattr(nn, f"FractionalMaxPool{axes}d")(2, 3, 0.5)


def test_integers_convolve_and_average():
    x = tt.arange(2 * 5 * 6).reshape(1, 2, 5, 6)
    w = tt.arange(3 * 2 * 2 * 3).reshape(3, 2, 2, 3) - 9
    for name, settings in (("conv2d", {"stride": 2, "padding": 1}), ("conv_transpose2d", {"stride": 2, "output_padding": 1})):
        weight = w.transpose(0, 1) if "transpose" in name else w
        wanted = getattr(F, name)(x.double(), weight.double(), **settings)
        assert getattr(F, name)(x, weight, **settings).tolist() == wanted.long().tolist()
    assert F.avg_pool2d(x, 2, 1, 1).tolist() == F.avg_pool2d(x.double(), 2, 1, 1).long().tolist()
    assert F.avg_pool1d(x[0].flatten(1), 3, ceil_mode=True).dtype == tt.int64


def test_complex_convolutions_are_four_real_ones():
    x, w = (tt.tensor(rng.standard_normal(s) + 1j * rng.standard_normal(s)) for s in ((1, 2, 5, 4), (3, 2, 2, 2)))
    x.requires_grad_()
    y = F.conv2d(x, w, padding=1)
    a, b, c, d = (
        tt.tensor(np.ascontiguousarray(v)) for v in (x.detach().numpy().real, x.detach().numpy().imag, w.numpy().real, w.numpy().imag)
    )
    real = F.conv2d(a, c, padding=1) - F.conv2d(b, d, padding=1)
    np.testing.assert_allclose(y.detach().numpy().real, real.numpy(), rtol=1e-12)
    assert tt.autograd.gradcheck(lambda t: F.conv_transpose2d(t, w.transpose(0, 1), stride=2), (x,))


@pytest.mark.parametrize("axes", [1, 3])
def test_second_derivatives(axes):
    x = image(axes, 2)[:1, ..., :3].contiguous().requires_grad_()
    w = tt.tensor(rng.standard_normal((2, 2, *(2,) * axes))).requires_grad_()
    assert tt.autograd.gradgradcheck(lambda x, w: getattr(F, f"conv_transpose{axes}d")(x, w, stride=2, padding=1), (x, w))
    assert tt.autograd.gradgradcheck(lambda x: getattr(F, f"lp_pool{axes}d")(x.abs() + 0.5, 3, 2, 1), (x,))


# sizes that numpy computed, or a tensor holds, are the integers they are
@pytest.mark.parametrize("k", [np.int64(2), np.int32(2), tt.tensor(2), np.array(2)], ids=["int64", "int32", "tensor", "array"])
@pytest.mark.parametrize(
    "f",
    [
        lambda x, k: F.pad(x, (k, 1, 0, k)),
        lambda x, k: F.avg_pool2d(x, k, (k, k)),
        lambda x, k: F.max_pool2d(x, k, stride=k, padding=k - 1),
        lambda x, k: F.adaptive_avg_pool2d(x, (k, None)),
        lambda x, k: F.interpolate(x, size=(k, 3)),
        lambda x, k: F.conv2d(x, tt.ones(2, 2, 3, 3), padding=k, stride=(k, 1)),
        lambda x, k: F.pixel_shuffle(x.reshape(1, 4, 2, 4), k),
        lambda x, k: x.sum(k) + x.softmax(k).amax((k,)),
        lambda x, k: x.topk(k, dim=k)[0],
        lambda x, k: x.roll(k, k).flip(k).transpose(1, k).unsqueeze(k),
        lambda x, k: nn.Conv2d(k, 3, k, padding=k).weight * 0,
        lambda x, k: nn.BatchNorm2d(k)(x),
    ],
)
def test_sizes_that_are_integers_of_numpy_or_tensors(f, k):
    x = tt.arange(64.0).reshape(2, 2, 4, 4)[:1]
    np.testing.assert_array_equal(f(x, k).detach().numpy(), f(x, 2).detach().numpy())


def test_a_layer_norm_over_a_size_of_numpys():
    assert nn.LayerNorm(np.int64(3)).normalized_shape == (3,)
    with pytest.raises(TypeError, match=r"pad is \(1.5, 1\)|pad is \[1.5, 1\]"):
        F.pad(tt.ones(2, 2), (1.5, 1))
