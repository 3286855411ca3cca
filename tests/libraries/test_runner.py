"""Runner of the trial of libraries: what it compares and counts, and that its catalogue names every quick start."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.libraries import own_tests, page, quick, reasons
from tests.libraries.catalogue import LIBRARIES, Library
from tests.libraries.environments import ROOT, Environment
from tests.libraries.own_tests import Counts, Outcome, Suite
from tests.libraries.quick import Ran


@pytest.mark.parametrize(
    ("ours", "theirs", "differs"),
    [
        ("loss 1.2345", "loss 1.2350", False),
        ("loss 1.2345", "loss 1.2395", True),
        ("loss 0.0000", "loss 0.0000", False),
        ("falls True", "falls False", True),
        ("shape (2, 3)", "shape (3, 2)", True),
        ("loss 1e-08", "loss 2e-08", False),
        ("loss nan", "loss 1.0", True),
    ],
)
def test_lines_are_compared_by_words_and_by_numbers(ours: str, theirs: str, differs: bool) -> None:
    assert quick.differ(ours, theirs) is differs


def test_what_is_said_of_two_runs() -> None:
    good = Ran(["loss 1.0"], "", 1.0)
    assert quick.compare(good, good) == ""
    assert quick.compare(Ran([], "ImportError: x", 1.0), good) == "ImportError: x"
    assert quick.compare(good, Ran([], "TypeError: y", 1.0)) == "fails under torch: TypeError: y"
    assert "prints nothing" in quick.compare(Ran([], "", 1.0), Ran([], "", 1.0))
    assert quick.compare(Ran(["loss 1.0", "more"], "", 1.0), good) == "2 lines here, 1 under torch"
    assert quick.compare(Ran(["loss 2.0"], "", 1.0), good) == "'loss 2.0' here, 'loss 1.0' under torch"


def test_a_script_is_run_in_a_folder_of_its_own_and_its_last_words_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "json.py").write_text(
        "import json, os\nprint(json.dumps(os.listdir()))\nraise ValueError('at the end of /a/folder/file.py')\n"
    )
    monkeypatch.setattr(quick, "FOLDER", tmp_path)
    assert quick.scripts() == ["tools/json"]
    ran = quick.run("tools/json", Environment("here", Path(sys.executable)))
    assert (ran.lines, ran.error) == (["[]"], "ValueError: at the end of file.py")


def test_commands_beside_the_interpreter_are_found() -> None:
    done = Environment("here", Path(sys.executable)).run(["-c", "import os; print(os.environ['PATH'].split(os.pathsep)[0])"], 60)
    assert done.stdout.strip() == str(Path(sys.executable).parent)


SUITE = """
import os, pytest
def test_passes(): pass
def test_differs(): assert os.environ["WHERE"] == "torch", "not under torch"
def test_fails(): assert False
@pytest.mark.skip
def test_skipped(): pass
"""


def test_a_suite_is_counted_by_what_passes_under_torch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_a.py").write_text(SUITE)
    (tmp_path / "tests" / "test_b.py").write_text("import os\nif os.environ['WHERE'] != 'torch': os._exit(3)\ndef test_b(): pass\n")
    (tmp_path / "tests" / "test_c.py").write_text(
        "import os\nif os.environ['WHERE'] != 'torch': raise ImportError('not here')\ndef test_c(): pass\n"
    )
    suite = Suite("owner/name", "v{version}", ("tests/test_*.py",))
    here, found = Environment("here", Path(sys.executable)), []
    for where in ("tritensor", "torch"):
        monkeypatch.setenv("WHERE", where)
        found.append(own_tests.run(suite, tmp_path, here, tell=False))
    counts = own_tests.count(*found)
    assert (counts.under_torch, counts.here, counts.share) == (4, 1, 1 / 4)
    assert counts.others == {
        "tests/test_a.py::test_differs": "AssertionError: not under torch",
        "tests/test_b.py::test_b": "tests/test_b.py: the process ended early",
        "tests/test_c.py::test_c": "ImportError: not here",
    }
    with pytest.raises(FileNotFoundError, match="the suite has moved"):
        own_tests.files_of(Suite("owner/name", "", ("gone/*.py",)), tmp_path)
    left = own_tests.files_of(Suite("owner/name", "", ("tests/test_*.py", "!tests/test_b.py")), tmp_path)
    assert [x.name for x in left] == ["test_a.py", "test_c.py"]
    assert Counts(0, {}).share == 0
    assert own_tests.count(Outcome({}, {}, []), Outcome({"a": "passed"}, {}, [])).others["a"].startswith("not run")


def test_of_a_large_suite_the_same_tests_are_drawn_everywhere(tmp_path: Path) -> None:
    (tmp_path / "test_many.py").write_text(
        "import os, pytest\n@pytest.mark.parametrize('i', range(40))\ndef test(i): assert os.environ['SOME'] == 'value'\n"
    )
    suite = Suite("owner/name", "", ("test_*.py",), every=4, variables=(("SOME", "value"),))
    found = [own_tests.run(suite, tmp_path, Environment("here", Path(sys.executable)), tell=False).tests for _ in range(2)]
    assert found[0] == found[1]
    assert 2 < len(found[0]) < 20
    assert set(found[0].values()) == {"passed"}


def test_a_folder_of_the_users_own_stays_on_the_path_and_this_repository_does_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), str(tmp_path)]))
    said = Environment("here", Path(sys.executable)).run(["-c", "import os; print(os.environ['PYTHONPATH'])"], 60).stdout
    assert said.strip() == str(tmp_path)


def test_each_test_that_fails_has_a_reason_or_is_not_looked_into(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(reasons.REASONS, "some", ((r"test_chance", "by chance"),))
    others = {
        "a::test_chance[1]": "fx.Tracer",
        "b": "NotImplementedError: fx.Tracer: not in tritensor",
        "c": "AssertionError",
        "a::test_chance[2]": "",
    }
    assert reasons.counted("some", others) == {"by chance": 2, "asks for fx, which is not here yet": 1, reasons.UNKNOWN: 1}
    assert reasons.of("other", "a::test_chance[1]", "x") == reasons.UNKNOWN
    known = {x.name for x in LIBRARIES if x.suite}
    assert set(reasons.REASONS) - {"", "some"} <= known


def test_every_quick_start_stands_in_the_catalogue_once() -> None:
    named = [script for x in LIBRARIES for script in x.quick_starts]
    assert sorted(named) == quick.scripts()
    assert len({x.name for x in LIBRARIES}) == len(LIBRARIES)
    assert not [x.name for x in LIBRARIES if x.cannot and x.note]


def test_the_page_is_what_was_noted() -> None:
    assert page.PAGE.read_text() == page.written(page.results())


def test_a_row_of_the_page_tells_versions_counts_and_what_differs() -> None:
    library = Library("some", ("some-lib",), ("tools/some",), note="a | b")
    entry = {"version": "1.2", "quick": {"tools/some": "no\n  end"}, "suite": {"here": 9, "under_torch": 10, "every": 3}}
    assert page._row(library, entry) == "| some | 1.2 | `tools/some`: no end | 9 of 10, 1 test in 3 drawn | a \\| b |\n"
