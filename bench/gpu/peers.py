"""What torch offers for each op of the table: the same arguments, torch's own function. An op that is not here has no counterpart."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Peer = Callable[..., Any]  # (torch, *inputs, **attrs) -> result


def counterpart(name: str) -> Peer | None:
    """torch's function for an op as `(torch, *inputs, **attrs)`, or None."""
    return PEERS.get(name)


def _named(*names: str) -> dict[str, Peer]:
    """Ops that torch calls by the same name with the same positional inputs."""
    return {n: lambda t, *xs, n=n: getattr(t, n)(*xs) for n in names}


def _functional(*names: str) -> dict[str, Peer]:
    """The same in torch.nn.functional, attributes by name."""
    return {n: lambda t, *xs, n=n, **attrs: getattr(t.nn.functional, n)(*xs, **attrs) for n in names}


def _keyword(*names: str) -> dict[str, Peer]:
    """The same in torch, attributes by name."""
    return {n: lambda t, *xs, n=n, **attrs: getattr(t, n)(*xs, **attrs) for n in names}


def dtype_of(t: Any, dtype: Any) -> Any:
    """torch's type for numpy's."""
    return getattr(t, str(np.dtype(dtype)))


def _pool(name: str) -> Peer:
    return lambda t, x, *, kernel_size, stride, padding=(0, 0), **attrs: getattr(t.nn.functional, name)(
        x, kernel_size, stride, padding, **attrs
    )


def _conv2d_input(t: Any, g: Any, weight: Any, *, size: Any, groups: int = 1, **attrs: Any) -> Any:
    return t.nn.grad.conv2d_input((g.shape[0], weight.shape[1] * groups, *size), weight, g, groups=groups, **attrs)


