"""A rank's surroundings: its variables, cores, threads, arguments; and how its output comes through."""

from __future__ import annotations

import ast
import os
import re
import sys
from pathlib import Path
from typing import Any

import tritensor.tools.launch
from tritensor.tools.launch.child import failure, share, variables

SETTINGS = {"size": 4, "address": "a", "port": 5, "run": "r", "restart": 0, "restarts": 0, "threads": {}}


def test_ranks_see_their_variables(launcher: Any) -> None:
    code, out, err = launcher("-n", "2", "--threads", "3", "--", OMP_NUM_THREADS="2")
    assert (code, out) == (0, "")
    seen = launcher.seen()
    for rank, s in enumerate(seen):
        e = s["environment"]
        told = {k: e[k] for k in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK", "MASTER_ADDR", "TRITENSOR_LAUNCH")}
        assert told == {
            "RANK": str(rank), "WORLD_SIZE": "2", "LOCAL_RANK": str(rank), "LOCAL_WORLD_SIZE": "2", "GROUP_RANK": "0", "MASTER_ADDR": "127.0.0.1",
            "TRITENSOR_LAUNCH": "1",
        }  # fmt: skip
        assert (e["TORCHELASTIC_RESTART_COUNT"], e["TORCHELASTIC_MAX_RESTARTS"], e["TRITENSOR_RESTART"]) == ("0", "0", "0")
        assert (e["OPENBLAS_NUM_THREADS"], e["MKL_NUM_THREADS"]) == ("3", "3")
        assert e["OMP_NUM_THREADS"] == "2", "the user's own number is left alone"
        assert not {"numpy", "mpi4py", "tritensor"} & set(s["modules"]), "a rank has loaded what its script did not ask for"
        assert s["name"] == "__main__"
        assert s["argv"][1:] == [str(launcher.folder), "nothing"]
        assert s["path"] == str(Path(s["argv"][0]).parent)
    for same in ("MASTER_PORT", "TORCHELASTIC_RUN_ID"):
        assert len({s["environment"][same] for s in seen}) == 1
    rows = [line.split() for line in err.splitlines() if re.match(r" +\d", line)]
    assert [r[0] for r in rows] == ["0", "1"]
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) == 2:
        assert [r[2] for r in rows] == [str(c) for c in cores]
    assert [s["cores"] for s in seen] == [_numbers(r[2]) for r in rows]
    assert "OPENBLAS 3, OMP 2, MKL 3" in err
    assert err.count("BLAS threads") == 1


def _numbers(text: str) -> list[int]:
    runs = [part.split("-") for part in text.split(",")]
    return [n for run in runs for n in range(int(run[0]), int(run[-1]) + 1)]


def test_a_module_is_run(launcher: Any) -> None:
    (launcher.folder / "things").mkdir()
    (launcher.folder / "things" / "__init__.py").write_text("")
    (launcher.folder / "things" / "train.py").write_text("import sys; print(__name__, __spec__.name, sys.argv[1:], sys.argv[0])")
    code, out, err = launcher("-n", "1", "--bind", "none", "-m", command=["things.train", "--lr", "1"])
    assert (code, out.split(" /")[0]) == (0, "__main__ things.train ['--lr', '1']"), err


def test_output_is_not_mixed_up(launcher: Any) -> None:
    code, out, err = launcher("-n", "3", "--grace", "5", does="write")
    assert code == 5
    assert sorted(re.findall(r"\[\d\.\d+\]\n", out)) == sorted(f"[{r}.{i}]\n" for r in range(3) for i in range(400))
    assert "tritensor\x1d" not in err
    assert "\x1e" not in err
    for rank in range(3):
        # mpiexec mixes pieces of ranks; what one rank wrote is all there.
        assert sum(err.count(f".{i}.{rank}>\n") for i in range(400)) == 400
        assert err.count(f"half of rank {rank}") == 1
    assert len(re.findall("x{300}", err)) == 1200


def test_cores_are_shared_out() -> None:
    cpus = {i: (0, i % 4) for i in range(8)}  # four cores of two threads: 0 and 4 are one core
    assert [share(cpus, r, 4, None) for r in range(4)] == [{0, 4}, {1, 5}, {2, 6}, {3, 7}]
    assert [share(cpus, r, 2, "core") for r in range(2)] == [{0, 4, 1, 5}, {2, 6, 3, 7}]
    assert set().union(*(share(cpus, r, 3, "core") or set() for r in range(3))) == set(range(8))
    assert share(cpus, 0, 2, "none") is None
    assert share(cpus, 0, 9, None) is None, "more ranks than processors are not bound unless it is asked for"
    assert [share({5: (0, 5), 7: (0, 7)}, r, 3, "core") for r in range(3)] == [{5}, {7}, {5}]


def test_other_starters() -> None:
    open_mpi = {"OMPI_COMM_WORLD_LOCAL_RANK": "1", "OMPI_COMM_WORLD_LOCAL_SIZE": "2"}
    told = variables(3, SETTINGS, open_mpi)
    assert (told["RANK"], told["LOCAL_RANK"], told["LOCAL_WORLD_SIZE"], told["GROUP_RANK"]) == ("3", "1", "2", "1")
    assert variables(3, SETTINGS, {})["LOCAL_RANK"] == "3"


def test_a_long_traceback_is_cut_in_the_middle() -> None:
    told = failure(ValueError("a" * 150_000 + "b"))
    assert len(told["traceback"]) < 101_000
    assert "characters left out" in told["traceback"]
    assert told["traceback"].endswith("aab\n")


def test_the_launcher_is_light() -> None:
    """The launcher and its ranks load the standard library and the launcher's own files, nothing more of the package."""
    folder = Path(tritensor.tools.launch.__path__[0])
    for path in folder.glob("*.py"):
        for n in ast.walk(ast.parse(path.read_text())):
            names = [a.name for a in n.names] if isinstance(n, ast.Import) else [n.module or ""] if isinstance(n, ast.ImportFrom) else []
            for name in names:
                own = name.startswith("tritensor.tools.launch.") and path.name != "child.py"
                assert own or name.partition(".")[0] in sys.stdlib_module_names, f"{path.name} imports {name}"
