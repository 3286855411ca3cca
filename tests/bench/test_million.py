"""The table of functions on a million elements: every call can be evaluated, small, and the command says what is slow."""

from __future__ import annotations

import functools
import importlib.util
import re

import pytest

import tritensor as tt
from bench.cpu import million, ops
from bench.cpu.million_calls import CALLS
from tests.loops import each


@each("call", CALLS)
def test_every_call_names_what_is_there(call: str) -> None:
    compile(call, "call", "eval")
    for space, name in re.findall(r"\b([TF])\.([\w.]+)", call):
        found = functools.reduce(getattr, name.split("."), tt if space == "T" else tt.nn.functional)
        assert found is not None


def test_a_call_is_evaluated_in_either_library() -> None:
    with tt.no_grad():
        assert million.compiled(tt, "T.sum(k.float()) + (i < j).sum() * 0")().item() > 0


@pytest.mark.skipif(importlib.util.find_spec("torch") is not None, reason="torch is here")
def test_without_torch_it_says_what_to_do() -> None:
    with pytest.raises(SystemExit, match="torch is not installed here; install it"):
        ops.main(["--peer"])


def test_an_unknown_argument_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        ops.main(["--peeer"])
    assert "--peeer" in capsys.readouterr().err
