"""All questions, asked of one case."""

from __future__ import annotations

from tritensor.testing.questions.backward import backward_is_rule, user_calls
from tritensor.testing.questions.cases import Case
from tritensor.testing.questions.configs import other_configs
from tritensor.testing.questions.derivatives import rule_differentiates, rule_is_derivative
from tritensor.testing.questions.extremes import extremes
from tritensor.testing.questions.forward import cpu_is_reference, forward, shape_rule
from tritensor.testing.questions.question import Finding, Question
from tritensor.testing.questions.results import layout_rule
from tritensor.testing.questions.several_outputs import outputs_alone


def questions_for(case: Case, wild: bool = False) -> tuple[Question, ...]:
    """The questions that are asked of a case. 3 and 5 are about mathematics: they are asked once, in float64 on the CPU. `wild`: of kernels extremes too."""
    if case.on.type != "cpu":
        more = (extremes,) if wild and case.layout == "plain" else ()  # 24 launches an input, which no layout changes
        return forward, backward_is_rule, outputs_alone, other_configs, user_calls, layout_rule, *more
    first: tuple[Question, ...] = (shape_rule, cpu_is_reference, backward_is_rule, outputs_alone, user_calls, layout_rule)
    return (*first, rule_is_derivative, rule_differentiates) if case.dtype == "float64" else first


def ask(case: Case) -> list[Finding]:
    """All findings on a case."""
    return [line for one in questions_for(case) for line in one(case)]
