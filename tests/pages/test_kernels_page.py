"""docs/kernels.md says what is so: its code runs, the names that it promises are there, the line of the static report that it explains can be read."""

from __future__ import annotations

import inspect
import linecache
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import tritensor as tt
from bench.static import table as static_table
from tritensor.ops.table import registry
from tritensor.testing import findings

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "kernels.md"
TEXT = PAGE.read_text()


@pytest.fixture
def the_name_is_free() -> Iterator[None]:
    yield
    for name in ("own_isru", "root_mean_square"):
        registry.pop(name, None)


def test_its_code_runs(the_name_is_free: None) -> None:
    code = "\n\n".join(re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL))
    linecache.cache[str(PAGE)] = (len(code), None, code.splitlines(True), str(PAGE))
    there: dict[str, object] = {"__name__": "kernels_page"}
    exec(compile(code, str(PAGE), "exec"), there)
    x = tt.linspace(-1, 1, 5)
    want = x / (1 + x * x).sqrt()
    for y in (x.own_isru(), x.clone().own_isru_(), tt.own_isru(x, out=tt.empty(5)), tt.ops.own_isru(x), tt.own_isru(x.to("cuda")).cpu()):
        tt.testing.assert_close(y, want)
    assert not findings("root_mean_square", dtypes=["float32", "float64"], extremes=True).lines()


def test_what_it_promises_is_there() -> None:
    (table,) = re.findall(r"\| name \| what it is \|\n\|---\|---\|\n(.*?)\n\n", TEXT, re.DOTALL)
    called = re.findall(r"`tt\.(op|elementwise|reduction|launch)\(([^`]*)\)`", table)
    assert {name for name, _ in called} == {"op", "elementwise", "reduction", "launch"}
    for name, given in called:
        own = set(inspect.signature(getattr(tt, name)).parameters)
        assert set(re.findall(r"\b(\w+)=", given)) <= own, name
    for name in re.findall(r"`tt\.(\w+)`", table):
        assert getattr(tt, name) is not None
    for name in ("restore", "refuse_kind", "normal_dims", "broadcast"):
        assert f".{name}`" in table
        assert callable(getattr(tt.table, name))
    assert tt.parts.maths.div is not None
    assert {"elementwise", "launch", "parts", "reduction"} <= set(dir(tt))
    with pytest.raises(
        AttributeError, match=r"'tritensor.kernels.parts.rows' has no attribute 'no_such_part'; docs/kernel_parts\.md lists what it has"
    ):
        tt.parts.rows.no_such_part  # noqa: B018


def test_promised_names_load_nothing_until_they_are_asked_for() -> None:
    code = """
import sys
import tritensor as tt
loaded = lambda: [m for m in sys.modules if m == "triton.language" or m.startswith("tritensor.kernels.parts.")]
tt.op, tt.Spec, tt.Sample, tt.Work, dir(tt)
assert not loaded(), loaded()
tt.elementwise
assert "tritensor.kernels.parts.elementwise" in loaded()
assert tt.parts.random_words.philox.__name__ == "tritensor.kernels.parts.random_words.philox"
assert tt.parts.cpu.blocks.blocked.__name__ == "blocked"
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_line_that_it_explains_can_be_read() -> None:
    (line,) = re.findall(r"```\n(softmax forward .*)\n```", TEXT)
    found = static_table.parse(line.partition("sm_90: ")[2])
    assert (found.registers, found.loads, found.stores, found.blocks, found.warps, found.loop) == (47, {16: 4}, {16: 2}, 5, 8, 501)
    assert (found.inner, found.shared) == ({16: 2}, 32)


def test_its_links_lead_somewhere() -> None:
    for target in re.findall(r"\]\(([\w./]+\.(?:md|py))(?:#[\w-]+)?\)", TEXT):
        assert (PAGE.parent / target).exists(), target
