"""One way to name ops on every command line: names, patterns, files, packages."""

from __future__ import annotations

import importlib.metadata
import warnings
from pathlib import Path
from typing import Any

import pytest

import tritensor as tt
from tritensor.ground.errors import PluginError
from tritensor.ops.table import Ops, lookup, ops, registry, restore
from tritensor.ops.table.op_selection import UnknownOpError, select_ops

OP = """
import numpy as np
import tritensor as tt


def chosen_half(x: np.ndarray) -> np.ndarray:
    return x / 2


tt.op("chosen_half", chosen_half, shape=lambda x: tt.Spec(x.shape, x.dtype), forward=lambda x: x, rule=lambda g: g / 2, backward=lambda g: g,
      samples=lambda rng: [tt.Sample(rng.standard_normal(3))])
"""


@pytest.fixture
def file(tmp_path: Path) -> Any:
    path = tmp_path / "half_ops.py"
    path.write_text(OP)
    yield path
    registry.pop("chosen_half", None)


def names(*asked: str) -> list[str]:
    return [op.name for op in select_ops(asked)]


def test_names_patterns_commas_and_order() -> None:
    assert names("softmax,sum", "add") == ["softmax", "sum", "add"]
    assert names("sum", "su?", "sum") == ["sum", "sub"]
    assert names() == list(registry)


def test_a_file_gives_the_ops_it_registers_and_runs_once(file: Path) -> None:
    assert names(str(file)) == ["chosen_half"]
    assert names(str(file), "chosen_*") == ["chosen_half"]


def test_what_gives_nothing_is_named(tmp_path: Path) -> None:
    with pytest.raises(UnknownOpError, match=r"no op is called 'sofmax'; did you mean softmax"):
        select_ops(["sofmax"])
    with pytest.raises(UnknownOpError, match=r"no op matches 'zz\*'"):
        select_ops(["zz*"])
    with pytest.raises(UnknownOpError, match=r"none\.py: no such file"):
        select_ops([str(tmp_path / "none.py")])
    (tmp_path / "nothing_here.py").write_text("x = 1\n")
    with pytest.raises(UnknownOpError, match="registers no op"):
        select_ops([str(tmp_path / "nothing_here.py")])


def test_a_file_that_raises_is_named_with_its_line_and_leaves_nothing(file: Path) -> None:
    good = file.read_text()
    for wrong, said in (
        (good + "x = undefined\n", r"half_ops\.py: NameError: name 'undefined' is not defined \(line \d+: x = undefined\); mend the file"),
        (good + "def f(:\n", r"half_ops\.py: SyntaxError: invalid syntax \(line \d+: def f\(:\)"),
        (
            good.replace("backward=lambda g: g,", ""),
            r"half_ops\.py: op 'chosen_half' was not registered: \(line \d+: tt\.op\(.*\n  - backward is missing",
        ),
    ):
        file.write_text(wrong)
        with pytest.raises(UnknownOpError, match=said):
            select_ops([str(file)])
        assert not dict.__contains__(registry, "chosen_half")
    file.write_text(good)
    assert names(str(file)) == ["chosen_half"]


def test_a_function_that_is_no_op_is_told_from_one() -> None:
    with pytest.raises(AttributeError, match=r"no op is called 'unsqueeze'; tritensor\.unsqueeze is a function made of ops: call that"):
        ops.unsqueeze  # noqa: B018
    with pytest.raises(AttributeError, match=r"no op is called 'qqqq'; docs/ops\.md lists them"):
        ops.qqqq  # noqa: B018


class Broken:
    name, value, dist = "broken", "broken_ops:ops", None

    def load(self) -> None:
        raise ZeroDivisionError("by nought")


class Misspelt(Broken):
    name, value = "misspelt", "misspelt_ops"

    def load(self) -> None:
        compile("def f(:\n    pass", "misspelt_ops.py", "exec")


def test_a_package_that_raises_is_named_with_the_mend(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: [Broken(), Misspelt()] if group == "tritensor.ops" else [])
    monkeypatch.setattr(Ops, "plugins_read", False)
    said = r"plug-in 'broken' \(tritensor.ops: broken = broken_ops:ops\) raises .* ZeroDivisionError: by nought; mend it, or pip uninstall broken"
    for asked in (lambda: tt.ops.no_such_op, lambda: select_ops(["no_such_op"])):
        with pytest.raises(PluginError, match=said) as caught:
            asked()
        assert "SyntaxError: invalid syntax (misspelt_ops.py:1: def f(:); mend it, or pip uninstall misspelt" in str(caught.value)


class Whole(Broken):
    name, value = "whole", "whole_ops"

    def load(self) -> None:
        tt.op("chosen_whole", _identity, shape=lambda x: tt.Spec(x.shape, x.dtype), samples=lambda rng: [tt.Sample(rng.normal(size=3))], view=True,
              rule=lambda g: g)  # fmt: skip


def _identity(x: Any) -> Any:
    return x[...]


def test_a_package_that_raises_takes_nothing_from_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: [Broken(), Whole()] if group == "tritensor.ops" else [])
    monkeypatch.setattr(Ops, "plugins_read", False)
    monkeypatch.setattr(lookup, "_told_of", set())
    with pytest.warns(UserWarning, match="the plug-in 'broken' .* raises"):
        assert tt.ops.chosen_whole(tt.ones(2)).tolist() == [1.0, 1.0]
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # it is told once
        assert {"conv", "softmax"} & {op.name for op in select_ops(["conv*", "softmax"])}
    del registry["chosen_whole"]


REPLACING = """
import numpy as np
import triton
import tritensor as tt


@triton.jit
def _doubled(x):
    return x + x


tt.elementwise("chosen_rint", _doubled, None, np.rint, kinds=("float",))
tt.elementwise("hardsigmoid", _doubled, None, lambda x: x + x, kinds=("float",), replace=True)
tt.ops.hardswish
"""


def test_a_file_that_replaces_an_op_is_said_to_register_it(tmp_path: Path) -> None:
    """And one whose reference is numpy's own, but none of those that it makes load."""
    path = tmp_path / "replacing_ops.py"
    path.write_text(REPLACING)
    try:
        assert sorted(names(str(path))) == ["chosen_rint", "hardsigmoid"]
        assert registry["hardsigmoid"].owner.file == str(path)
    finally:
        registry.pop("chosen_rint", None)
        restore("hardsigmoid")
    assert registry["hardsigmoid"].owner.module == "tritensor.kernels.elementwise.piecewise_activations"
