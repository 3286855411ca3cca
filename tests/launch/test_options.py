"""The command line: what is taken, what is refused before anything starts, and mpiexec's own words for it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tritensor.tools import command_line
from tritensor.tools.launch import command, mpiexec
from tritensor.tools.launch.options import parse

HERE = str(Path(__file__))


def test_torchruns_forms() -> None:
    for form in (["-n", "4"], ["-n4"], ["--nproc-per-node=4"], ["--nproc_per_node", "4", "--standalone", "--nnodes=1"]):
        got = parse([*form, "--max_restarts=2", "--", HERE, "-n", "7", "--", "x"])
        assert (got.ranks, got.max_restarts, got.script, got.arguments) == (4, 2, HERE, ("-n", "7", "--", "x"))
    assert parse([HERE]).ranks == parse(["--nproc-per-node=auto", HERE]).ranks == len(os.sched_getaffinity(0))
    got = parse(["-n", "1", "-m", "json.tool", "--help"])
    assert (got.module, got.script, got.arguments) == (True, "json.tool", ("--help",))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "the following arguments are required: script"),
        (["nothere.py"], "nothere.py: there is no such script"),
        ([str(Path(HERE).parent)], "is no file"),
        (["-m", "no_such_module.x"], "there is no module no_such_module"),
        (["-n", "0", HERE], "number of ranks is 0, and must be at least 1"),
        (["-n", "two", HERE], "-n two: expects a number"),
        (["--nproc-per-node", "gpu", HERE], "--nproc-per-node gpu: expects a number"),
        (["--threads", "0", HERE], "--threads is 0"),
        (["--max-restarts", "-1", HERE], "--max-restarts is -1"),
        (["--grace", "nan", HERE], "--grace is nan"),
        (["-n", "1", "--hosts", "a,b", HERE], "1 rank cannot run on 2 machines"),
        (["--hosts", "a,,b", HERE], "has an empty name"),
        (["--hostfile", "nothere", HERE], "--hostfile nothere: No such file"),
        (["--nnodes", "2", HERE], "--nnodes 2: there is 1 machine here; name all by --hosts"),
        (["--nnodes", "1:4", HERE], "--nnodes 1:4"),
        (["--hosts", "a,b", "--rdzv-backend=c10d", HERE], "--rdzv-backend is how torchrun's agents meet"),
        (["--rdzv-backend=zeus", HERE], "--rdzv-backend zeus: on one machine it can only be c10d or static"),
        (["--node-rank=1", HERE], "--node-rank 1: on one machine it can only be 0; for several machines start one launcher"),
        (["--no-python", HERE], "--no-python is torchrun's"),
        (["--frobnicate", HERE], "unrecognized arguments: --frobnicate"),
    ],
)
def test_refused_before_anything_starts(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        command_line.main(["launch", *words])
    assert left.value.code == 2
    assert said in capsys.readouterr().err


def test_torchruns_command_lines_of_one_machine() -> None:
    words = "--nnodes=1:1 --nproc_per_node=2 --rdzv_id=100 --rdzv_backend=c10d --rdzv_endpoint=localhost:29400 --node_rank 0 --master_port=29500"
    made = parse([*words.split(), HERE, "--lr", "0.1"])
    assert (made.ranks, made.hosts, made.arguments) == (2, (), ("--lr", "0.1"))


def test_no_mpiexec(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(command, "find", lambda: mpiexec.find(str(tmp_path / "python")))
    with pytest.raises(SystemExit) as left:
        command_line.main(["launch", "-n", "2", HERE])
    assert left.value.code == 2
    assert "finds no mpiexec" in capsys.readouterr().err
    with pytest.raises(FileNotFoundError, match=r"pip install 'tritensor\[mpi\]'"):
        mpiexec.find(str(tmp_path / "python"))


def test_which_mpiexec(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for folder, version in (("near", "HYDRA build details:"), ("path", "mpiexec (Open MPI) 5.0.11"), ("else", "acme mpi 1")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "mpiexec").write_text(f"#!/bin/sh\necho '{version}'\n")
        (tmp_path / folder / "mpiexec").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    assert mpiexec.find(str(tmp_path / "near" / "python")) == (str(tmp_path / "near" / "mpiexec"), "mpich")
    assert mpiexec.find(str(tmp_path / "python")) == (str(tmp_path / "path" / "mpiexec"), "openmpi")
    with pytest.raises(ValueError, match="acme mpi 1"):
        mpiexec.find(str(tmp_path / "else" / "python"))
    assert mpiexec.find(sys.executable).maker in ("mpich", "openmpi"), "the test extra brings one"


def test_command_lines(tmp_path: Path) -> None:
    def words(maker: str, *options: str) -> str:
        return " ".join(mpiexec.command(mpiexec.Mpiexec("mpiexec", maker), parse([*options, HERE]), ["R"]))

    assert words("mpich", "-n", "3") == "mpiexec -n 3 -disable-auto-cleanup -bind-to none R"
    assert words("mpich", "-n", "5", "--hosts", "a,b").endswith("-hosts a,b -ppn 3 R")
    assert words("mpich", "--nproc-per-node", "2", "--hosts", "a,b", "--nnodes", "2") == (
        "mpiexec -n 4 -disable-auto-cleanup -bind-to none -hosts a,b -ppn 2 R"
    )
    assert words("mpich", "-n", "5", "--hosts", "a:4,b:1").endswith("-hosts a:4,b:1 R")
    assert words("openmpi", "-n", "3") == "mpiexec -n 3 --bind-to none --map-by slot:OVERSUBSCRIBE R"
    assert words("openmpi", "-n", "4", "--hosts", "a,b").endswith("--host a,b --map-by ppr:2:node:OVERSUBSCRIBE R")
    file = tmp_path / "hosts"
    file.write_text("# ours\na slots=2\nb slots=3\n")
    assert words("openmpi", "-n", "5", "--hostfile", str(file)).endswith(f"--hostfile {file} --map-by slot:OVERSUBSCRIBE R")
    assert parse(["-n", "5", "--hostfile", str(file), HERE]).master() == "a"


def test_a_command_of_this_library_is_a_module_that_can_be_launched() -> None:
    from tritensor.tools.launch.child import code_of

    code, main, _ = code_of("tritensor.run", True)
    assert "command_line" in code.co_names or "tritensor.tools.command_line" in code.co_names
    assert main.__spec__ is not None
    with pytest.raises(ModuleNotFoundError, match="there is no such module"):
        code_of("tritensor.no_such_command", True)
