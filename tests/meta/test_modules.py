"""Modules on device meta: built there, moved, initialised, loaded, called, trained, and given memory."""

from __future__ import annotations

import io
import warnings
from typing import Any

import pytest

import tritensor as tt
from tests.loops import each
from tritensor import nn


def build(device: Any = None) -> nn.Module:
    return nn.Sequential(nn.Linear(3, 4, device=device), nn.ReLU(), nn.BatchNorm1d(4, device=device), nn.Linear(4, 2, device=device))


def places(module: nn.Module) -> set[str]:
    return {t.device.type for t in (*module.parameters(), *module.buffers())}


def test_moves() -> None:
    net = build("meta")
    assert places(net) == {"meta"} == places(build().to("meta")) == places(net.half())
    weight, bias = net[0].weight, net[0].bias
    with pytest.raises(
        NotImplementedError, match=r"Module.to: a member of shape \(4, 3\) is on device meta .* use to_empty\(device='cpu'\)"
    ):
        net.to("cpu")
    assert net.to_empty(device="cpu") is net
    assert places(net) == {"cpu"}
    assert net[0].weight is not weight
    assert net[0].weight.requires_grad
    assert type(net[0].weight) is nn.Parameter
    assert weight.is_meta
    assert bias.is_meta
    own = build()
    kept = own[0].weight
    own.to("meta")
    assert own[0].weight.is_meta
    assert not kept.is_meta


INITS = [
    "uniform_", "normal_", "xavier_uniform_", "xavier_normal_", "kaiming_uniform_", "kaiming_normal_", "orthogonal_", "eye_", "zeros_", "ones_",
    "trunc_normal_",
]  # fmt: skip


@each(("name",), INITS)
def test_inits_do_nothing(name: str) -> None:
    x = nn.Parameter(tt.empty(3, 4, device="meta"))
    assert getattr(nn.init, name)(x) is x
    assert x.is_meta


def test_inits_refuse_what_they_refuse_elsewhere() -> None:
    assert nn.init.dirac_(tt.empty(3, 4, 2, device="meta")).is_meta
    assert nn.init.sparse_(tt.empty(3, 4, device="meta"), 0.5).is_meta
    with pytest.raises(tt.errors.ShapeError):
        nn.init.dirac_(tt.empty(3, 4, device="meta"))
    with pytest.raises(tt.errors.ShapeError):
        nn.init.orthogonal_(tt.empty(3, device="meta"))
    assert not nn.utils.skip_init(nn.Linear, 3, 4).weight.is_meta


def test_state_dicts() -> None:
    full, net = build(), build("meta")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        net.load_state_dict(full.state_dict())
    said = [str(w.message) for w in caught]
    assert len(said) == len(full.state_dict())
    assert "which is a no-op" in said[0]
    assert "assign=True" in said[0]
    assert places(net) == {"meta"}
    net.load_state_dict(full.state_dict(), assign=True)
    assert places(net) == {"cpu"}
    assert net[0].weight.tolist() == full[0].weight.tolist()
    assert net[0].weight.requires_grad
    assert list(net(tt.ones(2, 3)).shape) == [2, 2]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        build("meta").load_state_dict(build("meta").state_dict())
    before = full[0].weight.tolist()
    with pytest.raises(RuntimeError, match=r"0.weight is on device meta and has no values to copy; load it with assign=True"):
        full.load_state_dict(build("meta").state_dict())
    assert full[0].weight.tolist() == before
    file = io.BytesIO()
    tt.save(build("meta").state_dict(), file)
    file.seek(0)
    assert {t.device.type for t in tt.load(file).values()} == {"meta"}


