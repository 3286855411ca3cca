"""Configs: what the record says is worth trying must compute the same as the rule's own."""

from __future__ import annotations

from typing import Any

from tritensor.ops import replay
from tritensor.ops.tuning.config_choice import forced, noted
from tritensor.testing.questions.backward import backward_is_rule
from tritensor.testing.questions.cases import Case
from tritensor.testing.questions.forward import forward
from tritensor.testing.questions.question import question

MOST = 24  # configs tried for one key


@question
def other_configs(case: Case) -> list[str]:
    """Under each config that `configs=` lists for the keys of this call, forward and backward give what they give under the rule's."""
    op = case.op
    first = "float32" if "float32" in op.dtypes else op.dtypes[0]
    if op.configs is None or case.layout != "plain" or case.dtype != first:
        return []
    before = replay.enable(False)  # a recorded launch would go on under the config that it was recorded with
    try:
        return _under_each(case)
    finally:
        replay.enable(before)


def _under_each(case: Case) -> list[str]:
    with noted() as choices:
        found = _ask_here(case)
    if found:
        return []  # it is wrong under its own rule, which other questions say
    configs: dict[tuple[str, Any], None] = {}
    for choice in choices:
        if choice.kernel == case.op.name:
            configs |= {(choice.kernel, c): None for c in list(case.op.configs(choice.key))[:MOST] if c != choice.heuristic}  # type: ignore[misc]
    for kernel, config in configs:
        with forced(**{kernel: config}):
            found += [f"under the config {config}: {line}" for line in _ask_here(case)]
    return found


def _ask_here(case: Case) -> list[str]:
    return [f.said for f in (*forward(case), *backward_is_rule(case))]
