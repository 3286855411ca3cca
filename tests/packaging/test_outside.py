"""A package of ops by somebody else, end to end: wheel and package in an empty environment, its ops found, called, differentiated and compiled there."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from tests.packaging.test_wheel import ROOT, dependencies, said
from tritensor.cuda.compiler.pack import Pack, decode

HERE = Path(__file__).parent
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("packaging")]


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment that holds the two wheels alone."""
    room = tmp_path_factory.mktemp("outside")
    tree, package, wheels = room / "tritensor-checkout", room / "outside", room / "wheels"
    left_out = shutil.ignore_patterns(".git", ".venv", "build", "dist", "*.egg-info", "__pycache__", ".*_cache", ".hypothesis", "out")
    shutil.copytree(ROOT, tree, symlinks=True, ignore=left_out)
    shutil.copytree(HERE / "outside", package, ignore=left_out)
    shutil.copy(ROOT / "examples" / "row_rms_norm.py", package / "outside_ops")
    for source in (tree, package):
        said(sys.executable, "-m", "build", "--wheel", "--outdir", wheels, source, cwd=room)
    venv.create(room / "env", with_pip=True)
    python = room / "env" / "bin" / "python"
    said(python, "-m", "pip", "install", "--no-deps", *sorted(wheels.glob("*.whl")), cwd=room)
    return python


def test_its_ops_are_found_and_whole(python: Path, tmp_path: Path) -> None:
    shown = said(python, HERE / "outside_smoke.py", cwd=tmp_path, PYTHONPATH=dependencies(), TRITON_INTERPRET="1")
    assert str(python.parent.parent) in shown


def test_its_function_is_found_by_its_name_alone(python: Path, tmp_path: Path) -> None:
    code = "import tritensor as tt; print(tt.row_rms_norm(tt.full((1, 4), 3.0), tt.ones(4)).tolist())"
    shown = said(python, "-c", code, cwd=tmp_path, PYTHONPATH=dependencies())
    assert [round(v, 4) for v in eval(shown)[0]] == [1.0] * 4


def test_its_kernels_are_compiled(python: Path, tmp_path: Path) -> None:
    pack = tmp_path / "outside.ttpack"
    given = ("precompile", "--arch", "sm_90", "--op", "outside_isru", "row_rms_norm", "--dtypes", "bfloat16", "--out", pack)
    shown = said(python.with_name("tritensor"), *given, cwd=tmp_path, PYTHONPATH=dependencies(), TRITENSOR_CACHE=str(tmp_path / "cache"))
    assert str(pack) in shown
    found = {decode(key, blob).name for key, _, blob in Pack(pack).rows()}
    assert {"_kernel", "_forward_kernel", "_backward_kernel", "_weight_kernel"} <= found


def test_it_is_asked_the_five_questions(python: Path, tmp_path: Path) -> None:
    asked = ("-m", "tritensor.testing", "outside_isru", "row_rms_norm", "--dtype", "float32", "bfloat16")
    shown = said(python, *asked, cwd=tmp_path, PYTHONPATH=dependencies())
    for name in ("outside_isru", "row_rms_norm"):
        for where in ("cpu", "emulated"):
            assert f"{name}/float32/{where}: no findings" in shown, shown


def test_its_own_tests_are_two_lines(python: Path, tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text('pytest_plugins = ["tritensor.testing.pytest_plugin"]\n')
    (tmp_path / "test_ops.py").write_text('import tritensor.testing\ntest_ops = tritensor.testing.ask("outside_ops")\n')
    shown = said(python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "outside_isru", cwd=tmp_path, PYTHONPATH=dependencies())
    assert "8 passed" in shown, shown  # four types, two devices


def test_it_is_timed(python: Path, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "bench", tmp_path / "bench", ignore=shutil.ignore_patterns("__pycache__", "results"))
    shown = said(python, "-m", "bench", "ops", "--op", "row_rms_norm", cwd=tmp_path, PYTHONPATH=dependencies())
    assert "row_rms_norm" in shown
    assert "GB/s" in shown


def test_its_configs_are_ranked_without_a_gpu(python: Path, tmp_path: Path) -> None:
    given = ("tune", "--dry-run", "--op", "row_rms_norm", "--dtype", "bfloat16", "--configs", "3")
    shown = said(python.with_name("tritensor"), *given, cwd=tmp_path, PYTHONPATH=dependencies())
    assert "row_rms_norm" in shown
    assert "(heuristic)" in shown
    assert "regret of the heuristic, predicted for sm_90" in shown


def test_one_that_raises_is_one_line_and_exit_code_2(python: Path, tmp_path: Path) -> None:
    installed = next((python.parent.parent / "lib").glob("python*/site-packages"))
    for folder in installed.glob("outside_ops*"):  # the package and its metadata, before those that are installed
        shutil.copytree(folder, tmp_path / "broken" / folder.name)
    (tmp_path / "broken" / "outside_ops" / "gates.py").write_text("raise ZeroDivisionError('by nought')\n")
    env = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"}
    env["PYTHONPATH"] = os.pathsep.join([str(tmp_path / "broken"), dependencies()])
    command = [python.with_name("tritensor"), "precompile", "--arch", "sm_90", "--dtypes", "float32", "--out", tmp_path / "pack", "--op"]
    said = "the plug-in 'outside-ops' (tritensor.ops: gates = outside_ops.gates) raises when it is imported: ZeroDivisionError"
    done = subprocess.run([*command, "outside_isru"], cwd=tmp_path, env=env, capture_output=True, text=True)
    assert done.returncode == 2, done
    assert done.stderr.count("\n") == 1, done.stderr
    assert said in done.stderr
    done = subprocess.run([*command, "relu"], cwd=tmp_path, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done  # it takes no op of others away
    assert f"UserWarning: ops: {said}" in done.stderr
