"""Whole training steps on the GPU, LeNet, a small GPT and GPT-2 small, eager and as CUDA graph, written once for tritensor and for torch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from bench.cpu.train import lenet
from bench.gpu.clock import Ours, Run, measure


class GPTShape(NamedTuple):
    """Sizes of a GPT: 4 blocks of width 256 with 8 heads see 256 of 4,096 words; 16 texts in a step. tied: the head has the words' vectors as weight."""

    blocks: int = 4
    width: int = 256
    heads: int = 8
    length: int = 256
    words: int = 4096
    batch: int = 16
    tied: bool = False


GPT2_SMALL = GPTShape(
    blocks=12, width=768, heads=12, length=1024, words=50257, batch=16, tied=True
)  # Radford et al. 2019: 124 M parameters


def gpt(t: Any, shape: GPTShape) -> Any:
    """A decoder in the manner of GPT-2 (Radford et al. 2019) from a library's Linear, LayerNorm, Embedding and attention."""
    nn = t.nn

    class Attention(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.qkv = nn.Linear(shape.width, 3 * shape.width)
            self.out = nn.Linear(shape.width, shape.width)

        def forward(self, x: Any) -> Any:  # x: (batch, length, width)
            batch, length, width = x.shape
            q, k, v = [
                y.view(batch, length, shape.heads, -1).transpose(1, 2) for y in self.qkv(x).split(width, dim=2)
            ]  # (batch, heads, length, -1)
            seen = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            return self.out(seen.transpose(1, 2).reshape(batch, length, width))

    class Block(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.before, self.after = nn.LayerNorm(shape.width), nn.LayerNorm(shape.width)
            self.attention = Attention()
            self.mlp = nn.Sequential(
                nn.Linear(shape.width, 4 * shape.width), nn.GELU(approximate="tanh"), nn.Linear(4 * shape.width, shape.width)
            )

        def forward(self, x: Any) -> Any:
            x = x + self.attention(self.before(x))
            return x + self.mlp(self.after(x))

    return decoder(t, shape, Block, partial(nn.LayerNorm, shape.width))


def decoder(t: Any, shape: GPTShape, block: Callable[[], Any], norm: Callable[[], Any]) -> Any:
    """Words and places, the blocks, a norm and the head: what GPTs of any blocks have about these."""
    nn = t.nn

    class GPT(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.word, self.place = nn.Embedding(shape.words, shape.width), nn.Embedding(shape.length, shape.width)
            self.blocks = nn.Sequential(*[block() for _ in range(shape.blocks)])
            self.norm = norm()
            self.head = nn.Linear(shape.width, shape.words, bias=not shape.tied)
            if shape.tied:
                self.head.weight = self.word.weight
            self.register_buffer("places", t.arange(shape.length))

        def forward(self, words: Any) -> Any:  # words: (batch, length)
            x = self.word(words) + self.place(self.places)
            return self.head(self.norm(self.blocks(x))).view(-1, shape.words)  # (batch * length, words)

    return GPT()


class Work(NamedTuple):
    """A training step that is timed: the model, its inputs on the host, and which optimizer."""

    name: str
    model: Callable[[Any], Any]
    inputs: np.ndarray
    labels: np.ndarray
    optimizer: str
    dtype: str


def works(batch: int = 64, shapes: Sequence[GPTShape] = (GPTShape(), GPT2_SMALL)) -> list[Work]:
    """LeNet as in `bench train`; each GPT in bfloat16, those with a head of their own in float32 as well."""
    rng = np.random.default_rng(0)
    images, digits = rng.standard_normal((batch, 1, 28, 28)).astype(np.float32), rng.integers(0, 10, batch)
    made = [Work(f"LeNet 28x28, batch {batch}, SGD with momentum", lenet, images, digits, "SGD", "float32")]
    for s in shapes:
        words = rng.integers(0, s.words, (s.batch, s.length + 1))
        x, y = np.ascontiguousarray(words[:, :-1]), np.ascontiguousarray(words[:, 1:]).reshape(-1)
        name = "GPT-2 small" if s == GPT2_SMALL else f"GPT {s.blocks}x{s.width}"
        text = f"{name}, {s.heads} heads, {s.batch} x {s.length} of {s.words} words, AdamW"
        made += [Work(text, partial(gpt, shape=s), x, y, "AdamW", dtype) for dtype in (["bfloat16"] if s.tied else ["float32", "bfloat16"])]
    return made


def step(lib: Ours, work: Work, compiled: bool = False) -> Run:
    """A function that does one training step; returns the loss, on the device."""
    t = lib.t
    lib.seed()
    model = work.model(t).to(lib.device).to(getattr(t, work.dtype))
    x, labels = (t.from_numpy(v).to(lib.device) for v in (work.inputs, work.labels))
    x = x.to(getattr(t, work.dtype)) if x.is_floating_point() else x
    parameters = list(model.parameters())
    on_gpu = lib.name == "torch" and str(lib.device).startswith("cuda")
    how: dict[str, Any] = {"fused": True} if on_gpu else {}
    if work.optimizer == "SGD":
        optimizer = t.optim.SGD(parameters, lr=0.01, momentum=0.9, **how)
    else:
        optimizer = t.optim.AdamW(parameters, lr=3e-4, **how, **({"capturable": True} if on_gpu else {}))
    loss_of = t.nn.CrossEntropyLoss()
    model = t.compile(model, dynamic=False) if compiled else model

    def run() -> Any:
        optimizer.zero_grad()
        loss = loss_of(model(x), labels)
        loss.backward()
        optimizer.step()
        return loss

    return run


def time_step(lib: Ours, work: Work, seconds: float, compiled: bool = False) -> dict[str, Any]:
    """{"eager_ms", "graph_ms", "host_us", "first_loss", "last_loss", ...} of a training step; `graph_note` where no graph could be made."""
    prefix = ("compile_" if compiled else "torch_") if lib.name == "torch" else ""
    with lib.working():
        run: Any = step(lib, work, compiled)
        first = float(run().float().item())
        timed = measure(lib, [run], seconds)
        last = float(run().float().item())
    found: dict[str, Any] = {f"{prefix}eager_ms": round(timed.eager_ms, 4), f"{prefix}host_us": round(timed.host_us, 1)}
    if timed.note:
        found[f"{prefix}graph_note"] = timed.note
    else:
        found[f"{prefix}graph_ms"] = round(timed.ms, 4)
    return {**found, f"{prefix}first_loss": round(first, 5), f"{prefix}last_loss": round(last, 5)}
