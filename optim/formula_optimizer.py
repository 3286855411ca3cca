"""FormulaOptimizer: an optimizer whose step is a formula (kernels/optimizers), for all parameters of a group at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tritensor.ground.errors import DTypeError, ShapeError
from tritensor.ground.thread_state import here
from tritensor.ground.transforms import WrappedArray
from tritensor.ops.lazy_array import compute_now
from tritensor.optim.optimizer import Optimizer
from tritensor.optim.plan import Plan, load_decay_kinds, load_formula
from tritensor.optim.state import filled_like, new_step_count, to_number
from tritensor.tensor.core import Tensor
from tritensor.tensor.overriding import protocol

if TYPE_CHECKING:
    from tritensor.optim.batch import Batch


class FormulaOptimizer(Optimizer):
    """A subclass says in `_plan` which formula a group's settings mean, and in `_initial` where its states begin, if not at 0.

    On a GPU a step is at most three launches for each type and device among a group's parameters (up to 256 of them): the new addresses of
    the gradients, the numbers that follow from step counts, the step. On the CPU it is one call of machine code. With differentiable=True it
    is made of differentiable operations on each parameter, by the same formula.
    """

    found_inf: Tensor | None = None  # set by a GradScaler for the time of a step, which is left out where it is above 0
    _takes_found_inf = True
    _formulas: tuple[str, ...] = ()  # all that it may use, as formula_of takes them

    @property
    def _like_params(self) -> tuple[str, ...]:  # type: ignore[override]
        return tuple(dict.fromkeys(n for f in self._formulas for n in load_formula(f).states))

    @property
    def _scalars(self) -> tuple[str, ...]:  # type: ignore[override]
        return tuple(dict.fromkeys(("step", *(n for f in self._formulas for n in load_formula(f).scalars))))

    _not_below_zero: dict[str, str] = {}  # noqa: RUF012  (settings, and what messages call them)
    _check_group = Optimizer._refuse_unusable

    def _check(self, defaults: dict[str, Any]) -> None:
        self._check_rates(defaults)
        self._refuse_below(defaults, **self._not_below_zero)

    def _plan(self, group: dict[str, Any]) -> Plan:
        raise NotImplementedError(f"{type(self).__name__}: define _plan(group)")

    @staticmethod
    def _decay_settings(group: dict[str, Any], decoupled: bool = False) -> dict[str, Any]:
        """The part of a Plan that says of weight decay and direction what the group says."""
        weight_decay = group.get("weight_decay", 0.0)
        kinds = load_decay_kinds()
        kind = kinds.NONE if not isinstance(weight_decay, Tensor) and weight_decay == 0 else kinds.DECOUPLED if decoupled else kinds.COUPLED
        return {"weight_decay": weight_decay, "decay": kind, "maximize": group.get("maximize", False)}

    def _initial_value(self, name: str, p: Tensor, group: dict[str, Any]) -> float:
        return 0.0

    def _make_entry(self, p: Tensor, plan: Plan, group: dict[str, Any]) -> dict[str, Any]:
        """A parameter's state, complete; one of a formula that keeps nothing is not noted."""
        if not plan.formula.scalars and not plan.formula.states:
            return {}
        entry = self.state[p]
        for name in plan.formula.scalars:
            if name not in entry:
                entry[name] = new_step_count(self._initial_value(name, p, group))
        for name in plan.formula.states:
            # also a state that a loaded file holds as None
            if entry.get(name) is None:
                entry[name] = filled_like(p, self._initial_value(name, p, group))
            self._refuse_other(name, entry[name], p)
        return entry

    def _refuse_other(self, name: str, state: Tensor, p: Tensor) -> None:
        """Refuse a state that is not laid over its parameter element by element: machine code would write beyond it."""
        x, a = state._array, p._array
        if x.shape != a.shape or x.dtype != a.dtype or state.device != p.device:
            raise ShapeError(
                f"{type(self).__name__}.step: state {name!r} is {state.dtype.name} {tuple(x.shape)} on {state.device}, its parameter {p.dtype.name} "
                f"{tuple(a.shape)} on {p.device}: the parameter's data became another; give the state its form, or del optimizer.state[p] to begin anew"
            )

    def _update(self, group: dict[str, Any]) -> None:
        params = [p for p in group["params"] if p.grad is not None]
        if params:
            self._step(params, self._plan(group), group)

    def _step(self, params: list[Tensor], plan: Plan, group: dict[str, Any]) -> None:
        if group.get("differentiable"):
            # the differentiable step has no kernel that could read the flag itself
            if self.found_inf is not None and self.found_inf.item():
                return
            self._step_differentiably(params, plan, group)
            return
        if here.segment is not None:
            compute_now(*params)
        if protocol.tell is not None:  # there are classes that compute by themselves
            told = [p for p in params if WrappedArray in (type(p._array), type(p.grad._array))]  # type: ignore[union-attr]
            if told and (self.found_inf is None or not self.found_inf.item()):
                self._step_differentiably(told, plan, group)
            params = [p for p in params if not any([p is t for t in told])]
            if not params:
                return
        # tables of addresses are made once and kept: to make them takes longer than a step of small parameters
        kept: dict[Any, list[Batch]] = self.__dict__.setdefault("_batches", {})
        # parameters without a gradient take no part, so which take part may change from step to step
        key = (plan.formula, *map(id, params))
        batches = kept.get(key)
        if batches is None or not all([b.is_current(self.state) for b in batches]):
            taking_part = set(key)
            alive = {id(p) for g in self.param_groups for p in g["params"]}
            for other in [k for k in kept if not (taking_part.isdisjoint(k[1:]) and alive.issuperset(k[1:]))]:
                del kept[other]  # and with it the memory of parameters that a program has put others in the place of
            batches = kept[key] = self._make_batches(params, plan, group)
        name = f"{type(self).__name__}.step"
        for batch in batches:
            batch.step(plan, name, self.found_inf)

    def _make_batches(self, params: list[Tensor], plan: Plan, group: dict[str, Any]) -> list[Batch]:
        from tritensor.optim.batch import Batch

        alike: dict[Any, list[Tensor]] = {}
        for p in params:
            # kernels and machine code are compiled for one type and device each
            kind = p._array.dtype
            if not (p.is_floating_point() or (p.is_complex() and not p.is_cuda)) or kind.itemsize == 1:
                raise DTypeError(
                    f"{type(self).__name__}: a parameter of {p.dtype.name} on {p.device} cannot be stepped; cast it to a floating type"
                )
            alike.setdefault((p.device, kind), []).append(p)
        return [Batch(plan.formula, found, [self._make_entry(p, plan, group) for p in found]) for found in alike.values()]

    def _step_differentiably(self, params: list[Tensor], plan: Plan, group: dict[str, Any]) -> None:
        """The same step in differentiable operations: parameters are overwritten in the graph, states replaced."""
        from tritensor.kernels.parts import backends

        formula, whole = plan.formula, plan.formula.spelled(backends.on_tensors, *plan.variant)
        for p in params:
            entry = self._make_entry(p, plan, group)
            scalars, numbers = formula.row([to_number(entry[n]) for n in formula.scalars], plan.settings, plan.weight_decay, plan.decay)
            given = [x if isinstance(x, Tensor) else float(x) for x in numbers]
            value, *states = whole(p, p.grad, *[entry[n] for n in formula.states], *given)
            for n, x in zip(formula.scalars, scalars, strict=True):
                entry[n] = new_step_count(to_number(x))
            entry.update(zip(formula.states, states, strict=True))
            p.copy_(value)