LAYERS: dict[str, tuple[tuple[Any, ...], list[tuple[int, ...]]]] = {
    "LSTM": ((3, 4), [(5, 2, 3)]), "GRU": ((3, 4), [(5, 2, 3)]), "RNN": ((3, 4), [(5, 2, 3)]), "LSTMCell": ((3, 4), [(2, 3)]),
    "MultiheadAttention": ((4, 2), [(5, 2, 4)] * 3), "TransformerEncoderLayer": ((4, 2), [(5, 2, 4)]), "LayerNorm": ((4,), [(2, 4)]),
    "GroupNorm": ((2, 4), [(2, 4, 3)]), "BatchNorm2d": ((3,), [(2, 3, 4, 4)]), "RMSNorm": ((4,), [(2, 4)]), "Conv2d": ((3, 4, 2), [(1, 3, 5, 5)]),
    "Conv3d": ((1, 2, 2), [(1, 1, 3, 3, 3)]), "ConvTranspose2d": ((3, 4, 2), [(1, 3, 5, 5)]), "Bilinear": ((3, 4, 5), [(2, 3), (2, 4)]),
    "PReLU": ((), [(2, 3)]),
}  # fmt: skip


@each(("name",), list(LAYERS))
def test_layers_forward_and_backward(name: str) -> None:
    args, shapes = LAYERS[name]
    found = []
    for device in ("cpu", "meta"):
        layer = getattr(nn, name)(*args, device=device)
        given = [tt.ones(*s, device=device, requires_grad=True) for s in shapes]
        out = layer(*given)
        out = out[0] if isinstance(out, tuple) else out
        out.sum().backward()
        assert {p.grad.device.type for p in layer.parameters()} == {device}
        found.append(
            [(tuple(t.shape), t.stride(), t.dtype) for t in (out, *[x.grad for x in given], *[p.grad for p in layer.parameters()])]
        )
    assert found[0] == found[1]


def test_layouts_of_a_network() -> None:
    """Channels that lie last, and heads that were split off features, stay so."""
    found = []
    for device in ("cpu", "meta"):
        steps = [
            nn.Conv2d(3, 8, 3, padding=1),
            nn.BatchNorm2d(8),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(8, 8, 1),
            nn.Upsample(scale_factor=2),
        ]
        x = tt.ones(2, 3, 8, 8, device=device).to(memory_format=tt.channels_last)
        strides = []
        for step in steps:
            x = step.to(device).to(memory_format=tt.channels_last)(x)
            strides.append(x.stride())
        q = tt.ones(2, 4, 3, 8, device=device).transpose(1, 2)
        mask = tt.ones(4, 4, device=device)
        for options in ({}, {"is_causal": True}, {"dropout_p": 0.5}, {"attn_mask": mask}):
            strides.append(nn.functional.scaled_dot_product_attention(q, q, q, **options).stride())
        strides += [tt.cat([x, x], 1).stride(), tt.stack([x, x]).stride(), x[tt.tensor([0, 1])].stride(), tt.fft.fft(x, dim=1).stride()]
        found.append(strides)
    assert found[0] == found[1]


OPTIMIZERS = ("SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "Adadelta", "Adamax", "NAdam", "RAdam", "ASGD", "Rprop")


@each(("name",), OPTIMIZERS)
def test_optimizers(name: str) -> None:
    net = build("meta")
    optimizer = getattr(tt.optim, name)(net.parameters(), lr=0.1, **({"momentum": 0.9} if name == "SGD" else {}))
    first = net[0].weight
    before = first._version
    for _ in range(2):
        optimizer.zero_grad()
        net(tt.ones(5, 3, device="meta")).sum().backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
    state = optimizer.state[first]
    assert first._version == before + 2
    assert all(t.is_meta and t.shape == first.shape for t in state.values() if isinstance(t, tt.Tensor) and t.ndim)
    assert all(not t.is_meta for t in state.values() if isinstance(t, tt.Tensor) and not t.ndim)
    if "step" in state:
        assert float(state["step"]) == 2
    optimizer.load_state_dict(optimizer.state_dict())


def test_functional_call_and_templates() -> None:
    net, full = build("meta"), build()
    out = tt.func.functional_call(net, dict(full.state_dict()), (tt.ones(2, 3),))
    assert out.shape == (2, 2)
    assert not out.is_meta
    stack, buffers = tt.func.stack_module_state([build() for _ in range(2)])
    out = tt.func.vmap(lambda p, b: tt.func.functional_call(net.eval(), (p, b), (tt.ones(2, 3),)))(stack, buffers)
    assert out.shape == (2, 2, 2)
