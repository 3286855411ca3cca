"""Calls of public scripts for several ranks besides the usual ones, on 2 ranks, one way each."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

import tritensor as tt
from tests.distributed.ranks import succeed
from tritensor.distributed.backends.nccl import library


@pytest.mark.parametrize("part", ["wrapped", "checkpointed", "keywords", "optimizers", "ahead", "named"])
def test_names_that_public_scripts_use(part: str) -> None:
    succeed("scripts_of_others.py", 2, part)


def test_save_and_load_under_older_names(tmp_path: Path) -> None:
    succeed("scripts_of_others.py", 2, "saved", str(tmp_path))


def test_a_group_ends_while_checkpoints_are_written(tmp_path: Path) -> None:
    succeed("scripts_of_others.py", 2, "unawaited", str(tmp_path))
    assert all((tmp_path / str(i) / "metadata.json").exists() for i in range(6))


def test_the_version_of_nccl_is_three_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    from tritensor.cuda import nccl

    monkeypatch.setattr(library, "_loaded", SimpleNamespace(get_version=lambda: 22809))
    assert nccl.version() == (2, 28, 9)
    assert nccl.is_available([])
    assert not nccl.is_available([tt.ones(2)])
