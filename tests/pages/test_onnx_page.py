"""docs/onnx.md: its code runs, its table is fresh."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import tritensor as tt
from tests.pages import onnx_page
from tritensor.onnx import registry

TEXT = onnx_page.PAGE.read_text()


def test_its_table_is_fresh() -> None:
    assert onnx_page.written(TEXT) == TEXT, "python -m tests.pages.onnx_page"
    assert "| lu_factor" not in TEXT.split("| ops | why |")[0]


def test_its_code_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    code = "\n\n".join(re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL))
    there: dict[str, object] = {}
    try:
        exec(compile(code, str(onnx_page.PAGE), "exec"), there)
    finally:
        registry._registered.clear()
    x = tt.tensor([9.0, 20.0])
    np.testing.assert_allclose(there["program"](x)[0].numpy(), x.lgamma().numpy(), rtol=2e-3)  # type: ignore[operator]
    assert (tmp_path / "lenet.onnx").exists()
