"""The last lines of `make pages`: planted gaps are named there, whole things are not."""

from __future__ import annotations

import pytest

from tests.expressions import unasked as expressions
from tests.pages import missing
from tritensor.ops.table import registry


class Bare:
    """No example."""


def undocumented() -> None: ...


def test_gaps_are_named() -> None:
    assert list(missing.functions_without_text("F", {"undocumented": undocumented, "told": missing.missing})) == [
        "F.undocumented: no docstring",
    ]
    assert list(missing.classes_without_example("nn", {"Bare": Bare, "Linear": Bare})) == [
        "nn.Bare: no example in its docstring (>>> ...), which the site's tests would run"
    ]
    op = registry["isnan"]
    assert not list(missing.ops_without_text({"isnan": op}))


def test_names_that_nobody_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(expressions.public, "sspaddmm", undocumented)
    monkeypatch.setitem(expressions.public, "no_name_of_pytorchs", undocumented)
    assert "tt.sspaddmm: no line in tests/expressions/listed/ asks it" in list(missing.names_without_answers())
    assert expressions.unasked() == ["sspaddmm", "no_name_of_pytorchs"]
