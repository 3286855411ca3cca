"""Memory formats: what contiguous, clone, to, the likes, empty and Module.to make of `memory_format`."""

from __future__ import annotations

import pickle

import pytest

import tritensor as tt
import tritensor.nn.functional as F

DEVICES = ("cpu", "cuda")
FIRST, LAST = (60, 20, 5, 1), (60, 1, 15, 3)  # strides of (2, 3, 4, 5)


@pytest.fixture(params=DEVICES)
def x(request: pytest.FixtureRequest) -> tt.Tensor:
    return tt.arange(120.0).reshape(2, 3, 4, 5).to(request.param)


def test_contiguous_orders_channels_last(x: tt.Tensor) -> None:
    y = x.contiguous(memory_format=tt.channels_last)
    assert y.stride() == LAST
    assert tt.equal(x, y)
    assert y.contiguous(memory_format=tt.channels_last) is y
    assert x.contiguous() is x
    assert y.contiguous().stride() == FIRST


def test_is_contiguous_asks_for_a_format(x: tt.Tensor) -> None:
    y = x.contiguous(memory_format=tt.channels_last)
    assert x.is_contiguous()
    assert not x.is_contiguous(memory_format=tt.channels_last)
    assert y.is_contiguous(memory_format=tt.channels_last)
    assert not y.is_contiguous()
    assert not tt.rand(3).is_contiguous(memory_format=tt.channels_last)
    one = x[:, :1]
    assert one.contiguous().is_contiguous(memory_format=tt.channels_last)  # one channel lies both ways
    assert not y[:, :, ::2].is_contiguous(memory_format=tt.channels_last)


def test_clone_and_to_keep_the_layout_unless_told(x: tt.Tensor) -> None:
    y = x.contiguous(memory_format=tt.channels_last)
    assert y.clone().stride() == y.to(tt.float64).stride() == y.double().stride() == LAST
    assert y.clone(memory_format=tt.contiguous_format).stride() == FIRST
    assert x.clone(memory_format=tt.channels_last).stride() == LAST
    assert x.to(memory_format=tt.channels_last).stride() == LAST
    assert y.to(memory_format=tt.channels_last) is y
    assert y.to(memory_format=tt.preserve_format) is y
    assert y.to(tt.float64, memory_format=tt.contiguous_format).stride() == FIRST
    assert tt.zeros(8, 6, device=x.device).t()[::2, ::2].clone().stride() == (1, 3)


def test_the_gradient_passes_a_change_of_format(x: tt.Tensor) -> None:
    x.requires_grad_()
    (x.contiguous(memory_format=tt.channels_last) * 2).sum().backward()
    assert tt.equal(x.grad, tt.full_like(x, 2.0))


def test_likes(x: tt.Tensor) -> None:
    y = x.contiguous(memory_format=tt.channels_last)
    for like in (tt.empty_like, tt.zeros_like, tt.ones_like, tt.rand_like, tt.randn_like, lambda t, **k: tt.full_like(t, 3, **k)):
        assert like(y).stride() == LAST
        assert like(y, memory_format=tt.contiguous_format).stride() == FIRST
        assert like(x, memory_format=tt.channels_last).stride() == LAST
    assert tt.randint_like(y, 5).stride() == LAST
    assert tt.equal(tt.full_like(y, 3), tt.full((2, 3, 4, 5), 3.0, device=x.device))
    assert tt.empty(2, 3, 4, 5, memory_format=tt.channels_last, device=x.device).stride() == LAST


def test_a_copy_to_another_device_keeps_the_layout() -> None:
    x = tt.arange(24.0).reshape(4, 2, 3).permute(1, 2, 0)
    there = x.to("cuda")
    assert there.stride() == there.cpu().stride() == (3, 1, 6)
    assert tt.equal(there.cpu(), x)
    assert tt.equal(there[:, ::2].cpu(), x[:, ::2])
    assert tt.equal(there.to("cpu", non_blocking=True), x)


def test_module_members_of_four_dimensions_change() -> None:
    net = tt.nn.Sequential(tt.nn.Conv2d(3, 4, 2), tt.nn.Flatten(), tt.nn.Linear(4, 2))
    assert net.to(memory_format=tt.channels_last) is net
    assert net[0].weight.stride() == (12, 1, 6, 3)
    assert net[2].weight.is_contiguous()


