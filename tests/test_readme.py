"""The README's code runs, and its last line says what the README promises."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

import tritensor as tt

README = Path(__file__).parent.parent / "README.md"


def test_the_twelve_lines(capsys: pytest.CaptureFixture[str]) -> None:
    (code,) = re.findall(r"```python\n(import tritensor.*?)```", README.read_text(), re.DOTALL)
    assert len([line for line in code.splitlines() if line.strip()]) == 12
    exec(compile(code, str(README), "exec"), {})
    assert capsys.readouterr().out == "found the sine from y'' = -y: True\n"


def test_the_loop_that_is_written_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (code,) = re.findall(r"```python\n(from tritensor.training.*?)```", README.read_text(), re.DOTALL)
    data = [(tt.randn(4, 3), tt.tensor([0, 1, 1, 0]))] * 3
    model = tt.nn.Linear(3, 2)
    given = {"tt": tt, "model": model, "optimizer": tt.optim.SGD(model.parameters(), lr=0.0), "train_loader": data, "test_loader": data}
    monkeypatch.chdir(tmp_path)
    exec(compile(code, str(README), "exec"), given)
    assert len(given["history"]) == 3, "the loss stays where it is, so that two more epochs are one too many"
    assert (tmp_path / "out" / "last.safetensors").exists()


def test_pictures_and_links_are_there() -> None:
    prose = re.sub(r"```.*?```|`[^`]*`", "", README.read_text(), flags=re.DOTALL)  # kernel[grid](x) is no link
    for target in re.findall(r"\]\((?!http)([^)]+)\)", prose):
        assert (README.parent / target.partition("#")[0]).exists(), f"README.md points to {target}, which is not there"


def test_a_kernel_as_its_author_wrote_it(tmp_path: Path) -> None:
    (code,) = re.findall(r"```python\n(@triton.jit\ndef add_kernel.*?)```", README.read_text(), re.DOTALL)
    definition, call = code.rsplit("\n\n", 1)
    file = tmp_path / "add_kernel.py"  # Triton reads a kernel's source from its file
    file.write_text(f"import triton\nimport triton.language as tl\n\n\n{definition}")
    given = runpy.run_path(str(file))
    x, y = (tt.randn(3000, device="cuda") for _ in range(2))
    out = tt.empty_like(x)
    exec(call, {**given, "x": x, "y": y, "out": out, "n": 3000})
    assert tt.equal(out, x + y)
