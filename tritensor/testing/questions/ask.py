"""All questions, asked of one case."""

from __future__ import annotations

from tritensor.testing.questions.backward import backward_is_rule, on_the_road
from tritensor.testing.questions.cases import Case
from tritensor.testing.questions.derivatives import rule_differentiates, rule_is_derivative
from tritensor.testing.questions.forward import forward, shape_rule
from tritensor.testing.questions.question import Question
from tritensor.testing.questions.results import layout_rule

QUESTIONS: tuple[Question, ...] = (shape_rule, forward, rule_is_derivative, backward_is_rule, rule_differentiates, on_the_road, layout_rule)


def ask(case: Case) -> list[str]:
    """All findings on a case. Questions 3 and 5 are about mathematics: they are asked once, in float64 on the CPU."""
    if case.on.type != "cpu":
        return forward(case) + backward_is_rule(case) + on_the_road(case) + layout_rule(case)
    found = shape_rule(case) + forward(case) + backward_is_rule(case) + on_the_road(case) + layout_rule(case)
    if case.dtype == "float64":
        found += rule_is_derivative(case) + rule_differentiates(case)
    return found
