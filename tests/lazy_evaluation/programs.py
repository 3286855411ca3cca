"""Random programs of Tensors, as lists of instructions, run the same way eagerly and lazily; what each run shows is noted and compared."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

import tritensor as tt
from tritensor.ground.thread_state import here

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
    "set by where": lambda x, y, s: x.copy_(tt.where(x > 0, x, -x)),
}  # fmt: skip

TALKS = (
    "keep", "keep", "drop", "drop", "backward", "backward", "backward", "step", "step", "zero grads", "ask", "ask", "if", "if", "look", "numpy write",
    "shared write", "scale grad", "grad", "number", "region", "print", "evaluate", "hook", "retain", "numpy", "seed",
)  # fmt: skip


class Machine:
    """The state of a program: leaves that stay, values that are kept from run to run, and what it has shown."""

    def __init__(self, seed: int, device: str) -> None:
        rng = np.random.default_rng(seed)

        def made(*shape: int) -> np.ndarray:
            return rng.integers(-3, 4, shape).astype(np.float32)

        self.device, self.rng = device, rng
        self.shared = made(3, 4)
        self.leaves = [
            tt.tensor(made(3, 4), requires_grad=True, device=device),
            tt.tensor(made(4), requires_grad=True, device=device),
            tt.tensor(made(3, 4), device=device),
            tt.tensor(made(3, 1), dtype=tt.float16, device=device),
            tt.tensor(rng.integers(-3, 4, (3, 4)), device=device),
            tt.from_numpy(self.shared) if device == "cpu" else tt.tensor(self.shared, device=device),
        ]
        self.kept: list[Any] = []
        self.shown: list[Any] = []
        self.held: list[Any] = []
        tt.manual_seed(seed)

    @property
    def parameters(self) -> list[Any]:
        return self.leaves[:2]

    # -- one run
    def run(self, program: Sequence[Step], number: int) -> None:
        """All instructions once."""
        given = tt.tensor(self.rng.integers(-3, 4, (3, 4)).astype(np.float32), device=self.device)
        values: list[Any] = [*self.leaves, *self.kept, given]
        skip = 0
        for at, s in enumerate(program):
            if skip:
                skip -= 1
                continue
            x, y = values[-1 - s.i % len(values)], values[-1 - s.j % len(values)]
            try:
                if s.kind == "if":
                    skip = 2 if (number + s.number) % 2 or (s.flag and bool((numeric(x).sum() > 0).item())) else 0
                else:
                    self.do(s, x, y, values)
            except (RuntimeError, TypeError, ValueError, IndexError) as error:
                self.shown.append((at, s.kind, type(error).__name__, str(error).split("\n")[0]))
            del x, y
        self.held = values[-3:]

    def do(self, s: Step, x: Any, y: Any, values: list[Any]) -> None:
        made = ROUGH.get(s.kind) if s.kind in ROUGH else EXACT.get(s.kind)
        if made is not None:
            result = made(x, y, s)
            values += [result] if isinstance(result, tt.Tensor) else [r for r in result if isinstance(r, tt.Tensor)]
        elif s.kind in WRITES:
            with tt.no_grad() if s.flag else contextlib.nullcontext():
                WRITES[s.kind](x, y, s)
        else:
            self.talk(s, x, values)

    def talk(self, s: Step, x: Any, values: list[Any]) -> None:
        kind = s.kind
        if kind == "keep":
            self.kept = [*self.kept[-2:], x]
        elif kind == "drop":
            if len(values) > 7:
                del values[-1 - s.i % (len(values) - 7)]
        elif kind == "backward":
            if x.requires_grad:
                x.sum().backward(retain_graph=s.flag)
        elif kind == "grad":
            if x.requires_grad:
                values += [g for g in tt.autograd.grad(x.sum(), self.parameters, create_graph=s.flag, allow_unused=True) if g is not None]
        elif kind == "step":
            with tt.no_grad():
                for p in self.parameters:
                    if p.grad is not None:
                        p -= p.grad * 2 if s.flag else p.grad
                        p.clamp_(-4, 4)
        elif kind == "zero grads":
            for p in self.parameters:
                if s.flag:
                    p.grad = None
                elif p.grad is not None:
                    p.grad.zero_()
        elif kind == "scale grad":
            if self.parameters[0].grad is not None:
                self.parameters[0].grad.mul_(2).clamp_(-8, 8)
        elif kind == "ask":
            self.shown.append(array(x.sum() if s.flag else x))
        elif kind == "number":
            values.append(values[-1] * (1 if numeric(x).sum().item() > 0 else 2) if values[-1].dtype != tt.bool else values[-1])
        elif kind == "print":
            self.shown.append(str(tuple(x.shape)) if not s.flag else repr(numeric(x).long()))
        elif kind == "look":
            self.shown.append(look(x))
        elif kind == "evaluate":
            tt.evaluate(x)
        elif kind == "region":
            with tt.lazy():
                values.append(numeric(x) + 1)
        elif kind == "numpy write":
            if not x.requires_grad and x.ndim and self.device == "cpu":
                x.numpy()[:1] = 1
        elif kind == "numpy":
            if not x.requires_grad and self.device == "cpu":
                self.held.append(x.numpy())
        elif kind == "shared write":
            self.shared[s.number % 3] += 1
        elif kind == "hook":
            if x.requires_grad and not x.is_leaf:
                x.register_hook(lambda g: g * 2)
        elif kind == "retain":
            if x.requires_grad:
                x.retain_grad()
        elif kind == "seed":
            tt.manual_seed(s.number)

    # -- what is left
    def end(self) -> list[Any]:
        """All that can be seen of a state."""
        left = [*self.leaves, *self.kept, *[x for x in self.held if isinstance(x, tt.Tensor)]]
        found = [look(x) for x in left]
        found += [array(x) for x in left] + [x for x in self.held if isinstance(x, np.ndarray)]
        found += [None if p.grad is None else array(p.grad) for p in self.parameters]
        memory = [x.detach().numpy() for x in left] if self.device == "cpu" else []
        found.append([np.shares_memory(a, b) for k, a in enumerate(memory) for b in memory[:k]])
        return [*self.shown, *found]


def look(x: Any) -> tuple[Any, ...]:
    """What a tensor says of itself; strides along dimensions of one element say nothing."""
    strides = tuple([0 if n == 1 or x.numel() == 0 else s for n, s in zip(x.shape, x.stride(), strict=True)])
    return (
        str(x.dtype), tuple(x.shape), strides, x._version, x.requires_grad, x.is_leaf, None if x.grad_fn is None else type(x.grad_fn).__name__,
        x.storage_offset() if 0 <= x.storage_offset() < 99 else "elsewhere", x._base is None,
    )  # fmt: skip


def array(x: Any) -> np.ndarray:
    x = x.detach().cpu()
    return (x.float() if x.dtype == tt.bfloat16 else x).numpy().copy()


WAYS = ("eager", "one region", "a region each", "in and out")


def shown(program: Sequence[Step], runs: int, seed: int, way: str, device: str = "cpu", forget: bool = True) -> list[Any]:
    """What a program shows in some runs. `forget`: nothing is known of programs before."""
    if forget:
        here.own_segment = None
    machine = Machine(seed, device)
    with tt.lazy() if way == "one region" else contextlib.nullcontext():
        for k in range(runs):
            with tt.lazy() if way == "a region each" or (way == "in and out" and k % 2) else contextlib.nullcontext():
                machine.run(program, k)
    return machine.end()


def difference(a: Any, b: Any, tolerance: float = 0.0) -> str:
    """How two lists of what was shown differ, or ""."""
    if len(a) != len(b):
        return f"{len(a)} things shown, {len(b)} lazily: {a} {b}"
    for k, (x, y) in enumerate(zip(a, b, strict=True)):
        if isinstance(x, np.ndarray) and isinstance(y, np.ndarray):
            if x.shape != y.shape or x.dtype != y.dtype:
                return f"{k}: {x.dtype} {x.shape}, {y.dtype} {y.shape} lazily"
            near = tolerance * (0 if x.dtype.kind in "biu" else 20 if x.dtype.itemsize == 2 else 1)
            size = near * max(1.0, float(np.abs(np.nan_to_num(x.astype(np.float64), posinf=0, neginf=0)).max(initial=0)))
            with np.errstate(invalid="ignore"):  # infinities
                close = (x == y) | ((x != x) & (y != y)) | (np.abs(x.astype(np.float64) - y.astype(np.float64)) <= size)
            if not np.all(close):
                return f"{k}:\n{x}\n{y} lazily"
        elif type(x) is not type(y) or isinstance(x, np.ndarray) or x != y:
            return f"{k}: {x}, {y} lazily"
    return ""


def ask(
    program: Sequence[Step], runs: int, seed: int, tolerance: float = 0.0, device: str = "cpu", ways: Sequence[str] = WAYS[1:], forget: bool = True,
) -> None:  # fmt: skip
    """Raise AssertionError where a program shows something else lazily than it does eagerly."""
    eager = shown(program, runs, seed, "eager", device)
    for way in ways:
        found = difference(eager, shown(program, runs, seed, way, device, forget), tolerance)
        assert not found, f"{way}: {found}"
