"""The choice of `make test`: tests that a changed file asks, items that the quick tier leaves out, the line that says so."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.tiers import TIERS
from tests.tiers import __main__ as command
from tests.tiers.__main__ import chosen, outermost
from tests.tiers.changes import changed
from tests.tiers.marks import CHEAP, LONG, SHARE, diagonal, measured, of_other_ops, spread, thinned
from tests.tiers.ops import ROOT, WALKS
from tests.tiers.touched import ALL, ALWAYS, ANSWERS, Touched, importers, touched


# -- what a file asks
def asked(path: str) -> Touched:
    found = touched(path)
    assert not found.everything, f"{path}: {found.why}"
    assert all((ROOT / t).exists() for t in found.tests), found.tests
    return found


def test_a_kernel_asks_its_ops_and_who_names_them() -> None:
    found = asked("kernels/normalization/softmax.py")
    assert set(found.ops) == {"softmax", "log_softmax"}
    assert {"tests/ops", "tests/func/test_table.py", "tests/kernels/reductions/test_reduction.py", "tests/kernels/test_tiles.py"} <= set(
        found.tests
    )


def test_a_part_of_an_op_asks_all_ops_above_it() -> None:
    found = asked("kernels/convolution/geometry.py")
    assert {"conv1d", "conv2d_weight", "conv3d_relu"} <= set(found.ops)
    assert "tests/kernels/convolution" in found.tests


def test_a_module_asks_its_room_and_who_imports_it() -> None:
    found = asked("tritensor/io/safetensors.py")
    assert {"tests/io", "tests/hub/test_repository.py", "tests/training/test_resume.py"} <= set(found.tests)
    assert not found.ops
    assert "tritensor/io/checkpoint.py" in importers("tritensor/io/safetensors.py")


@pytest.mark.parametrize(
    ("path", "tests"),
    [
        ("tests/nn/test_hooks.py", {"tests/nn/test_hooks.py"}),
        ("tests/func/walk.py", {"tests/func/test_table.py"}),
        ("tests/special_values.json", {"tests/test_accuracy_special.py"}),
        ("docs/testing.md", {"tests/pages", "tests/site"}),
        ("README.md", {"tests/test_readme.py", "tests/pages", "tests/site"}),
        ("LICENSE", {"tests/packaging/test_project.py"}),
        ("examples/train_digits.py", {"tests/examples"}),
        ("nn/__init__.pyi", {"tests/tools/test_stubs.py"}),
        ("optim/optimizers/adam.py", {"tests/optim", "tests/io/test_checkpoint.py"}),
    ],
)
def test_what_asks_it(path: str, tests: set[str]) -> None:
    assert tests <= set(asked(path).tests)


@pytest.mark.parametrize(
    "path",
    [
        "tritensor/dispatch/road.py", "tritensor/table/lookup.py", "tritensor/cuda/launch.py", "autograd/engine.py", "kernels/parts/axes.py",
        "pyproject.toml", "tests/conftest.py", "tritensor/errors.py", "tritensor/tensor/core.py", "nn/module.py",
        "kernels/no_such_kernel.py", "no_such_file.toml",
    ],
)  # fmt: skip
def test_what_may_reach_anything_asks_everything(path: str) -> None:
    assert touched(path).everything
    assert chosen([path, "docs/testing.md"]).tests == ()
    assert chosen([path]).arguments() == ["-m", TIERS["standard"]]


def test_a_test_that_is_gone_asks_nothing() -> None:
    assert touched("tests/nn/test_no_such_file.py") == Touched("a test that is gone")


def test_the_lists_name_what_is_there() -> None:
    for name in (*ALL, *ALWAYS, *ANSWERS, *WALKS):
        assert (ROOT / name).exists(), name


# -- what runs
def test_a_clean_tree_asks_the_quick_tier() -> None:
    assert chosen([]).tier == chosen(None).tier == "quick"


def test_several_files_ask_together() -> None:
    found = chosen(["kernels/normalization/softmax.py", "tests/nn/test_hooks.py", "docs/testing.md"])
    assert found.tier == "standard"
    assert found.ops == ("log_softmax", "softmax")
    assert {"tests/ops", "tests/nn/test_hooks.py", "tests/site", "tests/test_house.py"} <= set(found.tests)
    assert "--ops" in found.arguments()
    assert "changed files: 3; " in found.says
    assert "make test TIER=standard asks the rest" in found.arguments()[found.arguments().index("--tell") + 1]
    assert len(found.lines) == 3


def test_a_walk_that_has_changed_itself_is_asked_of_every_op() -> None:
    for other in ("tests/ops/test_walk.py", "tests/llvm/test_ops.py", "tritensor/llvm/passes/gather_rows.py"):
        assert chosen(["kernels/normalization/softmax.py", other]).ops == (), other


def test_a_room_is_asked_once() -> None:
    assert outermost({"tests/nn", "tests/nn/test_hooks.py", "tests/nn/losses", "tests/test_house.py", "tests/gone.py"}) == [
        "tests/nn",
        "tests/test_house.py",
    ]


def test_it_says_what_it_would_run() -> None:
    said = subprocess.run(
        [sys.executable, "-m", "tests.tiers", "quick", "--show", "-q"], capture_output=True, text=True, check=True, cwd=ROOT
    ).stdout
    assert said.splitlines() == ["the quick tier", f"pytest -m {TIERS['quick']} -q"]


def test_arguments_that_choose_tests_are_pytests_own(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[list[str]] = []
    monkeypatch.setattr(command, "asked", lambda given: len(seen.append(given) or []))
    for given in (["auto", "-n", "2", "-m", "gpu"], ["-n", "2", "tests/nn"], ["standard", "-n", "2", "--maxprocesses", "8"]):
        assert command.main(given) == 0
    assert seen == [
        ["-n", "2", "-m", "gpu"],
        ["-m", TIERS["standard"], "-n", "2", "tests/nn"],
        ["-m", TIERS["standard"], "-n", "2", "--maxprocesses", "8"],
    ]


def commit(root: Path, *arguments: str) -> None:
    who = ["-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run(["git", *who, *arguments], cwd=root, check=True, capture_output=True)


def test_what_differs_from_the_branch(tmp_path: Path) -> None:
    assert changed(tmp_path) is None, "no checkout"
    commit(tmp_path, "init", "-b", "main")
    for name in ("a.py", "b.py", "c d.py"):
        (tmp_path / name).write_text("1\n")
    commit(tmp_path, "add", ".")
    commit(tmp_path, "commit", "-m", "first")
    assert changed(tmp_path) == []
    assert changed(tmp_path / ".git") is None
    commit(tmp_path, "checkout", "-b", "work")
    (tmp_path / "a.py").write_text("2\n")
    commit(tmp_path, "commit", "-am", "second")
    (tmp_path / "c d.py").write_text("2\n")
    (tmp_path / "new.py").write_text("1\n")
    (tmp_path / ".gitignore").write_text("out\n")
    (tmp_path / "out").write_text("")
    commit(tmp_path, "mv", "b.py", "e.py")
    assert changed(tmp_path) == [".gitignore", "a.py", "b.py", "c d.py", "e.py", "new.py"]


# -- what the quick tier leaves out
def items(*axes: tuple[str, list[object]]) -> list[Any]:
    """Items of a function with several `parametrize`, as pytest has them."""

    def of(rest: tuple[tuple[str, list[object]], ...], params: dict[str, object]) -> Iterator[dict[str, object]]:
        if not rest:
            yield params
        for value in rest[0][1] if rest else ():
            yield from of(rest[1:], {**params, rest[0][0]: value})

    marks = [SimpleNamespace(args=(name, values)) for name, values in axes]
    return [
        SimpleNamespace(nodeid=f"t.py::t[{n}]", callspec=SimpleNamespace(params=params), iter_markers=lambda _: marks)
        for n, params in enumerate(of(axes, {}))
    ]


def test_every_value_stands_on_the_diagonal() -> None:
    found = [i.callspec.params for i in diagonal(items(("a", [1, 2, 3, 4]), ("b", ["x", "y"])))]
    assert len(found) == 4
    assert {p["a"] for p in found} == {1, 2, 3, 4}
    assert {p["b"] for p in found} == {"x", "y"}


def test_a_dear_function_keeps_its_share() -> None:
    cases = items(("a", [1, 2, 3, 4]), ("b", ["x", "y", "z"]))
    assert thinned(cases, 12, SHARE) == cases, "as long as it may take"
    kept = thinned(cases, 12, 2 * SHARE)
    assert len(kept) == 6
    assert {i.callspec.params["a"] for i in kept} == {1, 2, 3, 4}
    assert len(thinned(cases, 12, 12 * LONG)) == 1
    assert thinned(cases, 12, 12 * CHEAP) == cases
    assert thinned(cases, 12, 13 * LONG) == []
    assert spread(cases, 3) == [cases[0], cases[4], cases[8]]


def test_other_ops_are_left_out_of_a_walk() -> None:
    def named(*names: str) -> list[Any]:
        return [SimpleNamespace(nodeid=n) for n in names]

    walk = named(
        "tests/ops/test_walk.py::t[softmax/float32/cpu]", "tests/ops/test_walk.py::t[log_softmax-cuda]", "tests/ops/test_walk.py::t[say]"
    )
    others = named("tests/nn/test_a.py::t[log_softmax]", "tests/ops/test_needs.py::t")
    assert of_other_ops([*walk, *others], ["softmax"]) == [walk[1]]


def test_what_was_measured_is_there() -> None:
    """A function that was renamed is measured anew: python -m tests.tiers.measure tests/ROOM."""
    for name in measured():
        path, _, function = name.partition("::")
        assert f"def {function.rpartition('::')[2]}(" in (ROOT / path).read_text(), name


def test_the_quick_tier_says_what_it_left_out(pytestconfig: pytest.Config) -> None:
    dear = max(measured(), key=lambda n: measured()[n][1] / measured()[n][0])
    asked = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", "--collect-only", dear]
    whole = subprocess.run([*asked, "-m", TIERS["standard"]], capture_output=True, text=True, cwd=ROOT)
    quick = subprocess.run([*asked, "-m", TIERS["quick"]], capture_output=True, text=True, cwd=ROOT)
    assert "left out" not in whole.stdout
    assert whole.stdout.count("::") == json.loads((ROOT / "tests/tiers/measured.json").read_text())[dear][0]
    assert "were left out" in quick.stdout
    assert "make test TIER=standard asks them" in quick.stdout
    assert "::" not in quick.stdout
