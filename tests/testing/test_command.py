"""`python -m tritensor.testing`: ops by name or file, device cuda emulated by the command itself, faults planted on request."""

from __future__ import annotations

from pathlib import Path

from tests.testing.author import OPS, run

COMMAND = ("-m", "tritensor.testing")


def test_an_op_by_name() -> None:
    done = run(Path.cwd(), *COMMAND, "tanh", "--dtype", "float32")
    assert done.returncode == 0, done.stderr
    lines = [line.split(":")[0] for line in done.stdout.splitlines()]
    assert lines == ["tanh/float32/cpu", "tanh/float32/emulated", "tanh/samples and complex numbers"]
    assert "no findings" in done.stdout


def test_a_file_of_ops_with_an_error(tmp_path: Path) -> None:
    (tmp_path / "my_ops.py").write_text(OPS.replace("(1.0 + x * x) *", "(1.5 + x * x) *"))
    done = run(tmp_path, *COMMAND, "my_ops.py", "--dtype", "float64", "--device", "cpu", "--show", "1")
    assert done.returncode == 1, done.stderr
    assert "own_isru: rule_is_derivative: " in done.stdout
    assert "see _isru_grad in my_ops.py:" in done.stdout


def test_planted_faults_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "my_ops.py").write_text(OPS)
    done = run(tmp_path, *COMMAND, "my_ops.py", "--sabotage")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "own_isru: rule: detaches the arriving gradient: caught by own_isru/" in done.stdout
    assert "escaped" not in done.stdout


def test_what_makes_no_sense_is_one_line(tmp_path: Path) -> None:
    for words, said in (
        (["softmx"], "no op is called 'softmx'; did you mean softmax"),
        (["nowhere.py"], "nowhere.py: no such file"),
        (["tanh", "--dtype", "int32"], "tanh does not claim int32"),
        (["tanh", "--device", "gpu"], "device 'gpu' is not to be had"),
    ):
        done = run(tmp_path, *COMMAND, *words)
        assert done.returncode == 2
        assert said in done.stderr
        assert "Traceback" not in done.stderr
