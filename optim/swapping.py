"""swap_in_optimizer_params_and_state: an optimizer that steps other tensors for a while."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tritensor.optim.optimizer import Optimizer
from tritensor.tensor.core import Tensor

_NAME = "swap_in_optimizer_params_and_state"


@contextmanager
def swap_in_optimizer_params_and_state(
    optimizer: Optimizer, swapin_parameters: dict[str, Tensor], swapin_optim_state: dict[str, Any]
) -> Iterator[None]:
    """Inside, the optimizer has these parameters, and the settings and state of a state_dict for them; afterwards what it had before.

    Args:
        optimizer: one that has state, as after its first step.
        swapin_parameters: tensors by any name, in the order of the optimizer's parameters.
        swapin_optim_state: as `optimizer.state_dict()` gives it: {"state": {number: ...}, "param_groups": [...]}. Writes into its tensors are
            seen by the caller, entries that a step adds or replaces are not.

    Raises:
        RuntimeError: an optimizer without state, or groups, keys or numbers that are not the optimizer's; nothing is changed then.
    """
    state, groups = _check_state(optimizer, swapin_parameters, swapin_optim_state)
    before, found = optimizer.state, [dict(g) for g in optimizer.param_groups]
    # tables of the optimizer's own parameters, which must not be found for others
    kept = optimizer.__dict__.pop("_batches", None)
    inside: defaultdict[Tensor, dict[str, Any]] = defaultdict(dict)
    try:
        for mine, (given, params) in zip(optimizer.param_groups, groups, strict=True):
            mine.update({k: v for k, v in given.items() if k != "params"}, params=params)
            for p, number in zip(params, given["params"], strict=True):
                inside[p] = dict(state.get(number, {}))
        optimizer.state = inside
        yield
        _write_back_numbers(optimizer, state, groups, inside)
    finally:
        for mine, was in zip(optimizer.param_groups, found, strict=True):
            # cleared, not replaced: the program may hold the groups' dicts
            mine.clear()
            mine.update(was)
        optimizer.state = before
        optimizer.__dict__.pop("_batches", None)
        if kept is not None:
            optimizer.__dict__["_batches"] = kept


def _write_back_numbers(
    optimizer: Optimizer, state: dict[Any, Any], groups: list[tuple[dict[str, Any], list[Tensor]]], inside: dict[Tensor, Any]
) -> None:
    """State that is a number, such as the step, is a new tensor after each step here: the caller's gets its value, as if it had been written in place."""
    for given, params in groups:
        for p, number in zip(params, given["params"], strict=True):
            for name in optimizer._scalars:
                was, now = state.get(number, {}).get(name), inside[p].get(name)
                if isinstance(was, Tensor) and isinstance(now, Tensor) and was is not now:
                    was.data.copy_(now)


def _check_state(
    optimizer: Optimizer, parameters: dict[str, Tensor], given: Any
) -> tuple[dict[Any, Any], list[tuple[dict[str, Any], list[Tensor]]]]:
    """The state, and for each group its settings and its parameters. Raises RuntimeError where they are not the optimizer's."""
    if not optimizer.state:
        raise RuntimeError(f"{_NAME} requires initialized optimizer state; take a step first, or load_state_dict")
    if not isinstance(given, dict) or not isinstance(given.get("state"), dict) or not isinstance(given.get("param_groups"), list):
        raise RuntimeError(
            f'{_NAME}: swapin_optim_state is no state_dict; give what optimizer.state_dict() has: "state" and "param_groups"'
        )
    state, groups = given["state"], given["param_groups"]
    if any(isinstance(k, Tensor) for k in state):
        raise RuntimeError(
            f"{_NAME} requires optimizer.state_dict()-style state keyed by packed parameter ids, not by the parameters themselves"
        )
    if any(isinstance(k, int) and not isinstance(v, dict) for k, v in state.items()):
        raise RuntimeError(f"{_NAME} requires per-parameter optimizer state entries to be dictionaries")
    if len(groups) != len(optimizer.param_groups):
        raise RuntimeError(
            f"{_NAME}: swapin_optim_state has a different number of parameter groups, {len(groups)}, than the live optimizer, "
            f"{len(optimizer.param_groups)}"
        )
    left, found = list(parameters.values()), []
    for i, (mine, group) in enumerate(zip(optimizer.param_groups, groups, strict=True)):
        numbers = _param_numbers(i, mine, group)
        if len(left) < len(numbers):
            raise RuntimeError(
                f"{_NAME}: {len(parameters)} parameters are too few for optimizer.param_groups; give one for each, in their order"
            )
        found.append((group, left[: len(numbers)]))
        left = left[len(numbers) :]
    extra = [k for k in state if k not in {n for group in groups for n in group["params"]}]
    if extra:
        raise RuntimeError(f"{_NAME}: got extra keys {extra!r} in swapin_optim_state['state'], which no group's \"params\" lists")
    return state, found


def _param_numbers(i: int, mine: dict[str, Any], group: Any) -> list[int]:
    numbers = group.get("params") if isinstance(group, dict) else None
    if not isinstance(numbers, list) or not all(isinstance(n, int) for n in numbers):
        raise RuntimeError(f'{_NAME}: param group {i} has no "params" of packed parameter ids, as optimizer.state_dict() writes them')
    if len(numbers) != len(mine["params"]):
        raise RuntimeError(
            f"{_NAME}: swapin_optim_state param group {i} has a different number of params, {len(numbers)}, than the live optimizer's, "
            f"{len(mine['params'])}"
        )
    unlike = [k for k in group if k not in mine], [k for k in mine if k not in group]
    if any(unlike):
        raise RuntimeError(
            f"{_NAME}: param group {i} must have the live group's keys. Keys only in swap-in: {unlike[0]}. Keys only in live: {unlike[1]}."
        )
    return numbers
