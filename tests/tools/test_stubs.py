"""The stubs that editors read say what the functions say."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

import pytest

import tritensor as tt
from tritensor.tools import stubs

TEXTS = stubs.texts()


@pytest.mark.parametrize("path", TEXTS, ids=lambda p: "/".join(p.parts[-2:]))
def test_the_stub_is_fresh(path: Path) -> None:
    assert path.read_text() == TEXTS[path], "write it anew: python -m tritensor.tools.stubs"
    ast.parse(TEXTS[path])


def test_every_public_name_is_in_the_front_doors_stub() -> None:
    tree = ast.parse(TEXTS[stubs.PACKAGE / "__init__.pyi"])
    named = {n.name for n in tree.body if isinstance(n, ast.FunctionDef)}
    named |= {n.target.id for n in tree.body if isinstance(n, ast.AnnAssign) and isinstance(n.target, ast.Name)}
    named |= {t.id for n in tree.body if isinstance(n, ast.Assign) for t in n.targets if isinstance(t, ast.Name)}
    named |= {a.asname or a.name for n in tree.body if isinstance(n, ast.ImportFrom) for a in n.names}
    assert set(dir(tt)) <= named


def test_every_method_is_in_a_stub_or_in_the_source() -> None:
    text = TEXTS[stubs.PACKAGE / "tensor" / "methods.pyi"]
    for name in ("add", "add_", "sum", "T", "__add__", "__getitem__", "view", "cuda"):
        assert f"def {name}(" in text
    assert "def backward(" not in text  # it stands in the class itself
    assert "def svd_lowrank(" not in text


def test_what_a_stub_makes_of_a_function() -> None:
    def f(
        x: tt.Tensor, /, n: int | None = 2, *rest: float, kind: object = None, far: float = float("inf"), **more: str
    ) -> tuple[tt.Tensor, ...]:
        """One "line".

        Another."""
        raise AssertionError

    f.__annotations__ = {
        "x": "Tensor",
        "n": "int | None",
        "rest": "float",
        "kind": "np.ndarray",
        "far": "float",
        "more": "str",
        "return": "tuple[Tensor, ...]",
    }
    assert list(stubs.function("f", f)) == [
        "def f(x: Tensor, /, n: _builtins.int | None = 2, *rest: _builtins.float, kind: Any = None, far: _builtins.float = ..., "
        "**more: _builtins.str) -> tuple[Tensor, ...]:",
        '    """One "line"."""',
    ]
    assert inspect.signature(tt.add).parameters.keys() == {"input", "other", "alpha", "out"}
