"""What public scripts for several ranks use besides the usual calls, on 2 ranks, one way each."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.distributed.ranks import succeed


@pytest.mark.parametrize("part", ["wrapped", "checkpointed", "keywords", "optimizers", "named"])
def test_names_that_public_scripts_use(part: str) -> None:
    succeed("scripts_of_others.py", 2, part)


def test_save_and_load_under_older_names(tmp_path: Path) -> None:
    succeed("scripts_of_others.py", 2, "saved", str(tmp_path))
