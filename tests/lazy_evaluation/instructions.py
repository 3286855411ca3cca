"""Instructions of random programs: what makes values, exactly or roughly, and what writes to them."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any, NamedTuple

import tritensor as tt

F = tt.nn.functional


class Step(NamedTuple):
    """One instruction: `i`, `j` choose among the values there are, `number` is a number or an axis, `flag` a way to do it."""

    kind: str
    i: int
    j: int
    number: int
    flag: bool


def small(x: Any) -> Any:
    """Numbers that stay exact: within eight of zero."""
    return x.clamp(-8, 8)


def fits(x: Any, y: Any) -> bool:
    """Whether y broadcasts to x's shape."""
    return y.ndim <= x.ndim and all([b in (1, a) for a, b in zip(x.shape[::-1], y.shape[::-1], strict=False)])


def numeric(x: Any) -> Any:
    return x.long() if x.dtype == tt.bool else x


def floating(x: Any) -> Any:
    return x if x.dtype.is_floating_point else x.float()


def pair(f: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    """A function of two values, of which the second is a number where it does not fit."""
    return lambda x, y, s: f(numeric(x), numeric(y) if fits(x, y) else s.number)


def matrix(f: Callable[[Any], Any]) -> Callable[..., Any]:
    return lambda x, y, s: f(x) if x.ndim == 2 else x


def axis(x: Any, s: Step) -> int:
    return s.number % x.ndim if x.ndim else 0


class _Doubled(tt.autograd.Function):
    """Twice a value, and three times its gradient."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * 2

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return g * 3 + x * 0


def _reread(x: Any, y: Any, s: Step) -> Any:
    """A tensor of numbers that were asked for."""
    return tt.tensor(x.detach().tolist(), dtype=x.dtype, device=x.device)


def _looped(x: Any, y: Any, s: Step) -> Any:
    """As many turns as a value says."""
    n = int(numeric(y).sum().item()) % 4
    for k in range(n):
        x = small(numeric(x) + k)
    return x


def _to_out(x: Any, y: Any, s: Step) -> Any:
    """A result in memory that was made for it, or that is to be made to fit."""
    out = tt.empty(0 if s.flag else tuple(x.shape), dtype=x.dtype, device=x.device)
    with tt.no_grad():
        return tt.add(x, s.number, out=out)


EXACT: dict[str, Callable[..., Any]] = {
    "neg": lambda x, y, s: -numeric(x),
    "abs": lambda x, y, s: abs(numeric(x)),
    "relu": lambda x, y, s: F.relu(numeric(x)),
    "clamp": lambda x, y, s: numeric(x).clamp(-s.number - 1, 4),
    "double it": lambda x, y, s: small(numeric(x) * 2),
    "square": lambda x, y, s: small(numeric(x) * numeric(x)),
    "float": lambda x, y, s: x.float(),
    "half": lambda x, y, s: x.half(),
    "bfloat16": lambda x, y, s: x.bfloat16(),
    "double": lambda x, y, s: x.double(),
    "long": lambda x, y, s: x.long(),
    "to": lambda x, y, s: x.to(y.dtype),
    "sign": lambda x, y, s: tt.sign(numeric(x)),
    "positive": lambda x, y, s: x > s.number,
    "add": pair(lambda x, y: small(x + y)),
    "add scaled": pair(lambda x, y: small(tt.add(x, y, alpha=2))),
    "radd": lambda x, y, s: s.number + numeric(x),
    "sub": pair(lambda x, y: small(x - y)),
    "mul": pair(lambda x, y: small(x * y)),
    "maximum": lambda x, y, s: tt.maximum(numeric(x), numeric(y)) if fits(x, y) else x,
    "where": pair(lambda x, y: tt.where(x > 0, x, y)),
    "equal": pair(lambda x, y: x == y),
    "sum": lambda x, y, s: small(numeric(x).sum(axis(x, s), keepdim=s.flag)) if x.ndim else x,
    "sum all": lambda x, y, s: small(numeric(x).sum()),
    "amax": lambda x, y, s: numeric(x).amax(axis(x, s)) if x.ndim and x.numel() else x,
    "max": lambda x, y, s: numeric(x).max(dim=axis(x, s), keepdim=s.flag) if x.ndim and x.numel() else x,
    "argmax": lambda x, y, s: numeric(x).argmax(0) if x.ndim and x.numel() else x,
    "cumsum": lambda x, y, s: small(numeric(x).cumsum(0)) if x.ndim else x,
    "matmul": lambda x, y, s: small(x @ (y if y.dtype == x.dtype else y.to(x.dtype)).t()) if x.ndim == y.ndim == 2 and x.shape[1] == y.shape[1] and x.dtype.is_floating_point else x,
    "linear": lambda x, y, s: small(F.linear(x, y)) if x.ndim == y.ndim == 2 and x.shape[1] == y.shape[1] and x.dtype == y.dtype == tt.float32 else x,
    "t": matrix(lambda x: x.t()),
    "transpose": matrix(lambda x: x.transpose(0, -1)),
    "flat": lambda x, y, s: x.reshape(-1),
    "part": matrix(lambda x: x[:, 1:]),
    "row": lambda x, y, s: x[0] if x.ndim and len(x) else x,
    "every other": lambda x, y, s: x[::2] if x.ndim else x,
    "expand": lambda x, y, s: x.expand(2, *x.shape) if x.ndim < 2 else x[:1].expand(*x.shape),
    "unsqueeze": lambda x, y, s: x.unsqueeze(s.number % 2) if x.ndim == 1 else x,
    "squeeze": lambda x, y, s: x.squeeze(),
    "chunk": lambda x, y, s: x.chunk(2, dim=0) if x.ndim and len(x) else x,
    "unbind": lambda x, y, s: x.unbind(0) if x.ndim == 2 else x,
    "narrow": lambda x, y, s: x.narrow(0, 0, 1) if x.ndim and len(x) else x,
    "flip": lambda x, y, s: x.flip(0) if x.ndim else x,
    "cat": lambda x, y, s: tt.cat([x, x, y] if x.shape == y.shape and x.dtype == y.dtype else [x, x])[: max(1, len(x))] if x.ndim else x,
    "stack": lambda x, y, s: tt.stack((x, x), dim=0)[1],
    "clone": lambda x, y, s: x.clone(),
    "contiguous": lambda x, y, s: x.contiguous(),
    "detach": lambda x, y, s: x.detach(),
    "data": lambda x, y, s: x.data,
    "itself": lambda x, y, s: x,
    "gather": lambda x, y, s: x[tt.tensor([0, 0], device=x.device)] if x.ndim and len(x) else x,
    "mask": lambda x, y, s: x[x > 0],
    "nonzero": lambda x, y, s: x.nonzero(),
    "full": lambda x, y, s: x + tt.full(tuple(x.shape), s.number, device=x.device) if x.dtype != tt.bool else x,
    "zeros": lambda x, y, s: tt.zeros_like(x),
    "tensor": lambda x, y, s: tt.tensor([1.0, -2.0, float(s.number)], device=x.device),
    "randint": lambda x, y, s: tt.randint(-3, 4, tuple(x.shape), device=x.device),
    "dropout": lambda x, y, s: small(F.dropout(floating(x), 0.5)),
    "bernoulli": lambda x, y, s: tt.bernoulli(tt.full(tuple(x.shape), 0.5, device=x.device)),
    "tril": matrix(lambda x: x.tril()),
    "sort": lambda x, y, s: numeric(x).sort(dim=0) if x.ndim else x,
    "three times": lambda x, y, s: small(tt.addcmul(numeric(x), numeric(x), numeric(x), value=1)),
    "where of itself": lambda x, y, s: tt.where(x > 0, x, x) if s.flag else tt.where(x == y, x, y) if y.shape == x.shape and y.dtype == x.dtype else x,
    "minus itself": lambda x, y, s: numeric(x) - numeric(x),
    "cat of several": lambda x, y, s: tt.cat([x, y, x][s.number % 2 :], dim=0) if x.ndim and x.ndim == y.ndim and x.shape[1:] == y.shape[1:] and x.dtype == y.dtype else x,
    "stack of several": lambda x, y, s: tt.stack([x, y, x, y][: s.number + 1], dim=-1) if x.shape == y.shape and x.dtype == y.dtype else tt.stack([x] * (s.number + 1)),
    "broadcast together": lambda x, y, s: tt.broadcast_tensors(x, y) if fits(x, y) else x,
    "sum by name": lambda x, y, s: small(tt.sum(numeric(x), dim=axis(x, s), keepdim=s.flag, dtype=tt.float32)) if x.ndim else x,
    "clamp by name": lambda x, y, s: tt.clamp(numeric(x), max=s.number) if s.flag else tt.clamp(numeric(x), min=-s.number),
    "add by name": lambda x, y, s: small(tt.add(numeric(x), other=numeric(y), alpha=s.number)) if fits(x, y) else x,
    "to new memory": _to_out,
    "like another": lambda x, y, s: tt.full_like(y, s.number),
    "view": lambda x, y, s: x.view(-1) if s.flag else x.view(*x.shape, 1) if x.ndim < 3 else x,
    "view as": lambda x, y, s: x.view_as(y) if x.numel() == y.numel() else x.expand_as(y) if fits(y, x) else x,
    "diagonal": matrix(lambda x: x.diagonal()),
    "permute": matrix(lambda x: x.permute(1, 0)),
    "view of a view": lambda x, y, s: x[s.number % 2 :][::2][:, None] if x.ndim == 1 else x[s.number % 2 :][:, 1:][-1:] if x.ndim == 2 else x,
    "element": lambda x, y, s: x[(s.number % 2,) * x.ndim] if x.ndim and all([n > 1 for n in x.shape]) else x,
    "unfold": lambda x, y, s: x.unfold(-1, 2, 1) if x.ndim and x.ndim < 3 and x.shape[-1] > 1 else x,
    "as strided": lambda x, y, s: x.as_strided((2, 2), (1, 1), s.number % 2) if x.numel() >= 4 and x.is_contiguous() else x,
    "at a tensor": lambda x, y, s: x[tt.tensor(s.number % len(x), device=x.device)] if x.ndim and len(x) else x,
    "from a tensor on": lambda x, y, s: x[tt.tensor(s.number % 2) :] if x.ndim else x,
    "at the largest": lambda x, y, s: x[numeric(x).reshape(-1).argmax() % len(x)] if x.ndim and x.numel() else x,
    "take along": lambda x, y, s: tt.take_along_dim(x, tt.zeros(tuple(x.shape), dtype=tt.long, device=x.device), dim=0) if x.ndim and x.numel() else x,
    "rows": lambda x, y, s: list(x)[: s.number + 1] if x.ndim else x,
    "split": lambda x, y, s: x.split([1, x.shape[-1] - 1], dim=-1) if x.ndim and x.shape[-1] else x,
    "repeat": lambda x, y, s: x.repeat(2) if x.ndim == 1 else x.repeat_interleave(2, dim=0) if x.ndim == 2 else x,
    "einsum": matrix(lambda x: small(tt.einsum("ij,kj->ik", x, x)) if x.dtype.is_floating_point else x),
    "read again": _reread,
    "loop": _looped,
    "copied": lambda x, y, s: copy.deepcopy(x) if x.is_leaf else copy.copy(x),
    "pickled": lambda x, y, s: pickle.loads(pickle.dumps(x.detach() if not x.is_leaf else x)),
    "parameter": lambda x, y, s: tt.nn.Parameter(floating(x).detach(), requires_grad=s.flag),
    "function": lambda x, y, s: small(_Doubled.apply(floating(x))),
    "grad of": lambda x, y, s: x.grad if x.is_leaf and x.grad is not None else x,
    "base of": lambda x, y, s: x if x._base is None else x._base,
    "moved": lambda x, y, s: x.cpu().to(x.device),
    "func": lambda x, y, s: tt.func.grad(lambda v: (v * v * s.number).sum())(floating(x)) if s.flag else tt.func.vmap(lambda v: small(v + v))(numeric(x)) if x.ndim and len(x) else x,
    "own generator": lambda x, y, s: tt.randint(-3, 4, (3,), generator=tt.Generator(device=x.device).manual_seed(s.number), device=x.device),
    "required": lambda x, y, s: floating(x).detach().requires_grad_() if s.flag else floating(x).clone(),
}  # fmt: skip

ROUGH: dict[str, Callable[..., Any]] = {
    **{k: EXACT[k] for k in (
        "neg", "float", "double", "add", "sub", "mul", "radd", "t", "flat", "part", "row", "every other", "expand", "unsqueeze", "chunk", "flip", "cat", "stack",
        "clone", "contiguous", "detach", "data", "gather", "full", "tril", "sum", "sum all", "matmul", "linear", "square", "cumsum", "required", "zeros", "itself",
    )},
    "exp": lambda x, y, s: tt.exp(small(floating(x)) * 0.1),
    "tanh": lambda x, y, s: tt.tanh(floating(x)),
    "sigmoid": lambda x, y, s: tt.sigmoid(floating(x)),
    "gelu": lambda x, y, s: F.gelu(floating(x)),
    "half": lambda x, y, s: floating(x).half(),
    "bfloat16": lambda x, y, s: floating(x).bfloat16(),
    "div": pair(lambda x, y: x / (abs(y) + 1.5)),
    "mean": lambda x, y, s: floating(x).mean(axis(x, s), keepdim=s.flag) if x.ndim and x.numel() else x,
    "softmax": lambda x, y, s: floating(x).softmax(-1) if x.ndim else x,
    "norm": lambda x, y, s: F.layer_norm(floating(x), x.shape[-1:], eps=0.1) if x.ndim == 2 else x,
    "rand": lambda x, y, s: tt.rand(tuple(x.shape), device=x.device),
    "randn": lambda x, y, s: tt.randn_like(floating(x)),
    "scale by a tensor": lambda x, y, s: floating(x) * tt.tensor(0.3, device=x.device),
}  # fmt: skip


def _masked(x: Any, y: Any, s: Step) -> None:
    x[x > s.number] = 1


def _assigned(x: Any, y: Any, s: Step) -> None:
    x[:1] = s.number


def _row_assigned(x: Any, y: Any, s: Step) -> None:
    if fits(x[-1], y):
        x[-1] = y


def _iadd(x: Any, y: Any, s: Step) -> None:
    x += s.number


def _exchange(x: Any, y: Any, s: Step) -> None:
    if x.ndim and len(x) > 1:
        x[0], x[-1] = x[-1], x[0].clone() if s.flag else x[0]


def _set_grad(x: Any, y: Any, s: Step) -> None:
    if x.is_leaf and x.requires_grad:
        x.grad = y.detach() if x.shape == y.shape and x.dtype == y.dtype else None


WRITES: dict[str, Callable[[Any, Any, Step], Any]] = {
    "add_": lambda x, y, s: x.add_(y if fits(x, y) and tt.can_cast(y.dtype, x.dtype) else s.number),
    "mul_": lambda x, y, s: x.mul_(s.number % 3 - 1),
    "neg_": lambda x, y, s: x.neg_(),
    "zero_": lambda x, y, s: x.zero_(),
    "fill_": lambda x, y, s: x.fill_(s.number),
    "copy_": lambda x, y, s: x.copy_(y if fits(x, y) else tt.zeros((), device=x.device)),
    "clamp_": lambda x, y, s: x.clamp_(-2, 2),
    "x[:1] = 1": _assigned,
    "x[-1] = y": _row_assigned,
    "x[x > 0] = 1": _masked,
    "x += 1": _iadd,
    "masked_fill_": lambda x, y, s: x.masked_fill_(x > 1, s.number),
    "part add_": lambda x, y, s: x[:1].add_(1),
    "t add_": lambda x, y, s: x.t().add_(1) if x.ndim == 2 else None,
    "data add_": lambda x, y, s: x.data.add_(1),
    "detach mul_": lambda x, y, s: x.detach().mul_(2),
    "out": lambda x, y, s: tt.add(x, s.number, out=x) if s.flag else tt.mul(x, 2, out=y) if y.shape == x.shape and y.dtype == x.dtype else None,
    "random_": lambda x, y, s: x.random_(0, 4),
    "data =": lambda x, y, s: setattr(x, "data", y.detach().clone() if s.flag else y.detach()) if y.shape == x.shape and y.dtype == x.dtype else None,
    "index_add_": lambda x, y, s: x.index_add_(0, tt.tensor([0, 0], device=x.device), tt.cat([x[:1], x[:1]]).detach()),
    "sub_ itself": lambda x, y, s: x.sub_(x) if s.flag else x.add_(x).clamp_(-8, 8),
    "mul_ itself": lambda x, y, s: x.mul_(x).clamp_(-8, 8),
    "flipped": lambda x, y, s: x.copy_(x.flip(0)) if s.flag else x[:].copy_(x.flip(-1)) if x.ndim else None,
    "exchange rows": _exchange,
    "x.t() = x": lambda x, y, s: x.copy_(x.t()) if x.ndim == 2 and x.shape[0] == x.shape[1] else None,
    "neighbours": lambda x, y, s: x[1:].add_(x[:-1]) if x.ndim else None,
    "diagonal fill_": lambda x, y, s: x.diagonal().fill_(s.number) if x.ndim == 2 else None,
    "view fill_": lambda x, y, s: x.view(-1)[s.number :].fill_(1),
    "view of a view mul_": lambda x, y, s: x[1:][:1].mul_(2).clamp_(-8, 8) if x.ndim else None,
    "relu_": lambda x, y, s: F.relu(x, inplace=True) if s.flag else x.relu_(),
    "t_": lambda x, y, s: None if x.requires_grad else x.t_() if x.ndim == 2 else x.unsqueeze_(0) if x.ndim == 1 and s.flag else x.squeeze_(),
    "detach_": lambda x, y, s: x.detach_(),
    "requires_grad_": lambda x, y, s: x.requires_grad_(s.flag) if x.is_leaf and x.dtype.is_floating_point else None,
    "grad =": _set_grad,
    "add to grad": lambda x, y, s: x.grad.add_(s.number) if x.is_leaf and x.grad is not None else None,
    "addcmul_": lambda x, y, s: x.addcmul_(x, x, value=s.number).clamp_(-8, 8),
    "scatter_": lambda x, y, s: x.scatter_(0, tt.zeros(tuple(x.shape), dtype=tt.long, device=x.device), s.number) if x.ndim else None,
    "index_fill_": lambda x, y, s: x.index_fill_(0, tt.tensor([0], device=x.device), s.number) if x.ndim else None,
    "x[[0, 0]] = y": lambda x, y, s: x.__setitem__([0, 0], y[:1]) if x.shape == y.shape and x.ndim else None,
    "x[t] = 1": lambda x, y, s: x.__setitem__(tt.tensor(s.number % 2, device=x.device), 1),
    "data copy_": lambda x, y, s: x.data.copy_(y) if fits(x, y) else x.data.zero_(),
    "set_": lambda x, y, s: x.set_(y.detach()) if x.shape == y.shape and x.dtype == y.dtype and not x.requires_grad else None,
    "resize_": lambda x, y, s: x.resize_(tuple(x.shape[:-1]) + (s.number,)) if x.ndim and s.number < x.shape[-1] and not x.requires_grad else None,
    "bernoulli_": lambda x, y, s: x.bernoulli_(0.5),
    "expanded add_": lambda x, y, s: x.add_(y[:1].expand(*x.shape)) if x.shape == y.shape and x.ndim and x.dtype == y.dtype else None,
    "foreach": lambda x, y, s: tt._foreach_add_([x.detach(), y.detach()], s.number) if x.dtype == y.dtype else None,
    "attribute": lambda x, y, s: setattr(x, "mark", s.number),
    "set by where": lambda x, y, s: x.copy_(tt.where(x > 0, x, -x)),
}  # fmt: skip