def _conv2d_weight(t: Any, x: Any, g: Any, *, kernel_size: Any, groups: int = 1, **attrs: Any) -> Any:
    return t.nn.grad.conv2d_weight(x, (g.shape[1], x.shape[1] // groups, *kernel_size), g, groups=groups, **attrs)


def _prod(t: Any, x: Any, *, dim: Any, keepdim: bool = False) -> Any:
    for d in sorted(dim, reverse=True):
        x = t.prod(x, d, keepdim=keepdim)
    return x


def _layer_norm(t: Any, x: Any, weight: Any = None, bias: Any = None, *, eps: float = 1e-5, axes: int = 1) -> Any:
    return t.nn.functional.layer_norm(x, x.shape[-axes:], weight, bias, eps)


def _embedding(t: Any, weight: Any, index: Any, *, padding_idx: int | None = None) -> Any:
    return t.nn.functional.embedding(index, weight, padding_idx)


def _key(indices: Any, dims: Any) -> Any:
    return tuple(indices[dims.index(d)] if d in dims else slice(None) for d in range(max(dims) + 1))


def _index_get(t: Any, x: Any, *indices: Any, dims: Any, front: bool) -> Any:
    return x[_key(indices, dims)]


def _index_put(t: Any, x: Any, value: Any, *indices: Any, dims: Any, front: bool, accumulate: bool = False) -> Any:
    places = [indices[dims.index(d)] if d in dims else None for d in range(max(dims) + 1)]
    return t.ops.aten.index_put(x, places, value, accumulate)


def _index_assign(t: Any, x: Any, value: Any, *indices: Any, dims: Any, front: bool) -> Any:
    x[_key(indices, dims)] = value


def _cumsum(t: Any, x: Any, *, dim: int, reverse: bool = False) -> Any:
    return t.flip(t.cumsum(t.flip(x, (dim,)), dim), (dim,)) if reverse else t.cumsum(x, dim)


# torch's optimizers hold state, so a peer of a step makes one for its tensors at the first call and steps it from then on.
_optimizers: dict[int, Any] = {}


def _step(t: Any, p: Any, g: Any, make: Callable[[list[Any]], Any]) -> None:
    found = _optimizers.get(id(p))
    if found is None or found[0] is not p:
        p.grad = g
        found = _optimizers[id(p)] = p, make([p])
    found[1].step()


def _stepped(make: Callable[[Any, list[Any], bool], Any]) -> Peer:
    """The step of an optimizer with rates and settings of its own: its speed does not depend on them."""

    def step(t: Any, p: Any, g: Any, *states_and_numbers: Any, **attrs: Any) -> None:
        _step(t, p, g, lambda ps: make(t.optim, ps, p.device.type == "cuda"))

    return step


def _sgd(t: Any, p: Any, g: Any, numbers: Any, **attrs: Any) -> None:
    _step(t, p, g, lambda ps: t.optim.SGD(ps, lr=float(numbers[1]), fused=True))


def forget_optimizers() -> None:
    """Drop the optimizers of the steps that were timed, and their tensors."""
    _optimizers.clear()


def _made(f: Callable[..., Any]) -> Peer:
    """A tensor from nothing: seeds and offsets are torch's own affair."""

    def make(t: Any, *, dtype: Any, device: Any, seed: int = 0, offset: int = 0, **attrs: Any) -> Any:
        return f(t, dtype=dtype_of(t, dtype), device=device, **attrs)

    return make


PEERS: dict[str, Peer] = {
    **_named(
        "sigmoid", "add", "sub", "mul", "div", "neg", "abs", "square", "sqrt", "rsqrt", "reciprocal", "matmul", "eq", "ne", "lt", "le",
        "gt", "ge", "logical_and", "logical_or", "logical_xor", "logical_not", "isnan", "isinf", "isfinite", "bitwise_and", "bitwise_or",
        "bitwise_xor", "bitwise_left_shift", "bitwise_right_shift", "bitwise_not", "pow", "remainder", "fmod", "floor_divide", "floor",
        "ceil", "trunc", "round", "sign", "maximum", "minimum", "where", "clamp", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p",
        "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "erf", "erfc", "atan2",
    ),
    **_functional("relu", "leaky_relu", "silu", "softplus", "elu", "gelu", "linear", "conv2d", "mse_loss"),
    **_keyword("softmax", "log_softmax", "sum", "mean", "var", "amax", "amin", "argmax", "argmin", "any", "all", "tril", "triu", "flip", "roll"),
    "copy": lambda t, x: x.clone(),
    "cast": lambda t, x, *, dtype: x.to(dtype_of(t, dtype)),
    "cross_entropy": lambda t, x, target, weight=None, **attrs: t.nn.functional.cross_entropy(x, target, weight, **attrs),
    "max_pool2d": _pool("max_pool2d"),
    "avg_pool2d": _pool("avg_pool2d"),
    "conv2d_input": _conv2d_input,
    "conv2d_weight": _conv2d_weight,
    "prod": _prod,
    "max_dim": lambda t, x, *, dim, keepdim=False: t.max(x, dim, keepdim=keepdim),
    "min_dim": lambda t, x, *, dim, keepdim=False: t.min(x, dim, keepdim=keepdim),
    "layer_norm": _layer_norm,
    "rms_norm": lambda t, x, weight=None, *, eps, axes: t.nn.functional.rms_norm(x, x.shape[-axes:], weight, eps),
    "batch_norm": lambda t, x, weight=None, bias=None, *, eps: t.nn.functional.batch_norm(x, None, None, weight, bias, True, 0.1, eps),
    "batch_norm_by": lambda t, x, mean, var, weight=None, bias=None, *, eps: t.nn.functional.batch_norm(x, mean, var, weight, bias, False, 0.1, eps),
    "group_norm": lambda t, x, weight=None, bias=None, *, groups, eps: t.nn.functional.group_norm(x, groups, weight, bias, eps),
    "embedding": _embedding,
    "dropout": lambda t, x, *, p, seed, offset: t.nn.functional.dropout(x, p, training=True),
    "gather": lambda t, x, index, *, dim: t.gather(x, dim, index),
    "scatter": lambda t, x, index, source, *, dim: t.scatter(x, dim, index, source),
    "scatter_add": lambda t, x, index, source, *, dim: t.scatter_add(x, dim, index, source),
    "index_get": _index_get,
    "index_put": _index_put,
    "index_assign": _index_assign,
    "cat": lambda t, *xs, dim: t.cat(xs, dim),
    "stack": lambda t, *xs, dim: t.stack(xs, dim),
    "cumsum": _cumsum,
    "sgd_step": _sgd,
    "momentum_step": _stepped(lambda optim, ps, gpu: optim.SGD(ps, momentum=0.9, fused=True)),
    "adam_step": _stepped(lambda optim, ps, gpu: optim.Adam(ps, fused=True, capturable=gpu)),
    "amsgrad_step": _stepped(lambda optim, ps, gpu: optim.Adam(ps, amsgrad=True, fused=True, capturable=gpu)),
    "nadam_step": _stepped(lambda optim, ps, gpu: optim.NAdam(ps, capturable=gpu)),
    "radam_step": _stepped(lambda optim, ps, gpu: optim.RAdam(ps, capturable=gpu)),
    "adamax_step": _stepped(lambda optim, ps, gpu: optim.Adamax(ps, capturable=gpu)),
    "adagrad_step": _stepped(lambda optim, ps, gpu: optim.Adagrad(ps)),
    "adadelta_step": _stepped(lambda optim, ps, gpu: optim.Adadelta(ps, capturable=gpu)),
    "rmsprop_step": _stepped(lambda optim, ps, gpu: optim.RMSprop(ps, capturable=gpu)),
    "rprop_step": _stepped(lambda optim, ps, gpu: optim.Rprop(ps, capturable=gpu)),
    "asgd_step": _stepped(lambda optim, ps, gpu: optim.ASGD(ps, capturable=gpu)),
    "full": _made(lambda t, *, shape, value, **how: t.full(shape, value, **how)),
    "arange": _made(lambda t, *, start, end, step, **how: t.arange(start, end, step, **how)),
    "linspace": _made(lambda t, *, start, end, steps, **how: t.linspace(start, end, steps, **how)),
    "eye": _made(lambda t, *, rows, columns, **how: t.eye(rows, columns, **how)),
    "rand": _made(lambda t, *, shape, **how: t.rand(shape, **how)),
    "randn": _made(lambda t, *, shape, **how: t.randn(shape, **how)),
    "randint": _made(lambda t, *, low, high, shape, **how: t.randint(low, high, shape, **how)),
    "randperm": _made(lambda t, *, n, **how: t.randperm(n, **how)),
}  # fmt: skip
