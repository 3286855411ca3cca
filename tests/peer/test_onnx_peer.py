"""Exported models against PyTorch: one source of each model, built of both libraries with the same weights; the graph gives what PyTorch's gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import tritensor as tt

pytestmark = pytest.mark.peer


def lenet(t: Any) -> Any:
    nn = t.nn
    return nn.Sequential(
        nn.Conv2d(1, 6, 5), nn.Tanh(), nn.AvgPool2d(2), nn.Conv2d(6, 16, 5), nn.Tanh(), nn.MaxPool2d(2, ceil_mode=True), nn.Flatten(), nn.Linear(256, 84), nn.ReLU(), nn.Linear(84, 10),
    )  # fmt: skip


def residual(t: Any) -> Any:
    nn = t.nn

    class Block(nn.Module):
        def __init__(self, a: int, b: int, stride: int) -> None:
            super().__init__()
            self.conv1, self.bn1 = nn.Conv2d(a, b, 3, stride, 1, bias=False), nn.BatchNorm2d(b)
            self.conv2, self.bn2 = nn.Conv2d(b, b, 3, 1, 1, bias=False), nn.BatchNorm2d(b)
            self.short = nn.Sequential(nn.Conv2d(a, b, 1, stride, bias=False), nn.BatchNorm2d(b)) if stride > 1 else nn.Identity()

        def forward(self, x: Any) -> Any:
            y = self.bn2(self.conv2(t.relu(self.bn1(self.conv1(x)))))
            return t.relu(y + self.short(x))

    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1), Block(8, 8, 1), Block(8, 16, 2), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 5)
    )


def recurrent(kind: str) -> Callable[[Any], Any]:
    def build(t: Any) -> Any:
        nn = t.nn

        class Reader(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.words, self.out = nn.Embedding(30, 6), nn.Linear(16, 3)
                self.net = getattr(nn, kind)(6, 8, 2, batch_first=True, bidirectional=True)

            def forward(self, x: Any) -> Any:
                y, last = self.net(self.words(x))
                return self.out(y), last

        return Reader()

    return build


def gpt(t: Any) -> Any:
    nn, F = t.nn, t.nn.functional

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.words, self.places = nn.Embedding(30, 16), nn.Embedding(12, 16)
            self.norm, self.qkv, self.project, self.last = nn.LayerNorm(16), nn.Linear(16, 48), nn.Linear(16, 16), nn.LayerNorm(16)
            self.feed = nn.Sequential(nn.Linear(16, 64), nn.GELU(approximate="tanh"), nn.Linear(64, 16))
            self.head = nn.Linear(16, 30, bias=False)
            self.head.weight = self.words.weight

        def forward(self, tokens: Any) -> Any:
            b, n = tokens.shape
            x = self.words(tokens) + self.places(t.arange(n, device=tokens.device))
            q, k, v = (z.view(b, n, 2, 8).transpose(1, 2) for z in self.qkv(self.norm(x)).chunk(3, dim=-1))
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.project(y.transpose(1, 2).reshape(b, n, 16))
            return self.head(x + self.feed(self.last(x)))

    return Block()


def encoder(t: Any) -> Any:
    return t.nn.TransformerEncoder(
        t.nn.TransformerEncoderLayer(16, 2, 32, batch_first=True, activation="gelu"), 2, enable_nested_tensor=False
    )


def autoencoder(t: Any) -> Any:
    nn = t.nn
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, 2, 1), nn.GroupNorm(2, 8), nn.SiLU(), nn.ConvTranspose2d(8, 8, 3, 2, 1, output_padding=1), nn.InstanceNorm2d(8, affine=True), nn.Hardswish(),
        nn.Upsample(scale_factor=2, mode="bilinear"), nn.ReflectionPad2d(1), nn.Conv2d(8, 12, 3), nn.PixelShuffle(2), nn.Upsample(size=(9, 11), mode="bicubic", align_corners=True), nn.Softplus(),
    )  # fmt: skip


IMAGE, TOKENS = (2, 3, 8, 12), (3, 7)
MODELS: dict[str, tuple[Callable[[Any], Any], tuple[int, ...], dict[int, str]]] = {
    "lenet": (lenet, (2, 1, 28, 28), {0: "batch"}), "residual": (residual, IMAGE, {0: "batch", 2: "height", 3: "width"}),
    **{kind: (recurrent(kind), TOKENS, {0: "batch", 1: "time"}) for kind in ("LSTM", "GRU", "RNN")},
    "gpt": (gpt, TOKENS, {0: "batch", 1: "time"}), "encoder": (encoder, (2, 5, 16), {0: "batch", 1: "time"}), "autoencoder": (autoencoder, IMAGE, {0: "batch"}),
}  # fmt: skip


def flat(y: Any) -> list[Any]:
    return [z for x in y for z in flat(x)] if isinstance(y, tuple) else [y]


@pytest.mark.parametrize("name", MODELS)
def test_the_graph_gives_what_pytorch_gives(name: str) -> None:
    build, shape, axes = MODELS[name]
    torch.manual_seed(0)
    theirs = build(torch).eval()
    for b in theirs.buffers():
        if b.dtype == torch.float32:
            b.uniform_(0.5, 1.5)
    ours = build(tt).eval()
    ours.load_state_dict({k: tt.from_numpy(v.numpy().copy()) for k, v in theirs.state_dict().items()})

    def sample(sizes: tuple[int, ...]) -> torch.Tensor:
        return torch.randint(0, 30, sizes) if len(sizes) == 2 else torch.randn(sizes)

    x = sample(shape)
    program = tt.onnx.export(ours, (tt.from_numpy(x.numpy()),), input_names=["x"], dynamic_axes={"x": axes})
    for y in (x, sample(tuple(n + 3 * (d in axes) for d, n in enumerate(shape)))):
        with torch.no_grad():
            wanted = flat(theirs(y))
        for a, b in zip(program.evaluate([y.numpy()]), wanted, strict=True):
            assert a.shape == tuple(b.shape)
            np.testing.assert_allclose(a, b.numpy(), rtol=1e-4, atol=1e-5)


def test_the_names_are_pytorchs() -> None:
    import inspect

    theirs, ours = inspect.signature(torch.onnx.export).parameters, inspect.signature(tt.onnx.export).parameters
    assert list(theirs) == list(ours)
    assert [p.kind for p in theirs.values()] == [p.kind for p in ours.values()]
    for name, p in theirs.items():
        if name not in (
            "external_data",
            "training",
            "operator_export_type",
        ):  # None: beside where they have to be; enumerations are each library's own
            assert p.default == ours[name].default, name
