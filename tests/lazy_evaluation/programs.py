"""Random programs of Tensors, as lists of instructions, run the same way eagerly and lazily; what each run shows is noted and compared."""

from __future__ import annotations

import contextlib
import gc
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

import tritensor as tt
from tests.lazy_evaluation.instructions import EXACT, ROUGH, WRITES, Step, numeric, small
from tritensor.ground.thread_state import here
from tritensor.ops.array import same_memory

_STRIDES = re.compile(r" with strides \([^)]*\)")
TALKS = (
    "keep", "keep", "drop", "drop", "backward", "backward", "backward", "step", "step", "zero grads", "ask", "ask", "if", "if", "look", "numpy write",
    "shared write", "scale grad", "grad", "number", "region", "print", "evaluate", "hook", "retain", "numpy", "seed", "look on", "no grad", "enable grad",
    "autocast", "inference", "lazily", "raise", "suspend", "resume", "freeze", "leaf hook", "mark", "same", "optimize", "grad of kept", "thread", "collect",
    "value error", "shape error", "state of draws", "show grad", "turns",
)  # fmt: skip


class Machine:
    """The state of a program: leaves that stay, values that are kept from run to run, and what it has shown. lazily: whether it may open regions."""

    def __init__(self, seed: int, device: str, lazily: bool) -> None:
        rng = np.random.default_rng(seed)

        def made(*shape: int) -> np.ndarray:
            return rng.integers(-3, 4, shape).astype(np.float32)

        self.device, self.rng = device, rng
        self.region = tt.lazy if lazily else contextlib.nullcontext
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
        self.draws: Any = None
        self.suspended: list[Iterator[Any]] = []
        self.optimizer = tt.optim.SGD(self.leaves[:2], lr=1.0, momentum=1.0)
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
        modes: list[tuple[int, Any]] = []  # that are on, and the instruction that each ends before
        for at, s in enumerate(program):
            while modes and modes[-1][0] <= at:
                modes.pop()[1].__exit__(None, None, None)
            if skip:
                skip -= 1
                continue
            x, y = values[-1 - s.i % len(values)], values[-1 - s.j % len(values)]
            try:
                if s.kind == "if":
                    skip = 2 if (number + s.number) % 2 or (s.flag and bool((numeric(x).sum() > 0).item())) else 0
                elif s.kind == "turns":  # one instruction more in some runs
                    skip = (number + s.number) % 3
                elif s.kind in MODES:
                    mode = self.region() if s.kind == "lazily" else MODES[s.kind]()
                    mode.__enter__()
                    modes.append((at + 1 + s.number, mode))
                else:
                    self.do(s, x, y, values)
            except (RuntimeError, TypeError, ValueError, IndexError) as error:
                said = _STRIDES.sub("", str(error).split("\n")[0])  # those of dimensions of one element say nothing
                self.shown.append((at, s.kind, type(error).__name__, said))
            del x, y
        while modes:
            modes.pop()[1].__exit__(None, None, None)
        self.held = values[-3:]

    def do(self, s: Step, x: Any, y: Any, values: list[Any]) -> None:
        made = ROUGH.get(s.kind) if s.kind in ROUGH else EXACT.get(s.kind)
        if made is not None:
            result = made(x, y, s)
            values += [result] if isinstance(result, tt.Tensor) else [r for r in result if isinstance(r, tt.Tensor)]
        elif s.kind in WRITES:
            with tt.no_grad() if s.flag else contextlib.nullcontext():
                WRITES[s.kind](x, y, s)
        elif s.kind in GRADIENTS:
            GRADIENTS[s.kind](self, s, x, values)
        else:
            OTHERS[s.kind](self, s, x, values)

    # -- what is left
    def end(self) -> list[Any]:
        """All that can be seen of a state."""
        while self.suspended:
            self.suspended.pop().close()  # type: ignore[attr-defined]
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
        x.storage_offset() if x.numel() and (x._base is None or same_memory(x._array, x._base._array)) else "elsewhere", x._base is None,
    )  # fmt: skip


def glance(x: Any) -> tuple[Any, ...]:
    """What a tensor says of itself without its memory being there."""
    return (
        str(x.dtype),
        tuple(x.shape),
        x._version,
        x.requires_grad,
        x.is_leaf,
        x._base is None,
        x.is_contiguous(),
        getattr(x, "mark", None),
    )


