"""Cases of `python -m bench compile`, written as a user writes them, for tritensor, torch and jax.

Read by bench/small/child.py in the process of each library, so it imports nothing of this repository. `build` makes a step of a case in the way of a side.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

RATE = 0.01  # of the training steps
OPS = 100  # of the chains
ROOT = math.sqrt(2 / math.pi)
Draw = Callable[..., np.ndarray]


# -- what is computed: lib is a library
def gelu(lib: Any, x: Any) -> Any:
    return 0.5 * x * (1.0 + lib.tanh(ROOT * (x + 0.044715 * x * x * x)))


def layer_norm(lib: Any, x: Any, w: Any, b: Any) -> Any:
    centred = x - lib.mean(x)
    return centred * lib.rsqrt(lib.mean(centred * centred) + 1e-5) * w + b


def swiglu(lib: Any, gate: Any, up: Any) -> Any:
    return gate * lib.sigmoid(gate) * up


def rotary(lib: Any, x: Any, cos: Any, sin: Any) -> Any:
    half = x.shape[-1] // 2
    return x * cos + lib.cat([-x[..., half:], x[..., :half]], -1) * sin


def adam(lib: Any, p: Any, g: Any, m: Any, v: Any) -> Any:
    m = 0.9 * m + 0.1 * g
    v = 0.999 * v + 0.001 * g * g
    return p - 1e-3 * (m / 0.1) / (lib.sqrt(v / 0.001) + 1e-8), m, v


def cross_entropy(lib: Any, z: Any, chosen: Any) -> Any:
    shifted = z - lib.largest(z)
    return lib.total((shifted - lib.log(lib.total(lib.exp(shifted)))) * chosen)


def rnn_cell(lib: Any, x: Any, h: Any, wi: Any, wh: Any, b: Any) -> Any:
    return lib.tanh(x @ wi + h @ wh + b)


def lstm(lib: Any, x: Any, h: Any, c: Any, wi: Any, wh: Any, b: Any) -> Any:
    n = h.shape[1]
    for t in range(x.shape[0]):
        z = x[t] @ wi + h @ wh + b
        i, f, g, o = z[:, :n], z[:, n : 2 * n], z[:, 2 * n : 3 * n], z[:, 3 * n :]
        c = lib.sigmoid(f) * c + lib.sigmoid(i) * lib.tanh(g)
        h = lib.sigmoid(o) * lib.tanh(c)
    return h


def gru(lib: Any, x: Any, h: Any, wi: Any, wh: Any, b: Any) -> Any:
    n = h.shape[1]
    for t in range(x.shape[0]):
        y, z = x[t] @ wi + b, h @ wh
        r, u = lib.sigmoid(y[:, :n] + z[:, :n]), lib.sigmoid(y[:, n : 2 * n] + z[:, n : 2 * n])
        h = u * h + (1.0 - u) * lib.tanh(y[:, 2 * n :] + r * z[:, 2 * n :])
    return h


def sums(lib: Any, x: Any, y: Any) -> Any:
    for _ in range(OPS):
        x = x + y
    return x


def sums_dropped(lib: Any, x: Any, y: Any) -> None:
    sums(lib, x, y)


# -- cases
class Case(NamedTuple):
    """A formula, what it is given, and how many of that, the last, are weights to train (0: none, it is called forward alone).

    cursor: whether it says what it costs to follow calls, which is no question to who compiles functions.
    """

    formula: Callable[..., Any]
    given: Callable[[Draw], tuple[np.ndarray, ...]]
    weights: int = 0
    cursor: bool = False


def _normed(r: Draw, rows: int, n: int) -> tuple[np.ndarray, ...]:
    return r(rows, n), r(n), r(n)


def _chosen(r: Draw, rows: int, n: int) -> tuple[np.ndarray, ...]:
    return r(rows, n), np.eye(n, dtype=np.float32)[np.arange(rows) * 37 % n]


def _turned(r: Draw) -> tuple[np.ndarray, ...]:
    angles = np.arange(256)[:, None] * 10000.0 ** -(np.arange(64) % 32 / 32)
    return r(8, 12, 256, 64), np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)


def _cell(r: Draw, batch: int, n: int) -> tuple[np.ndarray, ...]:
    return r(batch, n), r(batch, n), r(n, n) / math.sqrt(n), r(n, n) / math.sqrt(n), r(n)


def _recurrent(states: int, gates: int, steps: int, batch: int, n: int) -> Callable[[Draw], tuple[np.ndarray, ...]]:
    def given(r: Draw) -> tuple[np.ndarray, ...]:
        zeros = [np.zeros((batch, n), np.float32)] * states
        return r(steps, batch, n), *zeros, r(n, gates * n) / math.sqrt(n), r(n, gates * n) / math.sqrt(n), r(gates * n)

    return given


_lstm, _gru = functools.partial(_recurrent, 2, 4), functools.partial(_recurrent, 1, 3)
FORMULAS = {
    "gelu-tanh, 1M": Case(gelu, lambda r: (r(1024, 1024),)),
    "gelu-tanh, 16k": Case(gelu, lambda r: (r(128, 128),)),
    "gelu-tanh, 256": Case(gelu, lambda r: (r(256),)),
    "layer norm, 4096 x 768": Case(layer_norm, lambda r: _normed(r, 4096, 768)),
    "layer norm, 64 x 256": Case(layer_norm, lambda r: _normed(r, 64, 256)),
    "swiglu, 1M": Case(swiglu, lambda r: (r(512, 2048), r(512, 2048))),
    "rotary, 8 x 12 x 256 x 64": Case(rotary, _turned),
    "Adam, 1M": Case(adam, lambda r: (r(1 << 20), r(1 << 20), r(1 << 20), np.abs(r(1 << 20)))),
    "cross-entropy, 256 x 10k": Case(cross_entropy, lambda r: _chosen(r, 256, 10000)),
    "RNN cell, 32 x 256": Case(rnn_cell, lambda r: _cell(r, 32, 256)),
    "RNN cell, 4 x 32": Case(rnn_cell, lambda r: _cell(r, 4, 32)),
}
LOOPS = {
    "LSTM, T 32 B 8 H 32": Case(lstm, _lstm(32, 8, 32)),
    "LSTM, T 32 B 32 H 128": Case(lstm, _lstm(32, 32, 128)),
    "LSTM, T 8 B 32 H 128": Case(lstm, _lstm(8, 32, 128)),
    "LSTM, T 8 B 32 H 128, training step": Case(lstm, _lstm(8, 32, 128), 3),
    "GRU, T 32 B 8 H 32": Case(gru, _gru(32, 8, 32)),
    "GRU, T 8 B 32 H 128": Case(gru, _gru(8, 32, 128)),
    "GRU, T 8 B 32 H 128, training step": Case(gru, _gru(8, 32, 128), 3),
}
CHAINS = {
    f"{OPS} sums on 4 x 3": Case(sums, lambda r: (r(4, 3), r(4, 3))),
    f"{OPS} sums on 4 x 3, nothing held": Case(sums_dropped, lambda r: (r(4, 3), r(4, 3)), cursor=True),
}
CASES = FORMULAS | LOOPS | CHAINS


# -- sides
def lazily(f: Callable[..., Any]) -> Callable[..., Any]:
    """A function whose calls are a region of lazy evaluation each."""
    import tritensor as tt

    def call(*given: Any) -> Any:
        with tt.lazy():
            return f(*given)

    return call


def _of_torch(side: str) -> tuple[Any, Callable[..., Any]]:
    import torch

    names = ("tanh", "sigmoid", "rsqrt", "sqrt", "exp", "log", "cat")
    lib = SimpleNamespace(
        **{name: getattr(torch, name) for name in names}, mean=lambda x: x.mean(-1, keepdim=True), total=lambda x: x.sum(-1, keepdim=True),
        largest=lambda x: x.amax(-1, keepdim=True),
    )  # fmt: skip
    return lib, {"torch.compile": getattr(torch, "compile", None), "lazy": lazily}.get(side) or (lambda f: f)


def _of_jax() -> Any:
    import jax
    import jax.numpy as jnp

    return SimpleNamespace(
        tanh=jnp.tanh, sigmoid=jax.nn.sigmoid, rsqrt=jax.lax.rsqrt, sqrt=jnp.sqrt, exp=jnp.exp, log=jnp.log, cat=jnp.concatenate,
        mean=lambda x: x.mean(-1, keepdims=True), total=lambda x: x.sum(-1, keepdims=True), largest=lambda x: x.max(-1, keepdims=True),
    )  # fmt: skip


def _loss(formula: Callable[..., Any], lib: Any) -> Callable[..., Any]:
    def loss(*given: Any) -> Any:
        h = formula(lib, *given)
        return (h * h).mean()

    return loss


def with_jax(case: Case, given: tuple[np.ndarray, ...]) -> Callable[[], Any]:
    """A call of the jitted function; of a training step all is one function."""
    import jax

    lib, arrays = _of_jax(), [jax.numpy.asarray(a) for a in given]
    if not case.weights:
        forward = jax.jit(functools.partial(case.formula, lib))
        return lambda: jax.block_until_ready(forward(*arrays))
    fixed = arrays[: -case.weights]
    loss_and_gradients = jax.value_and_grad(_loss(case.formula, lib), argnums=tuple(range(len(fixed), len(arrays))))

    @jax.jit
    def update(*weights: Any) -> Any:
        loss, gradients = loss_and_gradients(*fixed, *weights)
        return loss, *[w - RATE * g for w, g in zip(weights, gradients, strict=True)]

    weights = arrays[len(fixed) :]

    def step() -> Any:
        loss, *weights[:] = jax.block_until_ready(update(*weights))
        return loss, *weights

    return step


def with_torch(case: Case, given: tuple[np.ndarray, ...], side: str) -> Callable[[], Any]:
    """A call of the function, compiled or not. Of a training step torch.compile has the loss; what is lazy is all of it."""
    import torch

    lib, made = _of_torch(side)
    tensors = [torch.tensor(a) for a in given]
    if not case.weights:
        forward = made(lambda *given: case.formula(lib, *given))
        return functools.partial(forward, *tensors)
    weights = [w.requires_grad_() for w in tensors[-case.weights :]]
    optimizer, loss_of = torch.optim.SGD(weights, lr=RATE), _loss(case.formula, lib)
    loss_of = loss_of if side == "lazy" else made(loss_of)

    def step() -> Any:
        optimizer.zero_grad()
        loss = loss_of(*tensors)
        loss.backward()
        optimizer.step()
        return loss, *weights

    return made(step) if side == "lazy" else step


def build(side: str, case: str, keep: str = "") -> Callable[[], Any]:
    """A step of a case. keep: a file for what the first one gives, which is then called here."""
    rng = np.random.default_rng(0)
    given = CASES[case].given(lambda *shape: rng.standard_normal(shape).astype(np.float32))
    step = with_jax(CASES[case], given) if side == "jax.jit" else with_torch(CASES[case], given, side)
    if keep:
        found = step()
        several = found if isinstance(found, tuple) else () if found is None else (found,)
        # a copy: memory that numpy has been shown is watched from then on
        np.savez(keep, *[np.asarray(x.detach().clone() if hasattr(x, "detach") else x) for x in several])
    return step
