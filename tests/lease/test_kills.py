"""kill -9 at any moment leaves whole files and a ledger from which the next run does exactly the rest."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.gpu.workers import ROOT


def killed(*seeds: int) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.lease.kill_points", *map(str, seeds)], cwd=ROOT, env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stdout == "whole\n", done.stdout + done.stderr


def test_a_killed_run_goes_on() -> None:
    killed(1, 2)


@pytest.mark.slow
@pytest.mark.full
def test_a_run_that_is_killed_at_many_moments_goes_on() -> None:
    killed(*range(10, 50))
