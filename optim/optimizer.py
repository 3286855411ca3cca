"""Optimizer: parameter groups, per-parameter state, saving and loading, and the frame of a step."""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from copy import deepcopy
from typing import Any

from tritensor.autograd.accumulate import zero_gradient
from tritensor.autograd.modes import enable_grad, no_grad, set_grad_enabled
from tritensor.ground.errors import CheckpointError
from tritensor.optim.hooks import Hooked, with_hooks
from tritensor.optim.hooks import register_optimizer_step_post_hook as register_optimizer_step_post_hook
from tritensor.optim.hooks import register_optimizer_step_pre_hook as register_optimizer_step_pre_hook
from tritensor.optim.state import adopt_state
from tritensor.tensor.core import Tensor

ParamsT = Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]]  # what optimizers take as parameters


class _Required:
    def __repr__(self) -> str:
        return "<required parameter>"


required: Any = _Required()  # as a default: every group must give the setting itself


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
    _scalars: tuple[str, ...] = ()  # state that is a number, kept as a float32 tensor

    def __init__(self, params: Iterable[Any], defaults: dict[str, Any]) -> None:
        self._check(defaults)
        self.defaults = defaults
        self.state: defaultdict[Tensor, dict[str, Any]] = defaultdict(dict)
        self.param_groups: list[dict[str, Any]] = []
        refuse_no_parameters(type(self).__name__, params)
        given = list(params)
        if not given:
            raise ValueError(
                f"{type(self).__name__}: "
                "optimizer got an empty parameter list, give at least one; did model.parameters() come from a model without parameters, or a used-up generator?"
            )
        # one list of parameters is a group with all defaults
        for group in given if isinstance(given[0], dict) else [{"params": given}]:
            self.add_param_group(group)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a dict with "params" and settings; those it does not give are filled in."""
        if not isinstance(param_group, dict):
            raise TypeError(f"{type(self).__name__}.add_param_group: param_group must be a dict, but got {type(param_group).__name__}")
        if "params" not in param_group:
            raise KeyError(
                f"{type(self).__name__}: a parameter group has {', '.join(map(repr, param_group)) or 'nothing'}; it needs 'params'"
            )
        params = param_group["params"]
        # a state dict knows parameters by their number in the order
        if isinstance(params, set):
            raise TypeError(
                f"{type(self).__name__}: optimizer parameters need an order that is the same every time, and a set has none; give a list"
            )
        params, names = _split_names([params] if isinstance(params, Tensor) else list(params))
        seen = {p for group in self.param_groups for p in group["params"]}
        for i, p in enumerate(params):
            if not isinstance(p, Tensor):
                raise TypeError(
                    f"{type(self).__name__}: optimizer can only optimize Tensors, but parameter {i} is {type(p).__name__}; give tensors"
                )
            # backward gives a tensor in the middle of the graph no gradient to step by
            if not p.is_leaf and not p.retains_grad and not self.defaults.get("differentiable"):
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
        with_ = "without" if names is None else "with"
        named = {} if names is None else {"param_names": names}
        if any(("param_names" in group) != (names is not None or "param_names" in param_group) for group in self.param_groups):
            raise ValueError(
                f"{type(self).__name__}: all optimizer param groups should be with/without names. cannot add param group {with_} names to the optimizer; "
                "give (name, parameter) in all groups or in none"
            )
        settings = {**self.defaults, **param_group}
        for key, value in settings.items():
            if value is required:
                raise ValueError(
                    f"{type(self).__name__}: parameter group didn't specify a value of required optimization parameter {key}; give it"
                )
        self._check_group(settings)
        param_group.update(params=params, **named)  # the caller's dict is the group, as in PyTorch
        for key, default in self.defaults.items():
            param_group.setdefault(key, default)
        self.param_groups.append(param_group)

    def _check(self, defaults: dict[str, Any]) -> None:
        """Refuse arguments of the constructor that make no sense. Nothing here: what `lr` means in an optimizer of the user's is his
        (Adafactor's may be None)."""

    def _check_group(self, settings: dict[str, Any]) -> None:
        """Refuse settings of a group that no step can be computed with. Whether they make sense is asked of the constructor's alone, as in
        PyTorch: a group may go up with a rate below 0, or name `nesterov` and leave its momentum at 0."""

    def _refuse_unusable(self, settings: dict[str, Any]) -> None:
        """Refuse what is no number where the default is one, and pairs of another length than the default's."""
        name = type(self).__name__
        for key, default in self.defaults.items():
            value = settings[key]
            if isinstance(default, (tuple, list)) and (not hasattr(value, "__len__") or len(value) != len(default)):
                raise ValueError(f"{name}: Invalid {key}: {value}; give {len(default)} numbers")
            if isinstance(default, (int, float, Tensor)) and not isinstance(default, bool) and (value is None or isinstance(value, str)):
                raise TypeError(f"{name}: {key} is {value!r}, a {type(value).__name__}; give a number")
        self._refuse_many(settings)

    def _refuse_corrections(self, settings: dict[str, Any], second: bool = True) -> None:
        """Refuse betas by which a correction of averages that begin at 0 divides by nothing, or (`second`) takes the root of less."""
        self._refuse_unusable(settings)
        one, two = settings["betas"]
        if one == 1 or (second and two > 1):
            at, beta, why = (0, one, "not be 1") if one == 1 else (1, two, "be at most 1")
            raise ValueError(f"{type(self).__name__}: Invalid beta parameter at index {at} of a group: {beta}; it must {why}")

    def _refuse_many(self, settings: dict[str, Any]) -> None:
        """Refuse a learning rate that is a tensor of more or less than one number."""
        lr = settings.get("lr")
        if isinstance(lr, Tensor) and lr.numel() != 1:
            raise ValueError(f"{type(self).__name__}: Tensor lr must be 1-element, not of shape {tuple(lr.shape)}; give one number")

    def _check_rates(self, defaults: dict[str, Any]) -> None:
        self._refuse_many(defaults)
        self._refuse_below(defaults, lr="learning rate", weight_decay="weight_decay value")

    def _refuse_below(self, defaults: dict[str, Any], **named: str) -> None:
        """Refuse settings below 0, called as given."""
        for key, called in named.items():
            value = defaults.get(key, 0.0)
            if value is None or isinstance(value, str):
                raise TypeError(f"{type(self).__name__}: {called} is {value!r}, a {type(value).__name__}; give a number")
            if not float(value) >= 0:
                raise ValueError(f"{type(self).__name__}: Invalid {called}: {value}; it must be 0 or more")

    def _check_betas(self, defaults: dict[str, Any]) -> None:
        """Refuse what is no pair of numbers in [0, 1)."""
        if len(defaults["betas"]) != 2:
            raise ValueError(f"{type(self).__name__}: Invalid betas: {defaults['betas']}; give two numbers")
        for i, beta in enumerate(defaults["betas"]):
            if not 0 <= beta < 1:
                raise ValueError(f"{type(self).__name__}: Invalid beta parameter at index {i}: {beta}; it must be in [0, 1)")

    @with_hooks
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update all parameters that have a gradient. `closure`, where given, computes the loss and its gradients first; its result is returned."""
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        with enable_grad() if self.defaults.get("differentiable") else no_grad():
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
                if set_to_none:  # every step of most programs: without a call
                    p.grad = None
                else:
                    zero_gradient(p)

    def state_dict(self) -> dict[str, Any]:
        """{"state": {number: ...}, "param_groups": [...]} with parameters numbered in order; state tensors are the live ones."""
        for hook in self._list_hooks("state_pre"):
            hook(self)
        # tensors themselves would tie a file to this process; numbers also fit a model built anew
        numbers: dict[Tensor, int] = {}
        for i, p in enumerate(p for group in self.param_groups for p in group["params"]):
            numbers.setdefault(p, i)  # one that comes again keeps its first number
        groups = [
            {**{k: v for k, v in group.items() if k != "params"}, "params": [numbers[p] for p in group["params"]]}
            for group in self.param_groups
        ]
        found = {"state": {numbers[p] if isinstance(p, Tensor) else p: s for p, s in self.state.items()}, "param_groups": groups}
        for hook in self._list_hooks("state_post"):
            if (changed := hook(self, found)) is not None:
                found = changed
        return found

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take settings and state from a state_dict; state goes to the parameters' devices and types.

        Raises CheckpointError when its groups are not this optimizer's in number and size; nothing is changed then.
        """
        # a hook may change the dict that it is given, and the caller's stays as it is
        state_dict = state_dict.copy()
        for hook in self._list_hooks("load_pre"):
            if (changed := hook(self, state_dict)) is not None:
                state_dict = changed
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
                            f"{type(self).__name__}.load_state_dict: {name} of parameter {number} is {tuple(value.shape)}, "
                            f"the parameter {tuple(p.shape)}; give the state of these parameters, in their order"
                        )
        loaded: defaultdict[Any, dict[str, Any]] = defaultdict(dict)
        for number, entries in state.items():
            p = params.get(number)
            loaded[number if p is None else p] = (
                deepcopy(entries) if p is None else {k: adopt_state(v, p, k, self._scalars) for k, v in entries.items()}
            )
        for mine, other in zip(self.param_groups, groups, strict=True):
            for name in (
                mine.keys() - other.keys() - {"param_names", *self.defaults}
            ):  # a schedule's initial_lr, which the loaded group had not yet
                del mine[name]
            mine.update({k: v for k, v in other.items() if k != "params"})
        # by __setstate__, which subclasses override to give old groups their new settings
        self.__setstate__({"state": loaded, "param_groups": self.param_groups})
        for hook in self._list_hooks("load_post"):
            hook(self)

    def __getstate__(self) -> dict[str, Any]:
        """What is copied and pickled: all but hooks, which may be any function, and what is made anew."""
        return {k: v for k, v in self.__dict__.items() if k not in ("_hooks", "_batches", "_stepping")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take what was copied, pickled or loaded. A subclass whose groups have got new settings gives older groups theirs here."""
        self.__dict__.update(state)

    def __repr__(self) -> str:
        groups = [
            "\n".join([f"Parameter Group {i}", *[f"    {k}: {group[k]}" for k in sorted(group) if k != "params"], ""])
            for i, group in enumerate(self.param_groups)
        ]
        return f"{type(self).__name__} (\n" + "\n".join(groups) + ")"


def _split_names(params: list[Any]) -> tuple[list[Any], list[str] | None]:
    """Parameters and, where they come as pairs, their names."""
    pairs = [p for p in params if isinstance(p, tuple)]
    if not pairs:
        return params, None
    if len(pairs) != len(params):
        raise ValueError(
            "all optimizer params should be with/without names. Some param names are missing; give named_parameters() or parameters()"
        )
    return [p for _, p in pairs], [name for name, _ in pairs]


def refuse_no_parameters(name: str, params: Any) -> None:
    """Refuse what is given in place of parameters: a tensor, a model, a state dict."""
    if isinstance(params, Tensor):
        raise TypeError(
            f"{name}: params argument given to the optimizer should be an iterable of Tensors or dicts, but got a Tensor; give [tensor]"
        )
    of_tensors = hasattr(params, "__iter__") and not isinstance(params, Iterator) and all(isinstance(p, Tensor) for p in params)
    if callable(getattr(params, "parameters", None)) and not of_tensors:  # a ParameterList is both
        raise TypeError(f"{name}: params is a model, {type(params).__name__}; give model.parameters()")
    if isinstance(params, dict):
        raise TypeError(
            f'{name}: params is a dict; give model.parameters(), or a list of dicts, of which each has "params": [{{"params": ..., "lr": ...}}]'
        )
    if not isinstance(params, Iterable):
        raise TypeError(f"{name}: params is {type(params).__name__}; give model.parameters(), or a list of tensors")


def refuse_together(name: str, *, foreach: bool | None = None, fused: bool | None = None, differentiable: bool = False) -> None:
    """Refuse ways of stepping that exclude each other in PyTorch. Each alone is accepted; steps here are always of all parameters at once."""
    if fused and differentiable:
        raise RuntimeError(f"{name}: `fused` does not support `differentiable`; give one of them")
    if fused and foreach:
        raise RuntimeError(f"{name}: `fused` and `foreach` cannot be `True` together; give one of them, or neither")


def _use_grad_for_differentiable(step: Callable[..., Any]) -> Callable[..., Any]:
    """A step that records gradients where the optimizer's defaults say differentiable, and not elsewhere; optimizers written for PyTorch wrap theirs."""

    @functools.wraps(step)
    def step_differentiably(self: Any, *args: Any, **kwargs: Any) -> Any:
        with set_grad_enabled(bool(self.defaults.get("differentiable"))):
            return step(self, *args, **kwargs)

    return step_differentiably
