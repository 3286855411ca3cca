"""Docstrings as reStructuredText: no character of theirs is markup but what the house's style means."""

from __future__ import annotations

import pytest
from docutils.core import publish_string

from docs.site.docstrings import rst, summary


def resolve(name: str) -> str | None:
    return {"add": "tritensor.add", "ShapeError": "tritensor.ShapeError"}.get(name)


def text_of(docstring: str) -> str:
    """What docutils reads, as its own pseudo-XML. Raises for a warning."""
    source = "\n".join(rst(docstring, lambda _: None))
    return publish_string(source, writer="pseudoxml", settings_overrides={"halt_level": 2, "report_level": 2}).decode()


@pytest.mark.parametrize(
    "words",
    [
        "x * other * 2, values_ and |x|, a_ b__, 2 * 3*",
        "*args and **kwargs",
        "A. an enumeration it is not",
        "1. nor this",
        "[1] is no footnote, <x> no link, :role: no role",
        "x[.., index[i], ..] = y\\n",
        ":field: at the beginning",
        ".. nor a directive:: here",
        "|s| is no substitution",
        "- ",
        "===",
    ],
)
def test_words_are_words(words: str) -> None:
    out = text_of(words)
    assert words.strip().removeprefix("- ") in " ".join(out.split()) or words == "- "
    for mark in (
        "emphasis",
        "strong",
        "reference",
        "enumerated",
        "substitution",
        "footnote",
        "field",
        "comment",
        "target",
        "title",
        "transition",
    ):
        assert f"<{mark}" not in out, out


def test_backticks_are_code_and_lead_to_what_they_name() -> None:
    assert rst("See `add`, `x + 1` and `add`s.", resolve)[0] == (
        "\\ See \\ :py:obj:`add <tritensor.add>`\\ , \\ ``x + 1``\\  and \\ :py:obj:`add <tritensor.add>`\\ s."
    )
    assert rst("an odd ` stands for itself", resolve)[0] == "\\ an odd \\` stands for itself"
    assert rst("Raises ShapeError, TypeError.", resolve)[0] == "\\ Raises \\ :py:exc:`ShapeError <tritensor.ShapeError>`\\ , TypeError."
    assert rst("no `` code", resolve)[0] == "\\ no \\` code"


def test_sections_become_lists() -> None:
    lines = rst(
        """A sum.

    Args:
        x, y: tensors of one shape,
            or numbers.
        *rest: more.

    Raises:
        ShapeError: shapes that do not fit.

    The end.""".replace("\n    ", "\n"),
        resolve,
    )
    assert lines == [
        "\\ A sum.", "", "",
        ":Arguments:", "   - ``x``, ``y``: \\ tensors of one shape, or numbers.", "   - ``*rest``: \\ more.", "",
        ":Raises:", "   - :py:obj:`ShapeError <tritensor.ShapeError>`: \\ shapes that do not fit.", "",
        "\\ The end.", "", "",
    ]  # fmt: skip


def test_examples_and_indented_code_stay_as_they_are() -> None:
    said = "\n".join(rst("Do this::\n\n    a * b_\n    `c`\n\nThen:\n\n>>> x * 2\n4\n>>> y\n\nThe end.", resolve))
    assert ".. code-block:: python\n\n   a * b_\n   `c`" in said
    assert ".. code-block:: pycon\n\n   >>> x * 2\n   4\n   >>> y" in said
    assert "Do this:\n" in said
    assert said.rstrip().endswith("The end.")


def test_lists() -> None:
    assert rst("Two:\n- one,\n  and a half\n- `add`", resolve)[:4] == [
        "\\ Two:",
        "",
        "- \\ one, and a half",
        "- \\ \\ :py:obj:`add <tritensor.add>`\\ ",
    ]
    assert rst("on_start(x): first\non_end: last,\n    of all", resolve)[:2] == [
        "- ``on_start(x)``: \\ first",
        "- ``on_end``: \\ last, of all",
    ]


def test_the_summary_is_the_first_sentence() -> None:
    assert summary("x + 1. And more.", resolve) == "\\ x + 1."
    assert summary("of 0.5. values, e.g. `a`. B", resolve) == "\\ of 0.5. values, e.g. \\ ``a``\\ ."
    assert summary("Trains::\n\n    code", resolve) == "\\ Trains."
    assert summary("", resolve) == "\\ "
