"""docs/api.md, docs/ops.md and docs/performance.md say what is so."""

from __future__ import annotations

import re
from types import ModuleType

import pytest

import tritensor as tt
from tests.pages import api_page, ops_page, performance_page
from tritensor.ops.table import registry


@pytest.mark.parametrize("page", [api_page, ops_page, performance_page], ids=["api", "ops", "performance"])
def test_the_page_is_fresh(page: ModuleType) -> None:
    assert page.PAGE.read_text() == page.page(), f"write it anew: python -m {page.__name__}"


def test_here_and_not_here() -> None:
    assert api_page.is_here("", "add")
    assert api_page.is_here("Tensor", "add_")
    assert api_page.is_here("Tensor", "grad")
    assert api_page.is_here("jit", "script")
    assert not api_page.is_here("jit", "save")  # a name that raises when it is called
    assert not api_page.is_here("", "sspaddmm")
    assert not api_page.is_here("Tensor", "to_sparse")
    assert api_page.is_here("distributions", "Wishart")


def test_differences_are_told_by_name() -> None:
    assert any("Python's pickle" in said for said in api_page.differs("", "save"))
    assert any("gelu(inf)" in said for said in api_page.differs("nn.functional", "gelu"))
    assert not api_page.differs("", "cos")


def test_the_totals_are_of_the_modules() -> None:
    rows = [
        [int(n) for n in re.findall(r"\| (\d+)", line)]
        for line in api_page.PAGE.read_text().splitlines()
        if line.startswith(("| torch", "| all"))
    ]
    assert [sum(column) for column in zip(*rows[:-1], strict=True)] == rows[-1]
    assert all(names == sum(parts) for names, *parts in rows)


def test_every_op_has_a_line() -> None:
    text = ops_page.PAGE.read_text()
    assert all(f"| `{name}` |" in text for name in registry)
    assert ops_page.types(("int64", "float16", "bfloat16", "float32", "float64")) == "floats, int64"
    assert "- `hstack`" in text
    assert f"{len(registry)} ops;" in text
    assert tt.hstack is not None


def test_no_sentence_is_cut() -> None:
    """A docstring's first sentence may take several lines there."""
    text = ops_page.PAGE.read_text()
    for name, op in registry.items():
        told = ops_page.said(name, op)
        assert f"| `{name}` | {told} |" in text, name
        whole, plain = " ".join(op.doc.split()), told.replace("\\", "")
        assert not whole.startswith(plain) or whole[len(plain) :][:2] in ("", ".", ". "), name
    assert ops_page.first_sentence("start, start + step, ... before\nend. Not more") == "start, start + step, ... before end"
    assert ops_page.first_sentence("x (Howard et al. 2019).\n\nMore.") == "x (Howard et al. 2019)"


def test_families_are_folders_of_kernels() -> None:
    found = re.findall(r"^### (.+) \((\d+)\)$", ops_page.PAGE.read_text(), re.MULTILINE)
    folders = {p.name for p in (ops_page.PAGE.parents[1] / "kernels").iterdir() if (p / "__init__.py").exists()}
    assert {name.lower().replace(" ", "_") for name, _ in found} == folders - {"parts"}
    assert sum(int(n) for _, n in found) == len(registry)