def array(x: Any) -> np.ndarray:
    x = x.detach().cpu()
    return (x.float() if x.dtype == tt.bfloat16 else x).numpy().copy()


# -- what talks: gradients
def _backward(m: Machine, s: Step, x: Any, values: list[Any]) -> None:
    if x.requires_grad:
        x.sum().backward(retain_graph=s.flag)


def _grad(m: Machine, s: Step, x: Any, values: list[Any]) -> None:
    if x.requires_grad:
        values += [g for g in tt.autograd.grad(x.sum(), m.parameters, create_graph=s.flag, allow_unused=True) if g is not None]


def _step(m: Machine, s: Step, x: Any, values: list[Any]) -> None:
    with tt.no_grad():
        for p in m.parameters:
            if p.grad is not None:
                p -= p.grad * 2 if s.flag else p.grad
                p.clamp_(-4, 4)


def _zero_grads(m: Machine, s: Step, x: Any, values: list[Any]) -> None:
    for p in m.parameters:
        if s.flag:
            p.grad = None
        elif p.grad is not None:
            p.grad.zero_()


def _scale_grad(m: Machine, s: Step, x: Any, values: list[Any]) -> None:
    if m.parameters[0].grad is not None:
        m.parameters[0].grad.mul_(2).clamp_(-8, 8)


def _optimize(m: Machine, s: Step, x: Any, values: list[Any]) -> None:
    m.optimizer.step()
    m.optimizer.zero_grad(set_to_none=s.flag)
    with tt.no_grad():
        for p in m.parameters:
            p.clamp_(-4, 4)


def _hook(m: Machine, s: Step, x: Any, values: list[Any]) -> None:
    if x.requires_grad and not x.is_leaf:
        x.register_hook(lambda g: g * 2)


def _leaf_hook(m: Machine, s: Step, x: Any, values: list[Any]) -> None:
    p = m.parameters[s.number % 2]
    if p.requires_grad:
        handle = p.register_post_accumulate_grad_hook(lambda t: m.shown.append(glance(t))) if s.flag else p.register_hook(lambda g: g * 2)
        if x.requires_grad:
            x.sum().backward(retain_graph=True)
        handle.remove()


def _retain(m: Machine, s: Step, x: Any, values: list[Any]) -> None:
    if x.requires_grad:
        x.retain_grad()


def _show_grad(m: Machine, s: Step, x: Any, values: list[Any]) -> None:
    if x.is_leaf or x.retains_grad:
        m.shown.append(None if x.grad is None else array(x.grad))


def _freeze(m: Machine, s: Step, x: Any, values: list[Any]) -> None:
    m.parameters[s.number % 2].requires_grad_(s.flag)


def _grad_of_kept(m: Machine, s: Step, x: Any, values: list[Any]) -> None:
    sought = [t for t in (*m.kept, values[-1]) if t.requires_grad]
    if x.requires_grad and sought:
        values += [g for g in tt.autograd.grad([x], sought, [tt.ones_like(x)], retain_graph=s.flag, allow_unused=True) if g is not None]


# -- the rest
def _drop(m: Machine, s: Step, x: Any, values: list[Any]) -> None:
    if len(values) > 7:
        del values[-1 - s.i % (len(values) - 7)]


def _region(m: Machine, s: Step, x: Any, values: list[Any]) -> None:
    with m.region():
        values.append(numeric(x) + 1)


def _raise(m: Machine, s: Step, x: Any, values: list[Any]) -> None:
    """An exception in the middle of a region, which does not know of it."""
    try:
        with m.region():
            values.append(small(numeric(x) * 3))
            values[-1].add_(s.number) if s.flag else x.detach().neg_()
            raise KeyError(s.number)
    except KeyError:
        values.append(numeric(x) - 1)


def _suspend(m: Machine, s: Step, x: Any, values: list[Any]) -> None:
    """A generator that waits inside of a region."""

    def turns(x: Any) -> Iterator[Any]:
        with m.region():
            for k in range(4):
                x = small(numeric(x) * 2 + k)
                yield x

    m.suspended = [*m.suspended[-1:], turns(x.detach())]
    values.append(next(m.suspended[-1]))


