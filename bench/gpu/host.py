"""Host cost of one eager op on tiny tensors on the GPU, ours beside torch's: what a training script pays per call when kernels are short."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bench.gpu.clock import Ours, measure


def _operands(lib: Ours) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    x, y = (lib.t.from_numpy(rng.uniform(0.5, 1.5, (64, 64)).astype(np.float32)).to(lib.device) for _ in range(2))
    return x.requires_grad_(), y.requires_grad_()


def calls(lib: Ours) -> dict[str, Callable[[], object]]:
    """The ops that training scripts call most, gradient recorded unless the name says otherwise."""
    t = lib.t
    x, y = _operands(lib)
    plain, other = x.detach(), y.detach()
    f = t.nn.functional
    made: dict[str, Callable[[], object]] = {
        "x + y": lambda: x + y,
        "x + y, no gradient": lambda: plain + other,
        "x * 2.0": lambda: x * 2.0,
        "x.tanh()": lambda: x.tanh(),
        "relu(x)": lambda: f.relu(x),
        "x.sum()": lambda: x.sum(),
        "x.softmax(-1)": lambda: x.softmax(-1),
        "x @ y": lambda: x @ y,
        "linear(x, y)": lambda: f.linear(x, y),
        "x.view(-1)": lambda: x.view(-1),
        "x.t()": lambda: x.t(),
        "x[:, 1]": lambda: x[:, 1],
        "empty(64, 64)": lambda: t.empty((64, 64), device=lib.device),
        "10 x (x * y + y), backward": lambda: chain(t, x, y),
    }
    return made


def chain(t: Any, x: Any, y: Any) -> object:
    """Twenty ops forward, their backward, gradients returned."""
    z = x
    for _ in range(10):
        z = z * y + y
    return t.autograd.grad(z.sum(), [x, y])


def time_host(lib: Ours, name: str, seconds: float) -> dict[str, Any]:
    """{"host_us": ...} of one of `calls`."""
    prefix = "torch_" if lib.name == "torch" else ""
    with lib.working():
        run = calls(lib)[name]
        found = measure(lib, [run], seconds, graph=False)
    return {f"{prefix}host_us": round(found.host_us, 3)}
