"""GPT-2 as a user writes it by hand: layer norm and gelu op by op, in the manner of nanoGPT's first blocks."""

from __future__ import annotations

import math
from typing import Any

from bench.gpu.training import GPTShape, decoder


def gpt_by_hand(t: Any, shape: GPTShape) -> Any:
    """The decoder of `gpt` in bench/gpu/training.py from a library's Linear, Embedding and attention, the rest of elementary ops."""
    nn = t.nn

    class Norm(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.weight, self.bias = nn.Parameter(t.ones(shape.width)), nn.Parameter(t.zeros(shape.width))

        def forward(self, x: Any) -> Any:
            centred = x - x.mean(-1, keepdim=True)
            return centred * t.rsqrt((centred * centred).mean(-1, keepdim=True) + 1e-5) * self.weight + self.bias

    class Gelu(nn.Module):  # type: ignore[misc, name-defined]
        def forward(self, x: Any) -> Any:
            return 0.5 * x * (1.0 + t.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)))

    class Block(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.before, self.after = Norm(), Norm()
            self.qkv, self.out = nn.Linear(shape.width, 3 * shape.width), nn.Linear(shape.width, shape.width)
            self.mlp = nn.Sequential(nn.Linear(shape.width, 4 * shape.width), Gelu(), nn.Linear(4 * shape.width, shape.width))

        def forward(self, x: Any) -> Any:  # x: (batch, length, width)
            batch, length, width = x.shape
            q, k, v = [y.view(batch, length, shape.heads, -1).transpose(1, 2) for y in self.qkv(self.before(x)).split(width, dim=2)]
            seen = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(seen.transpose(1, 2).reshape(batch, length, width))
            return x + self.mlp(self.after(x))

    return decoder(t, shape, Block, Norm)
