"""The trial itself: it finds wrong numbers, wrong gradients and missing checkouts. The projects' files are not needed for this."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import tritensor as tt
from tests.other_kernels import child
from tests.other_kernels.checkouts import PROJECTS, TRITON
from tests.other_kernels.results import Result
from tests.other_kernels.trial import TRIALS, Run, definitions

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(tmp_path, numbers=True)


class WrongSlope(tt.autograd.Function):
    @staticmethod
    def forward(ctx, x):  # type: ignore[no-untyped-def]
        return x * 2

    @staticmethod
    def backward(ctx, g):  # type: ignore[no-untyped-def]
        return g * 3


def test_wrong_numbers_are_found(run: Run) -> None:
    x = run.randn(3, 4)
    run.close(x, x.cpu())
    for wrong in (x.cpu() + 0.01, x.cpu() * float("nan"), x.cpu()[:2], x.cpu() * float("inf")):
        with pytest.raises(AssertionError, match="the result: "):
            run.close(x, wrong)
        with pytest.raises(AssertionError, match="the result: "):
            run.close(wrong, x)
    with pytest.raises(AssertionError, match="2 results, 1 are wanted"):
        run.close((x, x), (x,))


def test_wrong_and_missing_gradients_are_found(run: Run) -> None:
    x = run.randn(5)
    run.same(lambda x: x * 2, lambda x: x * 2, x)
    with pytest.raises(AssertionError, match="the gradient of input 0: off by"):
        run.same(WrongSlope.apply, lambda x: x * 2, x)
    with pytest.raises(AssertionError, match="no result has a gradient"):
        run.same(lambda x: x.detach() * 2, lambda x: x * 2, x)


def test_a_script_is_defined_without_being_run(tmp_path: Path) -> None:
    script = tmp_path / "some-script.py"
    script.write_text("def twice(x):\n    return 2 * x\n\n\nprint('ran')\nseen = twice(4)\nlast = 1 / 0\n")
    names = definitions(script, until="last")
    assert names["seen"] == names["twice"](4) == 8
    with pytest.raises(ZeroDivisionError):
        definitions(script)


def test_every_trial_is_of_a_project_and_has_a_name_of_its_own() -> None:
    child.load()
    assert len(TRIALS) > 60
    assert {t.project for t in TRIALS.values()} == set(PROJECTS)
    assert len({t.file for t in TRIALS.values() if t.project is TRITON}) == 11


def test_a_result_says_what_became_of_it() -> None:
    child.load()
    plain, found = TRIALS["liger/rms_norm"], TRIALS["flaggems/gather"]
    fine = {"error": "", "seconds": 1.0, "kernels": {}, "compiled": [3, 3]}
    wrong = fine | {"error": "AssertionError: off"}
    assert Result(plain, fine, fine).as_wanted
    assert not Result(plain, wrong, fine).as_wanted
    assert not Result(plain, fine, wrong).as_wanted
    assert not Result(found, fine, fine).as_wanted
    assert Result(found, fine | {"error": f"SanitizerError: a {found.finding}[3]"}, fine).as_wanted


def test_a_missing_checkout_is_named_with_the_commands(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.other_kernels", "--checkouts", str(tmp_path), "liger/rms_norm"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "Liger-Kernel is not there" in done.stderr
    assert "git clone -q --filter=blob:none --no-checkout --depth 1 https://github.com/linkedin/Liger-Kernel Liger-Kernel" in done.stderr
    done = subprocess.run([*command[:-1], "liger/nothing"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, "no trial is called liger/nothing" in done.stderr) == (2, True)
