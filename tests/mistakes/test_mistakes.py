"""Every listed mistake raises what is kept of it, word for word, and every message has the house's form: function, what was given, how to mend it."""

from __future__ import annotations

import difflib
import inspect
import re
from collections.abc import Iterator

import pytest

import tritensor as tt
from tests.mistakes import asking
from tests.mistakes.asking import DEVICES, Mistake

ROWS = list(asking.mistakes())
# Messages of another form, with the reason: {(function, class)}.
OTHER_FORM = {
    ("assert_close", "ValueError"): "PyTorch's own words, which tests of tests match",
    ("assert_close", "TypeError"): "as above",
    ("load_state_dict", "CheckpointError"): "PyTorch's report, a line for each key",
}
# How to mend it: something that is to be done, or what would be right.
TO_DO = (
    "give|use|cast|move|call|make|leave|reshape|compare|exchange|convert|wrap|pad|name|detach|choose|write|clone|set|pass|put|add|take|drop|"
    "do it|assign|ask|reduce|export|divide|transpose|define|pad them|did you mean|at least one|expand|multiply"
)
MENDS = re.compile(
    rf"(?:^|[;,:.?] |\bor |\band |\()(?:{TO_DO})\b|\b(?:must|takes|needs|only)\b|[;,:] (?:they|both|it is|it has|there are) |of size \d+|holds tensors"
)
BARE = re.compile(
    r"unsupported operand|object has no attribute|not supported between|positional argument|could not convert|inhomogeneous|setting an array element"
    r"|object is not|invalid literal|out of bounds for|list index|cannot be interpreted|ufunc|NoneType|<class|<function"
)
INTERNAL = re.compile(r"\bops\.|_kernel\b|\bkernels\.|tritensor\.\w+\.\w+\.|\blambda\b|\.py\b(?!:\d+, found)")


def test_the_table_is_the_file() -> None:
    listed = [(m.family, m.code) for m in ROWS]
    kept = [(family, code) for family, rows in asking.read().items() for code in rows]
    assert len(set(listed)) == len(listed), "a row stands twice"
    assert listed == kept, "rows were added or moved: python -m tests.mistakes.record"
    assert len(listed) >= 200
    assert len({m.function for m in ROWS}) >= 120, "of many functions"


@pytest.mark.quick
@pytest.mark.parametrize("family", dict.fromkeys(m.family for m in ROWS))
def test_the_messages_are_those_kept(family: str) -> None:
    found = []
    for mistake in [m for m in ROWS if m.family == family]:
        now, kept = asking.answers(mistake), asking.read()[mistake.family][mistake.code]
        if now != kept:
            lines = [[f"{device}: {': '.join(said)}" for device, said in answers.items()] for answers in (kept, now)]
            found.append(f"{mistake.code}\n" + "\n".join(difflib.ndiff(*lines)))
    if found:
        pytest.fail("\n".join([*found, "Where the new words are meant: python -m tests.mistakes.record"]), pytrace=False)


def test_the_form() -> None:
    kept = asking.read()
    found = [
        f"{mistake.code} on {device}: {text}\n    {problem}"
        for mistake in ROWS
        for device, (kind, text) in kept[mistake.family][mistake.code].items()
        for problem in _problems(mistake, kind, text)
    ]
    assert not found, "\n".join(found)


def _problems(mistake: Mistake, kind: str, text: str) -> Iterator[str]:
    """What is wrong with the form of a message."""
    if not kind:
        yield "is accepted in silence"
    if not kind or (mistake.function, kind) in OTHER_FORM:
        return
    head = f"{mistake.function}: "
    rest = text.removeprefix(head)
    if not text.startswith(head):
        yield f"does not begin with {head!r}"
    if mistake.given not in rest:
        yield f"does not say {mistake.given!r}, which was given"
    if not MENDS.search(rest):
        yield "does not say how to mend it"
    if "\n" in text or len(text) > 400:
        yield "is not one line"
    if found := BARE.search(text):
        yield f"passes on Python's or numpy's words: {found[0]}"
    if found := INTERNAL.search(text):
        yield f"names what is inside: {found[0]}"
    if letter := _letter(mistake.function, rest):
        yield f"calls an argument {letter!r}, which has another name"


def _letter(function: str, text: str) -> str:
    """A letter by which a message calls what the public function calls otherwise."""
    f = getattr(tt, function, None) or getattr(tt.nn.functional, function, None)
    if not inspect.isfunction(f):
        return ""
    own = set(inspect.signature(f).parameters)
    if function in OPERATORS:  # a @ b has no names
        return ""
    found = re.match(r"(x|a|b)(?: \(|'s | is | on | has )", text)
    return found[1] if found and found[1] not in own else ""


OPERATORS = {
    "add",
    "sub",
    "mul",
    "div",
    "pow",
    "matmul",
    "lt",
    "floor_divide",
    "remainder",
    "bitwise_and",
    "bitwise_or",
    "neg",
    "bitwise_not",
    "bitwise_left_shift",
}


def test_the_rules_refuse() -> None:
    assert not MENDS.search("shape (2, 3) has a negative size")
    assert MENDS.search("shape (-2, 3) has a negative size; give sizes of 0 or more")
    assert BARE.search("unsupported operand type(s) for +: 'Tensor' and 'NoneType'")
    assert _letter("mm", "a (2, 3) @ b (2, 3)") == "a"
    assert not _letter("mm", "input (2, 3) @ mat2 (2, 3)")
    assert DEVICES == ("cpu", "cuda")
