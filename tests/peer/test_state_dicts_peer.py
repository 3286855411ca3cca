"""State dicts of PyTorch's models load here, and ours there: the same outputs and gradients, both ways."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import tritensor as tt
from bench.cpu.train import gpt, lenet, lstm, resnet18

pytestmark = [pytest.mark.peer, pytest.mark.filterwarnings("ignore:enable_nested_tensor")]


def bidirectional(t: Any) -> Any:
    return t.nn.LSTM(5, 6, 2, bidirectional=True, proj_size=3, batch_first=True)


def gru(t: Any) -> Any:
    return t.nn.GRU(5, 7, 3, bidirectional=True)


def encoder(t: Any) -> Any:
    layer = t.nn.TransformerEncoderLayer(12, 3, 20, dropout=0.0, activation="gelu", batch_first=True, norm_first=True)
    return t.nn.TransformerEncoder(layer, 2, norm=t.nn.LayerNorm(12), enable_nested_tensor=False)


class Translation:
    """nn.Transformer of one argument: source and target in one."""

    def __new__(cls, t: Any) -> Any:
        class Both(t.nn.Module):  # type: ignore[misc,name-defined]
            def __init__(self) -> None:
                super().__init__()
                self.inner = t.nn.Transformer(8, 2, 2, 2, 16, dropout=0.0)

            def forward(self, x: Any) -> Any:
                return self.inner(x, x[1:])

        return Both()


def attention(t: Any) -> Any:
    class Own(t.nn.Module):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.inner = t.nn.MultiheadAttention(8, 2, add_bias_kv=True, kdim=8, vdim=8, batch_first=True)

        def forward(self, x: Any) -> Any:
            return self.inner(x, x, x, average_attn_weights=False)

    return Own()


def generator(t: Any) -> Any:
    nn = t.nn
    return nn.Sequential(
        nn.ConvTranspose2d(4, 8, 4, 1, 0, bias=False),
        nn.BatchNorm2d(8),
        nn.ReLU(True),
        nn.ConvTranspose2d(8, 3, 4, 2, 1, groups=1),
        nn.Tanh(),
    )


def unet(t: Any) -> Any:
    class UNet(t.nn.Module):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            nn = t.nn
            super().__init__()
            self.down = nn.Sequential(
                nn.Conv2d(2, 4, 3, padding=1), nn.InstanceNorm2d(4, affine=True, track_running_stats=True), nn.PReLU(4)
            )
            self.middle = nn.Sequential(
                nn.MaxPool2d(2), nn.Conv2d(4, 8, 3, padding=1, padding_mode="circular"), nn.GroupNorm(2, 8), nn.SiLU()
            )
            self.up = nn.Sequential(nn.Upsample(scale_factor=2, mode="bilinear"), nn.Conv2d(8, 4, 1))
            self.head = nn.Conv2d(8, 1, 3, padding="same")

        def forward(self, x: Any) -> Any:
            a = self.down(x)
            return self.head(t.cat([a, self.up(self.middle(a))], dim=1))

    return UNet()


def volumes(t: Any) -> Any:
    nn = t.nn
    return nn.Sequential(nn.Conv3d(1, 3, 3), nn.BatchNorm3d(3), nn.MaxPool3d(2), nn.Flatten(), nn.Linear(24, 4), nn.LayerNorm(4))


MODELS: list[tuple[Callable[[Any], Any], tuple[int, ...]]] = [
    (lenet, (2, 1, 28, 28)), (resnet18, (2, 3, 32, 32)), (gpt, (2, 16)), (lstm, (2, 9)), (bidirectional, (2, 7, 5)), (gru, (4, 3, 5)),
    (encoder, (2, 6, 12)), (Translation, (4, 2, 8)), (attention, (2, 5, 8)), (generator, (2, 4, 1, 1)), (unet, (2, 2, 8, 8)), (volumes, (2, 1, 6, 6, 6)),
]  # fmt: skip


def leaves(found: Any, kind: type) -> list[Any]:
    return [found] if isinstance(found, kind) else [x for f in found for x in leaves(f, kind)]


def told(t: Any, model: Any, x: Any) -> list[np.ndarray]:
    """Outputs, gradients of a weighted sum of them, and the state after a call, as numpy arrays."""
    out = leaves(model(x), t.Tensor)
    loss = sum((o * t.arange(1, o.numel() + 1, dtype=o.dtype).reshape(o.shape).cos()).sum() for o in out)
    loss.backward()
    grads = [p.grad for p in model.parameters()]
    state = list(model.state_dict().values())
    return [v.detach().numpy() for v in (*out, *grads, *state)]


@pytest.mark.parametrize(("make", "shape"), MODELS, ids=lambda v: getattr(v, "__name__", ""))
def test_a_state_dict_travels_both_ways(make: Callable[[Any], Any], shape: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    tt.manual_seed(0)
    torch.set_num_threads(1)
    rng = np.random.default_rng(0)
    x = rng.integers(0, 65, shape) if make in (gpt, lstm) else rng.standard_normal(shape)
    theirs, ours = make(torch).double(), make(tt).double()
    for there in (False, True):  # from PyTorch, then to it
        if there:
            with torch.no_grad():
                for p in theirs.parameters():
                    p.zero_()
            theirs.load_state_dict({k: torch.from_numpy(v.detach().numpy().copy()) for k, v in ours.state_dict().items()})
        else:
            ours.load_state_dict({k: tt.from_numpy(v.detach().numpy().copy()) for k, v in theirs.state_dict().items()})
        theirs.zero_grad()
        ours.zero_grad()
        want, have = told(torch, theirs, torch.from_numpy(x.copy())), told(tt, ours, tt.from_numpy(x.copy()))
        assert len(want) == len(have)
        for a, b in zip(want, have, strict=True):
            np.testing.assert_allclose(b, a, rtol=1e-9, atol=1e-10)
