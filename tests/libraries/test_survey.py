"""Names that the survey of libraries reads from a source, and what it tells of those that are missing."""

from __future__ import annotations

import sys

import pytest

from tests.libraries import survey
from tritensor.tools import run_script

SOURCE = b"""
import torch.nn as nn
from torch.utils.data import dataloader as d
from torch import *
def later(x: nn.Linear, y=nn.Tanh) -> nn.ReLU:
    return nn.functional.relu(x).tolist(), other.nn.Conv2d, torch.eig
try:
    from torch.gone import name
except ImportError:
    import torch
class A(d._BaseDataLoaderIter):
    pass
if nn.new:
    nn.newer
"""


def test_names_are_read_with_their_aliases_and_whether_they_are_asked_for_at_once() -> None:
    found = survey.read(SOURCE)
    eager = {u.name for u in found.uses if u.at_import}
    listed = ("nn", "utils.data.dataloader", "nn.Linear", "nn.Tanh", "nn.ReLU", "utils.data.dataloader._BaseDataLoaderIter", "nn.new")
    assert eager == {"torch"} | {f"torch.{n}" for n in listed}
    late = {u.name for u in found.uses} - eager
    assert late == {"torch.nn.functional.relu", "torch.eig", "torch.gone.name", "torch.nn.newer"}
    assert found.attributes == {"tolist", "nn", "Conv2d"}


def test_the_first_part_that_is_missing_gathers_what_lies_behind_it() -> None:
    asked = {n: survey.Count() for n in ("torch.a.b", "torch.a.c", "torch.d", "torch.nowhere")}
    for i, count in enumerate(asked.values(), 1):
        count.files, count.libraries["lib"] = i, i
    found = survey.missing(
        asked, {"torch.a.b": 3, "torch.a.c": 3, "torch.d": 2, "torch.nowhere": 1}, {**dict.fromkeys(asked, 1), "torch.d": 2}
    )
    assert {name: c.files for name, c in found.items()} == {"torch.a": 3}
    assert found["torch.a"].line("torch.a").split() == ["3", "1", "0", "torch.a", "(lib)"]


def test_names_are_found_as_far_as_they_are_here() -> None:
    with run_script.opened():
        known = {
            n: survey.find(n) for n in ("torch", "torch.nn.modules.conv.Conv2d", "torch.nn.no_such.layer", "torch.utils.cpp_extension.load")
        }
        assert [parts for parts, _ in known.values()] == [1, 5, 2, 4]
        assert known["torch.nn.modules.conv.Conv2d"][1] is sys.modules["tritensor"].nn.Conv2d


def test_the_answer_of_another_process_is_read_after_whatever_it_printed() -> None:
    said = "import json, sys; print('hello'); print(json.dumps([{n: 1 for n in json.load(sys.stdin)}, ['r'], ['m']]))"
    assert survey.ask([sys.executable, "-c", said.replace("print(json", "sys.stdout.write(json")], ["torch"]) == (
        {"torch": 1},
        ["r"],
        ["m"],
    )
    with pytest.raises(survey.subprocess.CalledProcessError):
        survey.ask([sys.executable, "-c", "raise SystemExit(3)"], [])
