"""The ledger: what another run did is taken over, another tree's is told as such, and what is no ledger of this GPU is refused by name."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.gpu.lease.ledger import WORDS, Ledger, LedgerError, first_line, of_this_gpu, read
from tests.lease.fake_steps import IDENTITY


@pytest.fixture
def before(tmp_path: Path) -> Path:
    """A ledger with a proof, figures, and items of both outcomes."""
    ledger = Ledger(tmp_path, IDENTITY)
    ledger.item("smoke", {"item": "relu/float32", "outcome": "passed", "seconds": 0.1, "findings": []})
    ledger.item("smoke", {"item": "gelu/float32", "outcome": "failed", "seconds": 0.1, "findings": ["off by 2\nfar"]})
    ledger.note("smoke", outcome="failed", figures="1 of 2", errors=["gelu/float32: off by 2"])
    ledger.note("host", outcome="passed", figures="x + y 4.1 us")
    return ledger.path


def gone_on(path: Path, folder: Path, **changed: str) -> Ledger:
    ledger = Ledger(folder, IDENTITY | changed)
    ledger.go_on(of_this_gpu(path, "NVIDIA Test 9000"), ["smoke"])
    return ledger


def test_the_same_tree_goes_on(before: Path, tmp_path: Path) -> None:
    ledger = gone_on(before, tmp_path / "next")
    assert ledger.entry("smoke").done
    assert ledger.entry("host").done
    assert ledger.entry("smoke").items["gelu/float32"] == ["failed", 0.1, "off by 2"]
    assert not ledger.older


@pytest.mark.parametrize("what", ["tree", "driver", "triton"])
def test_another_trees_proofs_are_asked_again_and_its_figures_are_marked(what: str, before: Path, tmp_path: Path) -> None:
    ledger = gone_on(before, tmp_path / "next", **{what: "other"})
    assert ledger.entry("smoke").outcome == ""
    assert not ledger.entry("smoke").items
    assert (ledger.entry("host").figures, ledger.entry("host").older, ledger.entry("host").done) == ("x + y 4.1 us", "c" * 12, False)
    assert ledger.older[0]["steps"] == {"smoke": ["failed", 0.0, "1 of 2"], "host": ["passed", 0.0, "x + y 4.1 us"]}
    ledger.write()
    third = gone_on(ledger.path, tmp_path / "third", **{what: "third"})
    assert third.entry("host").older == "c" * 12, "the tree that they are of stays"


def test_a_foreign_file_is_refused_by_name(before: Path, tmp_path: Path) -> None:
    for text, why in (
        ("{", "no JSON"),
        ("[]", "no ledger"),
        ('{"rows": {}}', "no ledger"),
        ('{"lease": 99, "steps": {}}', "another format"),
    ):
        path = tmp_path / "foreign.json"
        path.write_text(text)
        with pytest.raises(LedgerError, match=f"{path}.*{why}"):
            read(path)
    with pytest.raises(LedgerError, match=r"nowhere\.json: No such file"):
        read(tmp_path / "nowhere.json")
    with pytest.raises(LedgerError, match=f"{before}: is of NVIDIA Test 9000, and this GPU is NVIDIA Other"):
        of_this_gpu(before, "NVIDIA Other")


def test_errors_are_short(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path, IDENTITY)
    ledger.item("smoke", {"item": "a", "outcome": "failed", "findings": ["\n  \n" + "x" * 10_000]})
    assert len(ledger.entry("smoke").items["a"][2]) == WORDS
    assert first_line("") == ""


def test_thirteen_thousand_items_stay_below_the_limit(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path, IDENTITY)
    for i in range(13_000):
        ledger.item(
            "suite walk",
            {"item": f"tests/gpu/test_walk.py::test_five_questions[an_op_{i}/bfloat16]", "outcome": "failed", "findings": ["x" * 999]},
        )
    ledger.write()
    assert ledger.path.stat().st_size < 15 << 20
    assert len(json.loads(ledger.path.read_text())["steps"]["suite walk"]["items"]) == 13_000
