"""The workloads of `python -m bench small`: each has the same losses on ours and on torch."""

from __future__ import annotations

import runpy
from collections.abc import Callable

import numpy as np
import pytest

from bench.small import command
from bench.small.sides import OURS, TORCH
from tritensor.tools.run_script import opened

pytestmark = pytest.mark.peer


def losses(name: str) -> list[float]:
    """Of five steps in the library that `import torch` gives."""
    build = runpy.run_path(str(command.WORKLOADS[name]))["build"]
    step: Callable[[], float] = build(_sampled(np.random.default_rng(1))) if name == "reinforce" else build()
    return [step() for _ in range(5)]


def _sampled(draw: np.random.Generator) -> Callable:
    """A policy's sample by numpy's numbers: libraries draw others from a seed."""
    return lambda policy: (policy.probs[:, 1] > draw.random()).long()


@pytest.mark.parametrize("name", command.WORKLOADS)
def test_a_workload_has_torchs_losses(name: str) -> None:
    with opened():
        ours = losses(name)
    np.testing.assert_allclose(ours, losses(name), rtol=1e-4, atol=3e-5)  # REINFORCE's is a sum of 50 terms that nearly cancel


def test_torch_stands_beside(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["--peer", "--rounds", "1", "--seconds", "0.0001", "--only", "x + y,function"]
    assert command.main(asked) == 0
    out = capsys.readouterr().out
    assert "FAILED" not in out
    assert [line.split()[1:3] for line in out.splitlines() if line.startswith(("actions", "sequence", "workloads"))] == [[OURS, TORCH]] * 3
    assert "geometric mean of the actions " in out
    assert "geometric mean of the workloads " in out
