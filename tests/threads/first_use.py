"""A program that lets six threads call a function for the first time at once: `python -m tests.threads.first_use DEVICE SHARE OF [FAMILY ...]`.

Each call has a process of its own, forked from one that has imported tritensor and called nothing. What the threads are answered, and what later calls
are, is held to PyTorch's recorded answer, or where there is none to that of a process in which nobody else calls.
"""

from __future__ import annotations

import json
import os
import re
import select
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import tritensor as tt
from tests.expressions.answers import answer, differs
from tests.expressions.listed import FAMILIES, MEANT, ON_CPU
from tests.expressions.record import ours, recorded
from tests.threads.together import outcomes

THREADS = 6
PATIENCE = 120  # seconds for a call's process
DRAWS = {"draws"}  # of one generator, which the threads share: who draws what is open

# What the expressions do not ask: layers, optimizers, distributions, transforms. `copy.deepcopy` keeps the threads' models apart.
MODELS = [
    *[f"(lambda net: [[q.fill_(0.25) for q in net.parameters()], net({given})][1])(T.nn.{made}.to(on, T.float64).requires_grad_(False))" for made, given in (
        ("Linear(3, 2)", "x"), ("Conv2d(2, 3, 3)", "p"), ("BatchNorm2d(2)", "p"), ("LayerNorm(3)", "x"), ("GroupNorm(1, 2)", "p"), ("MaxPool2d(2)", "p"),
        ("AvgPool2d(2)", "p"), ("RMSNorm(3)", "x"), ("PReLU()", "x"), ("Bilinear(3, 3, 2)", "x, y"), ("ConvTranspose2d(2, 1, 2)", "p"),
        ("InstanceNorm2d(2)", "p"), ("Softmax(1)", "x"), ("AdaptiveAvgPool2d(2)", "p"), ("RNN(3, 2, batch_first=True)", "b"),
        ("LSTM(3, 2, batch_first=True)", "b"), ("GRU(3, 2, batch_first=True)", "b"), ("MultiheadAttention(3, 1, batch_first=True)", "b, b, b"),
        ("TransformerEncoderLayer(4, 2, 8, batch_first=True).eval()", "b[..., :1].expand(2, 3, 4)"), ("Embedding(4, 2)", "n"), ("CosineSimilarity()", "x, y"),
    )],
    *[f"[q := T.nn.Parameter(m.detach().clone()), o := T.optim.{name}([q], lr=0.1), (q * q).sum().backward(), o.step(), q.detach()][-1]" for name in (
        "SGD", "Adam", "AdamW", "Adamax", "NAdam", "RAdam", "RMSprop", "Adagrad", "Adadelta", "ASGD", "Rprop",
    )],
    "T.nn.utils.clip_grad_norm_([q := T.nn.Parameter(v.detach().clone()), (q * q).sum().backward()][:1], 1.0)",
    *[f"T.distributions.{made}.{asked}" for made in (
        "Normal(v, v.abs() + 1)", "Laplace(v, v.abs() + 1)", "Gamma(y, y)", "Beta(y, y)", "Exponential(y)", "Poisson(y)", "Gumbel(v, v.abs() + 1)",
    ) for asked in ("log_prob(T.tensor(0.5, device=on).expand(1, 3).double().round(decimals=1) * 0 + 1)",)],
    "T.distributions.Categorical(logits=x).entropy()", "T.distributions.Bernoulli(logits=x).entropy()",
    "T.distributions.kl_divergence(T.distributions.Normal(v, 1.0), T.distributions.Normal(0.0, v.abs() + 1))",
    "T.func.grad(lambda t: (t ** 3).sum())(x)", "T.func.vmap(lambda r: r * r.sum())(x)", "T.func.jacrev(lambda r: r.exp())(v)",
    "T.func.jacfwd(lambda r: r.sin())(v)", "T.func.hessian(lambda r: (r ** 3).sum())(v)", "T.func.jvp(T.sin, (v,), (v,))[1]",
    "T.func.vjp(T.cos, v)[1](v)[0]", "T.func.vmap(T.func.grad(lambda r: F.silu(r).sum()))(x)",
    "T.autograd.functional.jacobian(lambda r: r * r, v)", "T.autograd.functional.hvp(lambda r: (r ** 3).sum(), v, v)[1]",
    "T.utils.checkpoint.checkpoint(lambda t: (t * t).exp(), x, use_reentrant=False)",
]  # fmt: skip
ALL = {**{f: e for f, e in FAMILIES.items() if f not in DRAWS}, "models": MODELS}


def first_calls(families: list[str], reported: set[str]) -> Iterator[tuple[str, str]]:
    """(family, expression) for each function that an expression names first; none of those `reported`."""
    seen: set[str] = set()
    for family in families:
        for expression in ALL[family]:
            names = set(re.findall(r"[.\s(]([A-Za-z_0-9]+)\(", ours(expression)))
            if expression not in MEANT and expression not in reported and (names - seen or family == "models"):
                seen |= names
                yield family, expression


def alone(expression: str, on: str) -> list[Any]:
    """The answer where nobody else calls."""
    return [answer(tt, ours(expression), on)]


def raced(expression: str, on: str) -> list[Any]:
    """What six threads are answered that call first, and what two calls are afterwards. An error that no answer is, is a string."""

    def ask() -> Any:
        try:
            return answer(tt, ours(expression), on)
        except BaseException as error:
            return f"{type(error).__name__}: {error}"

    return [*outcomes(*[ask] * THREADS), ask(), ask()]


def in_child(work: Any, *given: Any) -> list[Any]:
    """What `work` gives in a forked child. Raises RuntimeError where that ends or hangs."""
    read, write = os.pipe()
    pid = os.fork()
    if not pid:
        with os.fdopen(write, "w") as out:
            json.dump(work(*given), out)
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as end:
        there = select.select([end], [], [], PATIENCE)[0]
        if not there:
            os.kill(pid, 9)
        said, status = end.read(), os.waitpid(pid, 0)[1]
    if status or not there:
        raise RuntimeError(f"its process {'hung' if not there else f'ended with {status}'}")
    return list(json.loads(said))


def wrong(family: str, expression: str, on: str, answers: dict[str, Any]) -> str:
    """What is not as it should be about a call; "" where nothing is."""
    try:
        right = answers[expression] if family != "models" else in_child(alone, expression, on)[0]
        if "error" in right and family == "models":
            return f"alone it raises {right['error']}"
        given = in_child(raced, expression, on)
    except RuntimeError as error:
        return str(error)
    said = [g if isinstance(g, str) else differs(right, g) for g in given]
    return "; ".join(sorted({f"{s[:400]} ({said.count(s)} of {len(said)})" for s in said if s}))


def main(on: str, share: int, of: int, families: list[str]) -> None:
    """Ask every `of`-th call, from the `share`-th on; print what is wrong, then how many were asked."""
    warnings.simplefilter("ignore")
    families = families or [f for f in ALL if on == "cpu" or f not in ON_CPU]
    answers = {f: recorded(f) for f in families if f != "models"}
    # What a kernel reports of bad indices, the next wait raises, which may be another thread's.
    reported = {e for known in answers.values() for e, a in known.items() if "error" in a} if on == "cuda" else set()
    calls = list(first_calls(families, reported))[share::of]
    for family, expression in calls:
        if said := wrong(family, expression, on, answers.get(family, {})):
            print(f"{family}: {expression}: {said}", flush=True)
    print(len(calls), "calls")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4:])
