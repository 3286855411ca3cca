"""Modules without parameters of their own: functions of a tuple of parameters, and of one of buffers."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

from tritensor.func.modules import functional_call, stack_module_state
from tritensor.nn.module import Module
from tritensor.tensor.core import Tensor


class FunctionalModule(Module):
    """module(parameters, *args, **kwargs)."""

    def __init__(self, stateless_model: Module, param_names: Sequence[str], buffer_names: Sequence[str] = ()) -> None:
        super().__init__()
        self.stateless_model = stateless_model
        self.param_names, self.buffer_names = tuple(param_names), tuple(buffer_names)

    def forward(self, params: Sequence[Tensor], *args: Any, **kwargs: Any) -> Any:
        return functional_call(self.stateless_model, _named("params", self.param_names, params), args, kwargs)


class FunctionalModuleWithBuffers(FunctionalModule):
    """module(parameters, buffers, *args, **kwargs)."""

    def forward(self, params: Sequence[Tensor], buffers: Sequence[Tensor], *args: Any, **kwargs: Any) -> Any:  # type: ignore[override]
        state = _named("params", self.param_names, params) | _named("buffers", self.buffer_names, buffers)
        return functional_call(self.stateless_model, state, args, kwargs)


def _named(what: str, names: tuple[str, ...], given: Sequence[Tensor]) -> dict[str, Tensor]:
    if len(given) != len(names):
        raise ValueError(
            f"FunctionalModule: {what} holds {len(given)} tensors for {len(names)} names; give one for each of {', '.join(names) or 'none'}"
        )
    return dict(zip(names, given, strict=True))


def make_functional_with_buffers(
    model: Module, disable_autograd_tracking: bool = False
) -> tuple[FunctionalModuleWithBuffers, tuple[Tensor, ...], tuple[Tensor, ...]]:
    """The module as a function of its parameters and buffers, and copies of these.

    With disable_autograd_tracking the copies of the parameters do not require grad. Buffers that the call writes are written where they were given.
    """
    own = copy.deepcopy(model)
    params, buffers = dict(own.named_parameters()), dict(own.named_buffers())
    if disable_autograd_tracking:
        for p in params.values():
            p.requires_grad_(False)
    return FunctionalModuleWithBuffers(copy.deepcopy(own), tuple(params), tuple(buffers)), tuple(params.values()), tuple(buffers.values())


def make_functional(model: Module, disable_autograd_tracking: bool = False) -> tuple[FunctionalModule, tuple[Tensor, ...]]:
    """The module as a function of its parameters, and copies of these. Raises RuntimeError for a module that has buffers."""
    if any(True for _ in model.buffers()):
        raise RuntimeError("make_functional: the module has buffers; call make_functional_with_buffers")
    made, params, _ = make_functional_with_buffers(model, disable_autograd_tracking)
    return FunctionalModule(made.stateless_model, made.param_names), params


def combine_state_for_ensemble(models: Sequence[Module]) -> tuple[FunctionalModuleWithBuffers, tuple[Tensor, ...], tuple[Tensor, ...]]:
    """The first of several models of one class as a function, and the parameters and buffers of all, each stacked: for vmap.

    Raises RuntimeError for no models, models of several classes, or in several modes of training.
    """
    params, buffers = stack_module_state(models)
    return make_functional_with_buffers(models[0])[0], tuple(params.values()), tuple(buffers.values())
