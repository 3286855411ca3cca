"""Functions with two one-sided derivatives somewhere, and the places where they have them; written so that either library runs them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

INF, NAN = math.inf, math.nan


class Case(NamedTuple):
    """run(T, F, *tensors) at the values of each tensor."""

    run: Callable[..., Any]
    values: tuple[list[float], ...]


ONE = [-6.0, -3.0, -2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0, 3.0, 4.0, 6.0]
GRID = [-1.0, 0.0, 0.5, 1.0, 2.0]
A, B = [a for a in GRID for _ in GRID], [b for _ in GRID for b in GRID]
TIES = [1.0, 3.0, 3.0, -1.0, 3.0, -1.0, 0.0, 0.0]


def _called(where: str, name: str, *args: Any, **kwargs: Any) -> Callable[..., Any]:
    def run(T: Any, F: Any, *xs: Any) -> Any:
        return getattr({"T": T, "F": F, "L": T.linalg, "S": T.special}[where], name)(*xs, *args, **kwargs)

    return run


def _unary() -> dict[str, Callable[..., Any]]:
    names = "abs sqrt rsqrt log log1p sign floor ceil round trunc frac sinc relu tanh asin acos acosh atanh erfinv square reciprocal nan_to_num angle"
    found = {n: _called("T", n) for n in names.split()}
    found |= {f"special.{n}": _called("S", n) for n in ("entr", "ndtri", "log_ndtr", "i0e", "i1", "expit")}
    for n in [
        "relu6",
        "hardtanh",
        "hardswish",
        "hardsigmoid",
        "leaky_relu",
        "elu",
        "selu",
        "celu",
        "gelu",
        "silu",
        "mish",
        "softplus",
        "softshrink",
        "hardshrink",
        "softsign",
        "logsigmoid",
    ]:
        found[f"F.{n}"] = _called("F", n)
    for n, how in (
        ("hardtanh", {"min_val": -2.0, "max_val": 0.5}), ("leaky_relu", {"negative_slope": 0.0}), ("softshrink", {"lambd": 1.0}),
        ("hardshrink", {"lambd": 1.0}), ("hardshrink", {"lambd": 0.0}), ("threshold", {"threshold": 1.0, "value": 7.0}),
        ("threshold", {"threshold": 0.0, "value": 0.0}), ("softplus", {"beta": 2.0, "threshold": 4.0}),
    ):  # fmt: skip
        found[f"F.{n}({', '.join(f'{k}={v}' for k, v in how.items())})"] = _called("F", n, **how)
    for low, high in ((-1.0, 1.0), (None, 0.0), (0.0, None), (1.0, -1.0), (0.0, 0.0)):
        found[f"clamp({low}, {high})"] = _called("T", "clamp", low, high)
    for p in (0.0, 1.0, 2.0, 3.0, 0.5, 1.5, -1.0):
        found[f"pow({p})"] = _called("T", "pow", p)
    for p in (1.0, 2.0, 0.5, -2.0):
        found |= {f"{n}({p})": _called("T", n, p) for n in ("fmod", "remainder")}
    return found


def _of_ties() -> dict[str, Callable[..., Any]]:
    found = {n: _called("T", n) for n in ["max", "min", "median", "nanmedian", "prod", "sum", "std", "var", "norm"]}
    found |= {n: _called("T", n, 0) for n in ["amax", "amin", "logsumexp", "cumprod", "cumsum", "logcumsumexp", "softmax"]}
    found |= {
        f"{n}, values": lambda T, F, x, n=n: getattr(T, n)(x, 0)[0]
        for n in ["max", "min", "median", "nanmedian", "cummax", "cummin", "mode"]
    }
    found |= {
        "aminmax": lambda T, F, x: sum(T.aminmax(x)), "sort": lambda T, F, x: T.sort(x, stable=True)[0], "kthvalue": lambda T, F, x: T.kthvalue(x, 3)[0],
        "prod of rows": lambda T, F, x: T.prod(x.reshape(4, 2), 1), "prod, one zero": lambda T, F, x: T.prod(x[:7]),
        "cumprod, one zero": lambda T, F, x: T.cumprod(x[:7], 0), "std of equals": lambda T, F, x: T.std(x[1:3]),
        "scatter_reduce": lambda T, F, x: T.zeros(3, dtype=x.dtype).scatter_reduce(0, T.tensor([0, 0, 1, 1, 2, 2, 2, 0]), x, "amax"),
    }  # fmt: skip
    found |= {f"quantile({q})": _called("T", "quantile", q) for q in (0.0, 0.25, 0.3, 0.5, 1.0)}
    found |= {
        f"quantile, {i}": _called("T", "quantile", 0.4, interpolation=i) for i in ["linear", "lower", "higher", "midpoint", "nearest"]
    }
    for p in (0, 1, 2, 3, INF, -INF):
        found[f"vector_norm({p})"] = _called("L", "vector_norm", p)
        found[f"vector_norm({p}) at 0"] = lambda T, F, x, p=p: T.linalg.vector_norm(x * 0, p)
        found[f"dist({p}) at 0"] = lambda T, F, x, p=p: T.dist(x, x.detach(), p)
    for p in (1.0, 2.0, INF):
        found[f"cdist({p})"] = lambda T, F, x, p=p: T.cdist(x.reshape(4, 2), x.reshape(4, 2).detach(), p)
        found[f"pdist({p})"] = lambda T, F, x, p=p: F.pdist(x.reshape(4, 2), p)
        found[f"matrix_norm({p})"] = lambda T, F, x, p=p: T.linalg.matrix_norm(x.reshape(2, 4), {2.0: "fro"}.get(p, p))
    found |= {
        "max_pool1d": lambda T, F, x: F.max_pool1d(x.reshape(1, 1, 8), 3, 2), "max_pool2d": lambda T, F, x: F.max_pool2d(x.reshape(1, 1, 2, 4), 2, 1, 1),
        "max_pool3d": lambda T, F, x: F.max_pool3d(x.reshape(1, 1, 2, 2, 2), 2),
        "adaptive_max_pool1d": lambda T, F, x: F.adaptive_max_pool1d(x.reshape(1, 1, 8), 3),
        "interpolate": lambda T, F, x: F.interpolate(x.reshape(1, 1, 8), scale_factor=1.5, mode="linear"),
        "multi_margin_loss": lambda T, F, x: F.multi_margin_loss(x.reshape(2, 4), T.tensor([1, 0])),
        "multilabel_margin_loss": lambda T, F, x: F.multilabel_margin_loss(x, T.tensor([1, 2, -1, 0, 0, 0, 0, 0])),
        "triplet_margin_loss": lambda T, F, x: F.triplet_margin_loss(x.reshape(4, 2), x.reshape(4, 2).flip(0), x.reshape(4, 2).detach()),
    }  # fmt: skip
    return found


def _binary() -> dict[str, Callable[..., Any]]:
    found = {
        n: _called("T", n)
        for n in ["maximum", "minimum", "fmax", "fmin", "atan2", "hypot", "xlogy", "fmod", "remainder", "logaddexp", "copysign", "pow"]
    }
    found |= {f"div, {r}": _called("T", "div", rounding_mode=r) for r in ("floor", "trunc")}
    found |= {
        "clamp by tensors": lambda T, F, a, b: T.clamp(a, b, b + 1), "xlog1py": _called("S", "xlog1py"),
        "logaddexp of infinities": lambda T, F, a, b: T.logaddexp(a - INF, b - INF), "prelu": lambda T, F, a, b: F.prelu(a, b[:1]),
        "margin_ranking_loss": lambda T, F, a, b: F.margin_ranking_loss(a, b, (a * 0 + 1).detach(), margin=1.0, reduction="none"),
        "hinge_embedding_loss": lambda T, F, a, b: F.hinge_embedding_loss(a, T.sign(b.detach() - 0.25), reduction="none") + 0 * b,
    }  # fmt: skip
    for n, how in (
        ("l1_loss", {}), ("mse_loss", {}), ("smooth_l1_loss", {}), ("smooth_l1_loss", {"beta": 2.0}), ("smooth_l1_loss", {"beta": 0.0}),
        ("huber_loss", {}), ("huber_loss", {"delta": 2.0}), ("kl_div", {"log_target": True}), ("poisson_nll_loss", {}),
    ):  # fmt: skip
        found[f"{n}({', '.join(f'{k}={v}' for k, v in how.items())})"] = _called("F", n, reduction="none", **how)
    return found


def _targets(T: Any, x: Any) -> Any:
    return T.tensor([0.0, 1.0, 1.0, 0.0, 1.0, 0.5], dtype=x.dtype, device=x.device)


CASES = {
    **{name: Case(run, (ONE,)) for name, run in _unary().items()},
    **{f"ties: {name}": Case(run, (TIES,)) for name, run in _of_ties().items()},
    **{f"two: {name}": Case(run, (A, B)) for name, run in _binary().items()},
    "certain: binary_cross_entropy": Case(
        lambda T, F, x: F.binary_cross_entropy(x, _targets(T, x), reduction="none"), ([0.0, 1.0, 0.5, 0.75, 0.5, 0.25],)
    ),
    "unknown: copysign": Case(lambda T, F, a: T.copysign(a, _targets(T, a) - 0.5), ([NAN, NAN, 0.0, -0.0, 1.0, -2.0],)),
}


def derivatives(T: Any, case: Case, dtype: Any, on: str = "cpu", second: bool = True) -> list[list[float]]:
    """By each input the derivative of a weighted sum, then those of a weighted sum of these; zeros where there is none."""
    xs = [T.tensor(v, dtype=dtype, device=on).requires_grad_() for v in case.values]
    y = case.run(T, T.nn.functional, *xs)
    first = _slopes(T, [y], xs, False)
    found = [g.detach().cpu().tolist() for g in first]
    if second:
        again = _slopes(T, [case.run(T, T.nn.functional, *xs)], xs, True)
        found += [g.detach().cpu().tolist() for g in _slopes(T, again, xs, False)]
    return found


def _slopes(T: Any, ys: list[Any], xs: list[Any], create: bool) -> list[Any]:
    ys = [y for y in ys if y.requires_grad]
    weights = [(T.arange(y.numel(), dtype=y.dtype, device=y.device) % 5 + 1).reshape(y.shape) for y in ys]
    found = T.autograd.grad(ys, xs, weights, create_graph=create, allow_unused=True) if ys else [None] * len(xs)
    return [T.zeros_like(x) if g is None else g for g, x in zip(found, xs, strict=True)]
