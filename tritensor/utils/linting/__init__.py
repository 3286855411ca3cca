"""lint: known slips in a model, each with the path of the module and how to mend it. Nothing runs unless inputs are given."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from tritensor.nn.module import Module
from tritensor.utils.linting import sequence_rules, state_rules
from tritensor.utils.linting.report import Report as Report
from tritensor.utils.linting.report import Slip as Slip

# Asked of every module, by its path.
_RULES: tuple[Callable[[str, Module], Iterator[Slip]], ...] = (
    sequence_rules.bias_before_norm, sequence_rules.in_a_row, state_rules.not_registered, sequence_rules.settings, state_rules.modes,
)  # fmt: skip


def lint(model: Module, *inputs: Any, loss: Any = None, optimizer: Any = None) -> Report:
    """Look a model over for known slips.

    Args:
        inputs: what a call of the model takes; with them it runs, forward and backward, and what takes no part is told, with what the flow of tensors
            shows. The model is afterwards as it was.
        loss: the loss that its output goes to, a module such as nn.CrossEntropyLoss(), or its function in nn.functional.
        optimizer: what is to train it: parameters that it lacks are told, and a model in eval mode.

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
    found += sequence_rules.end(model, loss)
    for whole in (state_rules.shared, state_rules.values, state_rules.mixed):
        found += whole(model)
    if loss is not None or optimizer is not None:  # else it may be one that others learn from
        found += state_rules.frozen(model)
    if optimizer is not None:
        found += state_rules.in_optimizer(model, optimizer)
    if inputs:
        from tritensor.utils.linting.run_rules import on_sample

        found += on_sample(model, inputs, loss)
    return Report(dict.fromkeys(found))
