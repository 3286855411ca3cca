"""GPT-2 (Radford et al. 2019): a decoder of attention and MLP blocks, with the parameter names that its published weights have."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import tritensor.nn.functional as F
from tritensor import nn
from tritensor.autograd.modes import no_grad
from tritensor.ground.errors import ArgumentError, OutOfRangeError, ShapeError
from tritensor.nn import init
from tritensor.nn.parameter import empty_parameter
from tritensor.tensor.core import Tensor
from tritensor.tensor.functions.creation.multinomial import multinomial
from tritensor.tensor.functions.creation.sequences import arange
from tritensor.tensor.functions.pointwise.elementary import where
from tritensor.tensor.functions.shaping.joining import cat
from tritensor.tensor.functions.sorting.ordering import topk


@dataclass
class GPT2Config:
    """The sizes of a GPT-2: n_layer blocks of n_head heads, n_embd wide, for texts of up to n_positions of vocab_size tokens."""

    vocab_size: int = 50257
    n_positions: int = 1024
    n_embd: int = 768
    n_layer: int = 12
    n_head: int = 12
    dropout: float = 0.1
    layer_norm_epsilon: float = 1e-5


SIZES = {
    "gpt2": GPT2Config(),
    "gpt2-medium": GPT2Config(n_embd=1024, n_layer=24, n_head=16),
    "gpt2-large": GPT2Config(n_embd=1280, n_layer=36, n_head=20),
    "gpt2-xl": GPT2Config(n_embd=1600, n_layer=48, n_head=25),
}


class Conv1D(nn.Module):
    """x @ weight + bias with weight (in, out): a Linear whose weight lies as GPT-2's published weights do."""

    def __init__(self, out: int, features: int) -> None:
        super().__init__()
        self.weight = empty_parameter(features, out)
        self.bias = empty_parameter(out)
        init.normal_(self.weight, std=0.02)
        init.zeros_(self.bias)

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(x, self.weight.t(), self.bias)  # type: ignore[no-any-return]


class Attention(nn.Module):
    """Attention of each token to itself and the tokens before it."""

    def __init__(self, config: GPT2Config) -> None:
        super().__init__()
        if config.n_embd % config.n_head:
            raise ArgumentError(f"GPT2: n_head {config.n_head} does not divide n_embd {config.n_embd}; give heads of one size")
        self.n_head, self.dropout = config.n_head, config.dropout
        self.c_attn = Conv1D(3 * config.n_embd, config.n_embd)
        self.c_proj = Conv1D(config.n_embd, config.n_embd)

    def forward(self, x: Tensor) -> Tensor:  # x: (batch, tokens, n_embd)
        batch, tokens, width = x.shape
        heads = self.c_attn(x).view(batch, tokens, 3, self.n_head, width // self.n_head).permute(2, 0, 3, 1, 4)
        q, k, v = heads[0], heads[1], heads[2]  # (batch, heads, tokens, size) each
        y = F.scaled_dot_product_attention(q, k, v, dropout_p=self.dropout if self.training else 0.0, is_causal=True)
        y = self.c_proj(y.transpose(1, 2).reshape(batch, tokens, width))
        return F.dropout(y, self.dropout, self.training)  # type: ignore[no-any-return]


class MLP(nn.Module):
    """Four times as wide, GELU in its tanh form, and back."""

    def __init__(self, config: GPT2Config) -> None:
        super().__init__()
        self.c_fc = Conv1D(4 * config.n_embd, config.n_embd)
        self.c_proj = Conv1D(config.n_embd, 4 * config.n_embd)
        self.dropout = config.dropout

    def forward(self, x: Tensor) -> Tensor:
        y = self.c_proj(F.gelu(self.c_fc(x), approximate="tanh"))
        return F.dropout(y, self.dropout, self.training)  # type: ignore[no-any-return]


class Block(nn.Module):
    """Attention and MLP, each of a normalized input and added to it."""

    def __init__(self, config: GPT2Config) -> None:
        super().__init__()
        self.ln_1 = nn.LayerNorm(config.n_embd, eps=config.layer_norm_epsilon)
        self.attn = Attention(config)
        self.ln_2 = nn.LayerNorm(config.n_embd, eps=config.layer_norm_epsilon)
        self.mlp = MLP(config)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))  # type: ignore[no-any-return]


