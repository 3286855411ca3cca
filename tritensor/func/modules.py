"""Modules as functions: functional_call, stack_module_state, and what else `torch.func` has for them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tritensor.func.wrapping import settle
from tritensor.ground.errors import ArgumentError, TransformError
from tritensor.ground.pytree import described
from tritensor.ground.transforms import WrappedArray
from tritensor.nn.module import Module
from tritensor.nn.utils.stateless import _functional_call
from tritensor.ops.table import ops
from tritensor.tensor.core import Tensor


def functional_call(
    module: Module, parameter_and_buffer_dicts: Any, args: Any = None, kwargs: dict[str, Any] | None = None, *, tie_weights: bool = True,
    strict: bool = False,
) -> Any:  # fmt: skip
    """module(*args, **kwargs) with the tensors of a dictionary, by name, in place of its own parameters and buffers: a function of them.

    Args:
        parameter_and_buffer_dicts: a dictionary, or several, which must not name a tensor twice.
        args: a tuple, one argument, or None.
        tie_weights: a tensor that the module has under several names is replaced under all of them.
        strict: raise for names that the module has and the dictionaries lack, and the reverse.

    Raises:
        ValueError: a name in two dictionaries, or what is no dictionary. TypeError, RuntimeError: see nn.utils.stateless.
    """
    given = parameter_and_buffer_dicts
    if not isinstance(given, Mapping):
        if not isinstance(given, Sequence) or isinstance(given, str) or not all(isinstance(d, Mapping) for d in given):
            raise ArgumentError(
                f"functional_call: the parameters and buffers are {described(given)}; give a dict of tensors by name, or a sequence of dicts"
            )
        names = [name for d in given for name in d]  # counted before they are joined, which would let the last one win
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ArgumentError(f"functional_call: {', '.join(map(repr, twice))} stands in two of the dictionaries; name each tensor once")
        given = {name: x for d in given for name, x in d.items()}
    return _functional_call(module, given, args, kwargs, tie_weights=tie_weights, strict=strict)


def stack_module_state(models: Sequence[Module]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The parameters and the buffers of several models of one class, each stacked along a first dimension: an ensemble, for vmap of functional_call.

    Stacked parameters are leaves that require grad where the models' own do. Raises RuntimeError for no models, models of several classes, or in
    several modes of training.
    """
    found = list(models)
    if not found:
        raise TransformError("stack_module_state: there are no models; give at least one")
    kinds = {type(m) for m in found}  # the stacked state goes through one module's forward
    if len(kinds) > 1:
        raise TransformError(f"stack_module_state: the models are {', '.join(sorted(k.__name__ for k in kinds))}; give models of one class")
    if len({m.training for m in found}) > 1:
        raise TransformError("stack_module_state: some models are in training mode and some are not; call train() or eval() of all")
    params = {name: _stack_parts(name, [dict(m.named_parameters())[name] for m in found]) for name, _ in found[0].named_parameters()}
    buffers = {name: _stack_parts(name, [dict(m.named_buffers())[name] for m in found]) for name, _ in found[0].named_buffers()}
    return params, buffers


def _stack_parts(name: str, parts: list[Tensor]) -> Tensor:
    wants = [p.requires_grad for p in parts]
    if any(wants) and not all(wants):
        raise TransformError(f"stack_module_state: {name} requires grad in some models and not in others; make it the same in all")
    made: Tensor = ops.stack(*[p.detach() for p in parts], dim=0)
    return made.requires_grad_() if wants[0] and parts[0].is_leaf else made if not wants[0] else ops.stack(*parts, dim=0)


def functionalize(func: Callable[..., Any], *, remove: str = "mutations") -> Callable[..., Any]:
    """func: what it writes in place is part of the graph here, and nothing needs it written out. Raises ValueError for another `remove` than PyTorch's."""
    if remove not in ("mutations", "mutations_and_views"):
        raise ArgumentError(f"functionalize: remove is {remove!r}; it is 'mutations' or 'mutations_and_views'")

    @functools.wraps(func)
    def call(*args: Any, **kwargs: Any) -> Any:
        return func(*args, **kwargs)

    return call


def debug_unwrap(tensor: Tensor, *, recurse: bool = True) -> Tensor:
    """What lies under a tensor inside a transform: with vmap the batch, below all transforms, or below the innermost alone. For looking at only."""
    if not isinstance(tensor, Tensor):
        raise TypeError(f"debug_unwrap: tensor is {described(tensor)}; give a tensor")
    x = settle(tensor)
    while type(x._array) is WrappedArray:
        x = x._array.value
        if not recurse:
            break
    found: Tensor = x
    return found


def replace_all_batch_norm_modules_(root: Module) -> Module:
    """Let every BatchNorm below (and root itself) compute without running statistics, which cannot be kept for each example of a batch; returns root."""
    for m in root.modules():
        if type(m).__name__.startswith("BatchNorm"):
            m.running_mean = m.running_var = m.num_batches_tracked = None  # type: ignore[attr-defined]
            m.track_running_stats = False  # type: ignore[attr-defined]
    return root