def _resume(m: Machine, s: Step, x: Any, values: list[Any]) -> None:
    if m.suspended:
        values += [y for y in [next(m.suspended[-1], None)] if y is not None]


def _thread(m: Machine, s: Step, x: Any, values: list[Any]) -> None:
    def work() -> None:
        with m.region() if s.flag else contextlib.nullcontext():
            values.append(small(numeric(x.detach()) + 2))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


def _numpy_write(m: Machine, s: Step, x: Any, values: list[Any]) -> None:
    if not x.requires_grad and x.ndim and m.device == "cpu":
        x.numpy()[:1] = 1


def _numpy(m: Machine, s: Step, x: Any, values: list[Any]) -> None:
    if not x.requires_grad and m.device == "cpu":
        m.held.append(x.numpy())


def _shared_write(m: Machine, s: Step, x: Any, values: list[Any]) -> None:
    m.shared[s.number % 3] += 1


def _number(m: Machine, s: Step, x: Any, values: list[Any]) -> None:
    values.append(values[-1] * (1 if numeric(x).sum().item() > 0 else 2) if values[-1].dtype != tt.bool else values[-1])


def _state_of_draws(m: Machine, s: Step, x: Any, values: list[Any]) -> None:
    if s.flag or m.draws is None:
        m.draws = tt.get_rng_state()
    else:
        tt.set_rng_state(m.draws)


def _value_error(m: Machine, s: Step, x: Any, values: list[Any]) -> None:
    """A mistake that only values show: an error at this line, or where they are asked for."""
    try:
        found = x[tt.tensor([0, 1 + s.number], device=x.device)]
        found.sum().item()
        values.append(found)
    except IndexError:
        m.shown.append("no such row")


def _shape_error(m: Machine, s: Step, x: Any, values: list[Any]) -> None:
    values.append(x + tt.ones(5, s.number + 2, 7, device=x.device))


Talk = Callable[[Machine, Step, Any, list[Any]], Any]
MODES: dict[str, Callable[[], Any]] = {
    "no grad": tt.no_grad, "enable grad": tt.enable_grad, "inference": tt.inference_mode, "autocast": lambda: tt.autocast("cpu", dtype=tt.bfloat16), "lazily": tt.lazy,
}  # fmt: skip
GRADIENTS: dict[str, Talk] = {
    "backward": _backward, "grad": _grad, "step": _step, "zero grads": _zero_grads, "scale grad": _scale_grad, "optimize": _optimize, "hook": _hook,
    "leaf hook": _leaf_hook, "retain": _retain, "show grad": _show_grad, "freeze": _freeze, "grad of kept": _grad_of_kept,
}  # fmt: skip
OTHERS: dict[str, Talk] = {
    "keep": lambda m, s, x, values: setattr(m, "kept", [*m.kept[-2:], x]),
    "drop": _drop,
    "ask": lambda m, s, x, values: m.shown.append(array(x.sum() if s.flag else x)),
    "number": _number,
    "print": lambda m, s, x, values: m.shown.append(str(tuple(x.shape)) if not s.flag else repr(numeric(x).long())),
    "look": lambda m, s, x, values: m.shown.append(look(x)),
    "look on": lambda m, s, x, values: m.shown.append(glance(x)),
    "same": lambda m, s, x, values: m.shown.append([x is v for v in values]),
    "mark": lambda m, s, x, values: setattr(x, "mark", s.number),
    "evaluate": lambda m, s, x, values: tt.evaluate(x),
    "region": _region,
    "raise": _raise,
    "suspend": _suspend,
    "resume": _resume,
    "thread": _thread,
    "collect": lambda m, s, x, values: gc.collect(0),
    "numpy write": _numpy_write,
    "numpy": _numpy,
    "shared write": _shared_write,
    "seed": lambda m, s, x, values: tt.manual_seed(s.number),
    "state of draws": _state_of_draws,
    "value error": _value_error,
    "shape error": _shape_error,
}


WAYS = ("eager", "one region", "a region each", "in and out")


def shown(program: Sequence[Step], runs: int, seed: int, way: str, device: str = "cpu", forget: bool = True) -> list[Any]:
    """What a program shows in some runs. `forget`: nothing is known of programs before."""
    if forget:
        here.own_segment = None
    machine = Machine(seed, device, way != "eager")
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
