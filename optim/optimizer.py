"""Optimizer: parameter groups, per-parameter state, saving and loading, and the frame of a step."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from copy import deepcopy
from typing import Any

from tritensor.autograd.modes import enable_grad, no_grad
from tritensor.cuda.streams.capture import capturing, refusal
from tritensor.errors import CheckpointError
from tritensor.optim.hooks import Hooked, with_hooks
from tritensor.table import ops
from tritensor.tensor.core import Tensor


class Optimizer(Hooked):
    """Base of optimizers: `param_groups` (dicts of "params" and settings), `state` per parameter, `step`.

    A subclass gives its settings to `__init__` and updates the parameters of one group in `_update`; overriding `step` works too.

    Args:
        params: parameters, or dicts with "params" and settings of their own. For a parameter a pair (name, parameter) may stand, as
            `named_parameters()` gives them: the group then has its "param_names".
        defaults: settings of groups that do not give them.

    Raises:
        ValueError: no parameters, a parameter that is not a leaf, or one given twice; some with a name and some without.
        TypeError: something else than tensors or dicts.
    """

    _like_params: tuple[str, ...] = ()  # state that has its parameter's shape: a state dict where it has not does not fit

    def __init__(self, params: Iterable[Any], defaults: dict[str, Any]) -> None:
        self.defaults = defaults
        self.state: defaultdict[Tensor, dict[str, Any]] = defaultdict(dict)
        self.param_groups: list[dict[str, Any]] = []
        if isinstance(params, Tensor):
            raise TypeError(
                f"{type(self).__name__}: params argument given to the optimizer should be an iterable of Tensors or dicts, but got a Tensor; give [tensor]"
            )
        given = list(params)
        if not given:
            raise ValueError(
                f"{type(self).__name__}: "
                "optimizer got an empty parameter list, give at least one; did model.parameters() come from a model without parameters, or a used-up generator?"
            )
        for group in given if isinstance(given[0], dict) else [{"params": given}]:
            self.add_param_group(group)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a dict with "params" and settings; those it does not give are filled in."""
        if not isinstance(param_group, dict):
            raise TypeError(f"{type(self).__name__}.add_param_group: param_group must be a dict, but got {type(param_group).__name__}")
        params = param_group["params"]
        if isinstance(params, set):
            raise TypeError(
                f"{type(self).__name__}: optimizer parameters need an order that is the same every time, and a set has none; give a list"
            )
        params, names = _named([params] if isinstance(params, Tensor) else list(params))
        seen = {p for group in self.param_groups for p in group["params"]}
        for i, p in enumerate(params):
            if not isinstance(p, Tensor):
                raise TypeError(
                    f"{type(self).__name__}: optimizer can only optimize Tensors, but parameter {i} is {type(p).__name__}; give tensors"
                )
            if not p.is_leaf and not p.retains_grad:
                raise ValueError(
                    f"{type(self).__name__}: "
                    f"can't optimize a non-leaf Tensor: parameter {i} of shape {tuple(p.shape)} is computed by {p.grad_fn!r}; detach() it"
                )
            if p in seen:
                raise ValueError(
                    f"{type(self).__name__}: "
                    f"some parameters appear in more than one parameter group, or twice: parameter {i} of shape {tuple(p.shape)}; give each once"
                )
            seen.add(p)
        named = {} if names is None else {"param_names": names}
        if any(("param_names" in group) != (names is not None or "param_names" in param_group) for group in self.param_groups):
            raise ValueError(
                f"{type(self).__name__}: all optimizer param groups should be with/without names; give (name, parameter) in all groups or in none"
            )
        self._check({**self.defaults, **param_group})
        param_group.update(params=params, **named)  # the caller's dict is the group, as in PyTorch
        for key, default in self.defaults.items():
            param_group.setdefault(key, default)
        self.param_groups.append(param_group)

    def _check(self, group: dict[str, Any]) -> None:
        """Refuse settings that make no sense; subclasses add theirs."""
        if "lr" in group and not float(group["lr"]) >= 0:
            raise ValueError(f"{type(self).__name__}: Invalid learning rate: {group['lr']}; it must be 0 or more")
        if "weight_decay" in group and not group["weight_decay"] >= 0:
            raise ValueError(f"{type(self).__name__}: Invalid weight_decay value: {group['weight_decay']}; it must be 0 or more")

    @with_hooks
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update all parameters that have a gradient. `closure`, where given, computes the loss and its gradients first; its result is returned."""
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        with no_grad():
            for group in self.param_groups:
                if group["params"]:
                    self._update(group)
        return loss

    def _update(self, group: dict[str, Any]) -> None:
        raise NotImplementedError(f"{type(self).__name__}: define _update(group), or step(closure)")

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drop the gradients of all parameters; set_to_none=False fills them with zeros instead."""
        for group in self.param_groups:
            for p in group["params"]:
                if set_to_none or p.grad is None:
                    p.grad = None
                else:
                    p.grad.requires_grad_(False) if p.grad.is_leaf else p.grad.detach_()
                    p.grad.zero_()

    def state_dict(self) -> dict[str, Any]:
        """{"state": {number: ...}, "param_groups": [...]} with parameters numbered in order; state tensors are the live ones."""
        for hook in self._hooks_of("state_pre"):
            hook(self)
        numbers = {p: i for i, p in enumerate(p for group in self.param_groups for p in group["params"])}
        groups = [
            {**{k: v for k, v in group.items() if k != "params"}, "params": [numbers[p] for p in group["params"]]}
            for group in self.param_groups
        ]
        found = {"state": {numbers[p] if isinstance(p, Tensor) else p: s for p, s in self.state.items()}, "param_groups": groups}
        for hook in self._hooks_of("state_post"):
            found = _or_else(hook(self, found), found)
        return found

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take settings and state from a state_dict; state goes to the parameters' devices and types.

        Raises CheckpointError when its groups are not this optimizer's in number and size; nothing is changed then.
        """
        state_dict = state_dict.copy()
        for hook in self._hooks_of("load_pre"):
            state_dict = _or_else(hook(self, state_dict), state_dict)
        groups, state = deepcopy(state_dict["param_groups"]), state_dict["state"]
        have, given = ([len(g["params"]) for g in groups_] for groups_ in (self.param_groups, groups))
        if have != given:
            raise CheckpointError(
                f"{type(self).__name__}.load_state_dict: it has parameter groups of {given} parameters, this optimizer of {have}; give it the same groups"
            )
        numbers = [n for g in groups for n in g["params"]]
        params = dict(zip(numbers, (p for g in self.param_groups for p in g["params"]), strict=True))
        for number, entries in state.items():
            if number in params:
                for name in self._like_params:
                    value, p = entries.get(name), params[number]
                    if isinstance(value, Tensor) and value.shape != p.shape:
                        raise CheckpointError(
                            f"{type(self).__name__}.load_state_dict: {name} of parameter {number} is {tuple(value.shape)}, the parameter {tuple(p.shape)}"
                        )
        loaded: defaultdict[Any, dict[str, Any]] = defaultdict(dict)
        for number, entries in state.items():
            p = params.get(number)
            loaded[number if p is None else p] = deepcopy(entries) if p is None else {k: _like(v, p, k) for k, v in entries.items()}
        self.state = loaded
        for mine, other in zip(self.param_groups, groups, strict=True):
            mine.update({k: v for k, v in other.items() if k != "params"})
        for hook in self._hooks_of("load_post"):
            hook(self)

    def __getstate__(self) -> dict[str, Any]:
        """What is copied and pickled: all but hooks, which may be any function, and what is made anew."""
        return {k: v for k, v in self.__dict__.items() if k not in ("_hooks", "_counts", "_stepping")}

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for i, group in enumerate(self.param_groups):
            lines.append(f"Parameter Group {i}")
            lines += [f"    {k}: {group[k]}" for k in sorted(group) if k != "params"]
        return "\n".join([*lines, ")"])


def _named(params: list[Any]) -> tuple[list[Any], list[str] | None]:
    """Parameters and, where they come as pairs, their names."""
    pairs = [p for p in params if isinstance(p, tuple)]
    if not pairs:
        return params, None
    if len(pairs) != len(params):
        raise ValueError(
            "all optimizer params should be with/without names; some names are missing: give named_parameters() or parameters()"
        )
    return [p for _, p in pairs], [name for name, _ in pairs]


def _or_else(given: Any, other: Any) -> Any:
    return other if given is None else given


def zeros_like(p: Tensor) -> Tensor:
    """Fresh state for a parameter: zeros of its shape and type, where it is. Raises CaptureError in the capture of a CUDA graph."""
    refuse_in_capture(p)
    return ops.full(shape=tuple(p.array.shape), value=0, dtype=p.array.dtype, device=p.device)


def refuse_in_capture(p: Tensor) -> None:
    """State that came to exist in the capture of a CUDA graph would be made anew, as zeros, by every replay."""
    if p.device.type == "cuda" and capturing(p.device.index or 0) is not None:
        raise refusal(
            "makes the optimizer's state, which every replay would make anew and so forget",
            "take one step before the capture (forward, backward, step), so that moments and step counts exist",
        )


def rate_of(lr: Any, p: Tensor) -> tuple[float, Tensor | None]:
    """A group's "lr" as (number, None), or (0, tensor) where it is a tensor on a GPU and p is on one, too: kernels read it there,
    and a CUDA graph sees it change."""
    if isinstance(lr, Tensor):
        return (0.0, lr.detach()) if lr.device.type == p.device.type == "cuda" else (float(lr), None)
    return float(lr), None


def read_rate(group: dict[str, Any]) -> Any:
    """A group's learning rate as a number."""
    lr = group["lr"]
    return lr.item() if isinstance(lr, Tensor) else lr


def write_rate(group: dict[str, Any], lr: float) -> None:
    """Set a group's learning rate. A tensor stays the tensor it is, so that a CUDA graph that reads it sees the new value."""
    if isinstance(group["lr"], Tensor):
        with no_grad():
            group["lr"].fill_(lr)
    else:
        group["lr"] = lr


def refuse_differentiable(name: str, differentiable: bool) -> None:
    """A step is one kernel that overwrites the parameter: no gradient leads through it."""
    if differentiable:
        raise ValueError(f"{name}: differentiable=True is not supported; write the step with out-of-place tensor operations instead")


def _like(value: Any, p: Tensor, name: str) -> Any:
    """A copy of loaded state, floating tensors in the parameter's type and place, also inside dicts and lists; the step count as a number."""
    if isinstance(value, dict):
        return {k: _like(v, p, k) for k, v in value.items()}
    if type(value) in (list, tuple):
        return type(value)(_like(v, p, "") for v in value)
    if not isinstance(value, Tensor):
        return deepcopy(value)
    if name == "step":
        return int(value.item())
    value = value.detach()
    return value.to(device=p.device, dtype=p.dtype if value.is_floating_point() else value.dtype, copy=True)
