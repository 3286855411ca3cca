"""Models that tests of compilation train: a convolutional net, an LSTM written by hand, a GPT block."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import tritensor as tt
from tritensor import nn
from tritensor.nn import functional as F


class ConvNet(nn.Module):
    """Convolution, batch norm, dropout."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(2, 4, 3, padding=1)
        self.norm = nn.BatchNorm2d(4)
        self.drop = nn.Dropout(0.2)
        self.out = nn.Linear(4 * 16, 5)

    def forward(self, x: tt.Tensor) -> tt.Tensor:
        x = F.max_pool2d(F.relu(self.norm(self.conv(x))), 2)
        return self.out(self.drop(x.flatten(1)))  # type: ignore[no-any-return]


class HandLSTM(nn.Module):
    """Gates as slices, a loop over time."""

    def __init__(self, size: int = 6, hidden: int = 5) -> None:
        super().__init__()
        self.hidden = hidden
        self.x = nn.Linear(size, 4 * hidden)
        self.h = nn.Linear(hidden, 4 * hidden)
        self.out = nn.Linear(hidden, 5)

    def forward(self, x: tt.Tensor) -> tt.Tensor:
        h = c = tt.zeros(x.shape[0], self.hidden)
        n = self.hidden
        for t in range(x.shape[1]):
            z = self.x(x[:, t]) + self.h(h)
            i, f, g, o = z[:, :n].sigmoid(), z[:, n : 2 * n].sigmoid(), z[:, 2 * n : 3 * n].tanh(), z[:, 3 * n :].sigmoid()
            c = f * c + i * g
            h = o * c.tanh()
        return self.out(h)  # type: ignore[no-any-return]


class GPTBlock(nn.Module):
    """Attention and a feed-forward layer, norms and gelu of single ops."""

    def __init__(self, width: int = 8, heads: int = 2) -> None:
        super().__init__()
        self.heads = heads
        self.scale, self.shift = nn.Parameter(tt.ones(width)), nn.Parameter(tt.zeros(width))
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.head = nn.Linear(width, 5)

    def norm(self, x: tt.Tensor) -> tt.Tensor:
        mean = x.mean(-1, keepdim=True)
        var = ((x - mean) ** 2).mean(-1, keepdim=True)
        return (x - mean) * (var + 1e-5).rsqrt() * self.scale + self.shift

    def forward(self, x: tt.Tensor) -> tt.Tensor:
        b, t, c = x.shape
        q, k, v = (y.view(b, t, self.heads, c // self.heads).transpose(1, 2) for y in self.qkv(self.norm(x)).split(c, dim=-1))
        scores = (q @ k.transpose(-2, -1)) / math.sqrt(q.shape[-1])
        scores = scores.masked_fill(tt.ones(t, t).tril() == 0, -math.inf)
        x = x + self.proj((scores.softmax(-1) @ v).transpose(1, 2).reshape(b, t, c))
        h = self.up(self.norm(x))
        h = 0.5 * h * (1 + tt.tanh(math.sqrt(2 / math.pi) * (h + 0.044715 * h**3)))
        return self.head((x + self.down(h)).mean(1))  # type: ignore[no-any-return]


MODELS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "convolutions": (ConvNet, (3, 2, 8, 8)),
    "LSTM by hand": (HandLSTM, (3, 7, 6)),
    "GPT block": (GPTBlock, (3, 5, 8)),
}
OPTIMIZERS: dict[str, Callable[[Any], Any]] = {
    "SGD": lambda params: tt.optim.SGD(params, lr=0.1, momentum=0.9),
    "Adam": lambda params: tt.optim.Adam(params, lr=0.01),
}


def train(
    model: nn.Module, call: Callable[..., Any], shape: tuple[int, ...], optimizer: str, steps: int = 5, clip: bool = False
) -> list[float]:
    """The losses of some steps of training on random inputs; `call` is the model, or what was compiled of it."""
    tt.manual_seed(1)
    opt = OPTIMIZERS[optimizer](list(model.parameters()))
    losses = []
    for _ in range(steps):
        x, y = tt.randn(*shape), tt.randint(0, 5, (shape[0],))
        opt.zero_grad()
        loss = F.cross_entropy(call(x), y)
        loss.backward()
        if clip:
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        losses.append(loss.item())
    return losses


def state_of(model: nn.Module) -> dict[str, Any]:
    """The numbers that a model has come to."""
    return {k: v.detach().numpy().copy() for k, v in model.state_dict().items()}