class GPT2(nn.Module):
    """Tokens (batch, tokens) to scores of the token that follows each, (batch, tokens, vocab_size). 124,439,808 parameters at its first size.

    Published state dicts load as they are: names may begin with "transformer.", the output's weight (which is the embedding's) and the
    masks that older files hold are passed over.

    Raises:
        ValueError: heads that do not divide the width; ids that are no matrix.
        IndexError: more tokens than n_positions.
    """

    def __init__(self, config: GPT2Config | None = None) -> None:
        super().__init__()
        self.config = config = config or GPT2Config()
        self.wte = nn.Embedding(config.vocab_size, config.n_embd)
        self.wpe = nn.Embedding(config.n_positions, config.n_embd)
        self.h = nn.ModuleList(Block(config) for _ in range(config.n_layer))
        self.ln_f = nn.LayerNorm(config.n_embd, eps=config.layer_norm_epsilon)
        init.normal_(self.wte.weight, std=0.02)
        init.normal_(self.wpe.weight, std=0.01)
        for name, p in self.named_parameters():
            if name.endswith("c_proj.weight"):  # added 2 n_layer times: scaled, so that the sum keeps its size
                init.normal_(p, std=0.02 / math.sqrt(2 * config.n_layer))
        self.register_load_state_dict_pre_hook(_rename_published)

    def forward(self, ids: Tensor) -> Tensor:  # ids: (batch, tokens)
        if ids.ndim != 2:
            raise ShapeError(f"GPT2: ids {tuple(ids.shape)} has {ids.ndim} dimensions; give (batch, tokens), of one text ids[None]")
        tokens = ids.shape[-1]
        if tokens > self.config.n_positions:
            raise OutOfRangeError(f"GPT2: {tokens} tokens, and there are {self.config.n_positions} positions; give the last ones")
        x = self.wte(ids) + self.wpe(arange(tokens, device=ids.device))  # (batch, tokens, n_embd)
        x = F.dropout(x, self.config.dropout, self.training)
        for block in self.h:
            x = block(x)
        return F.linear(self.ln_f(x), self.wte.weight)  # type: ignore[no-any-return]  # (batch, tokens, vocab_size)

    @no_grad()
    def generate(self, ids: Tensor, max_new_tokens: int, temperature: float = 1.0, top_k: int | None = None) -> Tensor:
        """ids (batch, tokens) with max_new_tokens more behind them, drawn from the model's distribution.

        temperature 0 takes the most probable token each time; top_k leaves only so many to choose from. Call eval() first: in training mode
        dropout has a say. Raises ValueError for either below 0 or 1.
        """
        if temperature < 0 or (top_k is not None and top_k < 1):
            raise ArgumentError(
                f"GPT2.generate: temperature {temperature}, top_k {top_k}; give a temperature of 0 or more and a top_k of 1 or more"
            )
        for _ in range(max_new_tokens):
            scores = self(ids[:, -self.config.n_positions :])[:, -1]  # (batch, vocab_size)
            if temperature == 0:
                following = scores.argmax(-1, keepdim=True)
            else:
                scores = scores / temperature
                if top_k is not None:
                    least = topk(scores, min(top_k, scores.shape[-1]))[0][:, -1:]
                    scores = where(scores < least, -math.inf, scores)
                following = multinomial(F.softmax(scores, dim=-1), 1)
            ids = cat([ids, following], dim=1)
        return ids


def _rename_published(module: GPT2, state: dict[str, Any], prefix: str, *_: Any) -> None:
    for key in [k for k in state if k.startswith(prefix)]:
        name = key[len(prefix) :].removeprefix("transformer.")
        value = state.pop(key)
        if name != "lm_head.weight" and not name.endswith((".attn.bias", ".attn.masked_bias")):
            state[prefix + name] = value


def gpt2(size: str = "gpt2") -> GPT2:
    """A new GPT-2 of a published size: "gpt2" (124,439,808 parameters), "gpt2-medium" (354,823,168), "gpt2-large" (774,030,080)
    or "gpt2-xl" (1,557,611,200). Raises ValueError for another."""
    if size not in SIZES:
        raise ArgumentError(f"gpt2: size {size!r}; give one of {', '.join(map(repr, SIZES))}")
    return GPT2(SIZES[size])