def test_refusals(x: tt.Tensor) -> None:
    for call in (tt.rand(3).contiguous, tt.rand(3).clone, tt.rand(3).to):
        with pytest.raises(tt.ShapeError, match="channels_last"):
            call(memory_format=tt.channels_last)
    with pytest.raises(tt.ShapeError, match="orders 4 dimensions"):
        tt.empty_like(tt.rand(3), memory_format=tt.channels_last)
    with pytest.raises(ValueError, match="preserve_format"):
        x.contiguous(memory_format=tt.preserve_format)
    with pytest.raises(TypeError, match="memory_format"):
        x.contiguous(memory_format=3)


def test_formats_have_names() -> None:
    assert repr(tt.channels_last) == "tritensor.channels_last"
    assert isinstance(tt.channels_last_3d, tt.memory_format)
    assert pickle.loads(pickle.dumps(tt.channels_last)) is tt.channels_last


@pytest.mark.parametrize("on", ["cpu", "cuda"])
def test_integers_that_are_whole_already_come_back_laid_out_as_they_are(on: str) -> None:
    x = tt.arange(12, device=on).reshape(3, 4).t()
    for f in (tt.ceil, tt.floor, tt.trunc, tt.fix, tt.round, tt.nan_to_num):
        y = f(x)
        assert y.stride() == (1, 4)
        assert y.tolist() == x.tolist()
        y.zero_()
    assert x[1, 2].item() == 9


def test_stacked_images_keep_their_channels_last(x: tt.Tensor) -> None:
    y = x.contiguous(memory_format=tt.channels_last)
    lying = {0: (120, 60, 1, 15, 3), 1: (120, 3, 1, 30, 6), 2: (120, 1, 60, 15, 3), 3: (120, 1, 30, 15, 3), 4: (120, 40, 10, 2, 1)}
    for dim, strides in lying.items():
        z = tt.stack([y, -y], dim)
        assert z.stride() == strides
        assert tt.equal(z.select(dim, 0), x)
        assert tt.equal(z.select(dim, 1), -x)
    assert tt.stack([x, y]).stride() == (120, *FIRST)
    assert tt.stack([x[0, 0].t(), x[0, 0].t()]).stride() == (20, 4, 1)
    y.requires_grad_()
    (tt.stack([y, y * 2], 2) * 3).sum().backward()
    assert tt.equal(y.grad, tt.full_like(x, 9.0))


@pytest.mark.parametrize("kind", [tt.float32, tt.float16])
def test_large_images_keep_their_channels_last(kind: tt.dtype) -> None:
    """Large ones are computed by machine code, which goes through memory in order."""
    plain = (tt.arange(2.0 * 4 * 40 * 50).reshape(2, 4, 40, 50) % 7 - 3).to(kind)
    x = plain.contiguous(memory_format=tt.channels_last).requires_grad_()
    turned = plain.permute(2, 0, 3, 1).requires_grad_()
    gaps = tt.cat([plain, plain], 1).contiguous(memory_format=tt.channels_last)[:, :4]
    ones = tt.ones_like(x)
    for f in (
        tt.relu, tt.exp, tt.sigmoid, F.silu, F.elu, F.softplus, lambda x: x % 2, lambda x: x // 2, lambda x: x.fmod(1.5), lambda x: x.div(2, rounding_mode="trunc"),
        lambda x: x.remainder(x.abs() + 1), lambda x: x.clamp(-1, 1),
    ):  # fmt: skip
        y = f(x)
        assert y.stride() == (8000, 1, 200, 4)
        assert tt.equal(y, f(plain))
        assert f(turned).stride() == turned.stride()
        assert tt.equal(f(turned), f(plain).permute(2, 0, 3, 1))
        assert tt.equal(f(gaps), f(plain))
        assert f(gaps).stride() == (8000, 1, 200, 4)
        if y.requires_grad:
            (g,) = tt.autograd.grad(y, x, ones)
            w = plain.detach().requires_grad_()
            assert tt.equal(g, tt.autograd.grad(f(w), w, tt.ones_like(w))[0])
