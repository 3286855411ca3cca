"""Function lint: known slips in a model, each with the path of the module and how to mend it. Nothing runs unless inputs are given."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from tritensor.nn.module import Module
from tritensor.utils.linting import sequence_rules, state_rules
from tritensor.utils.linting.report import Report as Report
from tritensor.utils.linting.report import Slip as Slip

# Each is called with the path of every module and the module.
_RULES: tuple[Callable[[str, Module], Iterator[Slip]], ...] = (
    sequence_rules.check_bias_before_norm, sequence_rules.check_neighbours, state_rules.check_registration, sequence_rules.check_settings,
    state_rules.check_modes,
)  # fmt: skip


def lint(model: Module, *inputs: Any, loss: Any = None, optimizer: Any = None) -> Report:
    """Check a model for known slips.

    Args:
        inputs: the arguments of a call; with them the model runs, forward and backward: parameters that take no part are named, and slips in the flow
            of tensors. The model is afterwards as it was.
        loss: the loss that its output goes to, a module such as nn.CrossEntropyLoss(), or its function in nn.functional.
        optimizer: the one that is to train it: parameters that it lacks are named, and a model in eval mode.

    Raises:
        TypeError: for what is no module, or no optimizer.
    """
    if not isinstance(model, Module):
        raise TypeError(f"lint: {type(model).__name__} is not a Module; give the model itself")
    if optimizer is not None and not isinstance(getattr(optimizer, "param_groups", None), list):
        raise TypeError(f"lint: optimizer is {type(optimizer).__name__}; give one such as optim.AdamW(model.parameters())")
    found = Report()
    for path, module in model.named_modules():
        for rule in _RULES:
            found += rule(path, module)
    found += sequence_rules.check_end(model, loss)
    for whole in (state_rules.check_shared, state_rules.check_values, state_rules.check_mixed):
        found += whole(model)
    if loss is not None or optimizer is not None:  # else it may be one that others learn from
        found += state_rules.check_frozen(model)
    if optimizer is not None:
        found += state_rules.check_optimizer(model, optimizer)
    if inputs:
        from tritensor.utils.linting.run_rules import check_sample

        found += check_sample(model, inputs, loss)
    return Report(dict.fromkeys(found))  # a module that stands in two places is found twice
