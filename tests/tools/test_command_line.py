"""The one command: its list, help with examples for each subcommand, `python -m tritensor.NAME`, what an installed package refuses, what starting costs."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tritensor.tools import command_line
from tritensor.tools.command_line import COMMANDS
from tritensor.torch_compat import locations

ROOT = Path(__file__).resolve().parents[2]


def run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *words], cwd=ROOT, capture_output=True, text=True, timeout=120)


def test_alone_it_prints_the_list(capsys: pytest.CaptureFixture[str]) -> None:
    assert command_line.main([]) == 2
    lines = capsys.readouterr().out.splitlines()
    assert [name for name in COMMANDS if sum(line.startswith(f"  {name} ") for line in lines) != 1] == []
    with pytest.raises(SystemExit) as left:
        command_line.main(["--help"])
    assert left.value.code == 0
    assert capsys.readouterr().out.splitlines() == lines


@pytest.mark.parametrize("name", [n for n in COMMANDS if n != "bench"])
def test_help_has_two_examples_that_are_understood(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        command_line.main([name, "--help"])
    assert left.value.code == 0
    said = capsys.readouterr().out
    assert said.startswith(f"usage: tritensor {name}")
    assert [f"  tritensor {example}" in said.splitlines() for example in COMMANDS[name].examples] == [True, True]
    assert all(shlex.split(example)[0] == name for example in COMMANDS[name].examples)


def test_bench_is_the_repositorys_own() -> None:
    done = run("-m", "tritensor.tools.command_line", "bench", "ops", "--help")
    assert done.returncode == 0, done.stderr
    assert done.stdout == run("-m", "bench", "ops", "--help").stdout


@pytest.mark.parametrize("name", [n for n, c in COMMANDS.items() if c.of_checkout])
def test_an_installed_package_says_what_it_has_not(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command_line, "CHECKOUT", tmp_path)
    assert command_line.main([name]) == 2
    assert (
        capsys.readouterr().err == f"tritensor {name}: works on a checkout of the repository; this tritensor is installed in {tmp_path}\n"
    )


def test_an_unknown_command_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        command_line.main(["docter"])
    assert left.value.code == 2
    assert "invalid choice: 'docter'" in capsys.readouterr().err


@pytest.mark.parametrize(("name", "kept"), [("doctor", False), ("tune", True), ("precompile", True)])
def test_ctrl_c_is_told_in_a_line(name: str, kept: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def stopped(argv: object, parser: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(f"{COMMANDS[name].module}.main", stopped)
    assert command_line.main([name]) == 130
    said = capsys.readouterr().err
    assert said.startswith("tritensor: interrupted")
    assert ("goes on from there" in said) is kept


@pytest.mark.parametrize("name", locations.COMMANDS)
def test_python_m_runs_the_command(name: str) -> None:
    done = run("-W", "error", "-m", f"tritensor.{name}", "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"usage: python -m tritensor.{name}")
    assert f"  tritensor {COMMANDS[name].examples[0]}" in done.stdout.splitlines()


def test_a_command_that_is_imported_is_a_module_or_the_function_of_its_name() -> None:
    done = run(
        "-c",
        "import tritensor.doctor, tritensor.launch, tritensor.run, tritensor as tt; from tritensor.cuda.launch import launch;"
        "assert tt.launch is launch; assert tt.doctor.works([]); assert tt.run.__name__ == 'tritensor.tools.run_script'",
    )
    assert done.returncode == 0, done.stderr


def test_help_loads_no_command_and_no_triton() -> None:
    code = """
import contextlib, sys
from tritensor.tools.command_line import main
with contextlib.suppress(SystemExit):
    main(["--help"])
tools = {m for m in sys.modules if m.startswith("tritensor.tools.")}
assert tools == {"tritensor.tools.command_line"}, tools
assert "triton.language" not in sys.modules and "tritensor.testing.__main__" not in sys.modules
"""
    done = run("-c", code)
    assert done.returncode == 0, done.stderr
