"""LBFGS: a quasi-Newton method whose inverse Hessian is made of the last steps."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from tritensor.autograd.modes import enable_grad, no_grad
from tritensor.ops.table import ops
from tritensor.optim.line_search import Point, strong_wolfe
from tritensor.optim.optimizer import Optimizer
from tritensor.tensor.core import Tensor
from tritensor.tensor.public_api.publish import public

_CURVED = 1e-10  # a step whose curvature is below says nothing of the Hessian


class LBFGS(Optimizer):
    """Limited-memory BFGS (Nocedal and Wright, Numerical Optimization, algorithm 7.4): step(closure) takes up to max_iter steps, each along
    the direction that the last history_size steps and gradients suggest.

    Parameters stand in one group, on one device. The memory it takes is history_size + 1 times that of the parameters, twice.

    Args:
        lr: length of a step in units of the direction; the first guess of a line search.
        max_iter, max_eval: most iterations and evaluations of the loss in a step (max_eval: 1.25 max_iter).
        tolerance_grad, tolerance_change: ends where the largest component of the gradient, or of a step, or the loss's change is below.
        history_size: how many steps are kept.
        line_search_fn: None for steps of fixed length, or "strong_wolfe".

    Raises:
        ValueError: a setting that makes no sense; several groups; no parameters, or one that is no leaf.
        TypeError: step without a closure, or a closure that returns no loss.
    """

    def __init__(
        self, params: Iterable[Any], lr: float = 1, max_iter: int = 20, max_eval: int | None = None, tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9, history_size: int = 100, line_search_fn: str | None = None,
    ) -> None:  # fmt: skip
        super().__init__(params, {
            "lr": lr, "max_iter": max_iter, "max_eval": max_iter * 5 // 4 if max_eval is None else max_eval, "tolerance_grad": tolerance_grad,
            "tolerance_change": tolerance_change, "history_size": history_size, "line_search_fn": line_search_fn,
        })  # fmt: skip
        if len(self.param_groups) != 1:
            raise ValueError(
                f"LBFGS: {len(self.param_groups)} groups, and LBFGS doesn't support per-parameter options (parameter groups); give one list of parameters"
            )
        self._params: list[Tensor] = self.param_groups[0]["params"]

    _check_group = Optimizer._refuse_unusable

    def _check(self, defaults: dict[str, Any]) -> None:
        self._check_rates(defaults)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:  # type: ignore[override]
        """Take up to max_iter steps. `closure` clears the gradients, computes the loss, calls backward and returns the loss."""
        if closure is None:
            raise TypeError(
                "LBFGS.step: missing closure; give step(closure), a function that calls zero_grad(), computes the loss, calls backward() and returns it"
            )
        group = self.param_groups[0]
        if group["line_search_fn"] not in (None, "strong_wolfe"):
            raise RuntimeError(
                f"LBFGS: only 'strong_wolfe' is supported, not {group['line_search_fn']!r}; give that, or None for steps of fixed length"
            )
        with no_grad():
            return self._minimise(closure, group)

    # The default is there for its message alone. Wrappers of optimizers ask the signature whether a closure must be given, and it must.
    step.__signature__ = inspect.signature(lambda self, closure: None)  # type: ignore[attr-defined]

    def _minimise(self, closure: Callable[[], Any], group: dict[str, Any]) -> Any:
        state = self.state[self._params[0]]
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)
        first = self._run_closure(closure)
        loss, evaluations = float(first), 1
        state["func_evals"] += 1
        gradient = self._flat_gradient()
        if gradient.abs().max() <= group["tolerance_grad"]:
            return first
        taken = 0
        while taken < group["max_iter"]:
            taken += 1
            state["n_iter"] += 1
            d = self._direction(state, gradient, group["history_size"])
            lr = group["lr"]
            t: Any = lr.detach().reshape(()) if isinstance(lr, Tensor) else lr
            if state["n_iter"] == 1:
                # the first direction is the bare gradient, whose length says nothing of how far to go
                t = min(1.0, 1.0 / gradient.abs().sum()) * t
            state["prev_flat_grad"], state["prev_loss"] = gradient.clone(), loss
            slope = gradient.dot(d)
            state["t"] = t
            if slope > -group["tolerance_change"]:
                break
            before, used = loss, 0
            if group["line_search_fn"] is not None:
                # the search moves the parameters and puts these back: to subtract the step again would leave a rounding
                start, x = Point(0, loss, gradient.clone(), slope), [p.clone() for p in self._params]
                tried = partial(self._evaluate, closure, x, d)
                point, used = strong_wolfe(tried, start, t, d.abs().max(), group["max_eval"] - evaluations)
                loss, gradient, t = point.loss, point.gradient, point.t
                self._add_step(t, d)
            else:
                self._add_step(t, d)
                if taken != group["max_iter"]:  # else the next step begins with it
                    loss, used = float(self._run_closure(closure)), 1
                    gradient = self._flat_gradient()
            state["t"] = t
            evaluations += used
            state["func_evals"] += used
            if taken == group["max_iter"] or evaluations >= group["max_eval"] or gradient.abs().max() <= group["tolerance_grad"]:
                break
            if d.mul(t).abs().max() <= group["tolerance_change"] or abs(loss - before) < group["tolerance_change"]:
                break
        return first

    def _direction(self, state: dict[str, Any], gradient: Tensor, history_size: int) -> Tensor:
        """Minus the gradient times the inverse Hessian, by the two-loop recursion."""
        if state["n_iter"] == 1:
            state.update(d=gradient.neg(), t=None, old_dirs=[], old_stps=[], ro=[], H_diag=1)
            return state["d"]  # type: ignore[no-any-return]
        dirs, steps, ro = state["old_dirs"], state["old_stps"], state["ro"]
        y, s = gradient.sub(state["prev_flat_grad"]), state["d"].mul(state["t"])
        ys = y.dot(s)
        # a smaller curvature would enter the history by its reciprocal and spoil all later directions
        if ys > _CURVED:
            if len(dirs) == history_size:
                for kept in (dirs, steps, ro):
                    kept.pop(0)
            dirs.append(y)
            steps.append(s)
            ro.append(1.0 / ys)
            # the scale of the last step's curvature, so that a step of length 1 is a good guess
            state["H_diag"] = ys / y.dot(y)
        al = state.setdefault("al", [None] * history_size)
        q = gradient.neg()
        for i in reversed(range(len(dirs))):
            al[i] = steps[i].dot(q) * ro[i]
            q.add_(dirs[i], alpha=-float(al[i]))
        r = q.mul(state["H_diag"])
        for i in range(len(dirs)):
            r.add_(steps[i], alpha=float(al[i] - dirs[i].dot(r) * ro[i]))
        state["d"] = r
        return r  # type: ignore[no-any-return]

    @staticmethod
    def _run_closure(closure: Callable[[], Any]) -> Any:
        with enable_grad():
            loss = closure()
        if loss is None:
            raise TypeError("LBFGS.step: the closure returned None; make it return the loss")
        return loss

    def _flat_gradient(self) -> Tensor:
        """All gradients in one vector, zeros where a parameter has none, complex ones as pairs."""
        parts = []
        for p in self._params:
            g = ops.full(shape=tuple(p.shape), value=0, dtype=p._array.dtype, device=p.device) if p.grad is None else p.grad.detach()
            parts.append((public["view_as_real"](g) if g.is_complex() else g).reshape(-1))
        return public["cat"](parts)  # type: ignore[no-any-return]

    def _add_step(self, t: Any, d: Tensor) -> None:
        """p += t d."""
        at = 0
        for p in self._params:
            x = public["view_as_real"](p) if p.is_complex() else p
            x.add_(d[at : at + x.numel()].reshape(tuple(x.shape)), alpha=float(t))
            at += x.numel()

    def _evaluate(self, closure: Callable[[], Any], x: list[Tensor], d: Tensor, t: Any) -> Point:
        """The point t along the direction; the parameters are then put back to x."""
        self._add_step(t, d)
        loss, gradient = float(self._run_closure(closure)), self._flat_gradient()
        for p, old in zip(self._params, x, strict=True):
            p.copy_(old)
        return Point(t, loss, gradient, gradient.dot(d))
