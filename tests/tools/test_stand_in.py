"""Stand-in of PyTorch: written whole or not at all, believed by importlib and pip, refused where a real one is, removed without a trace."""

from __future__ import annotations

import importlib.metadata
import os
import subprocess
import sys
import sysconfig
import textwrap
from pathlib import Path

import pytest

from tritensor.tools.command_line import main
from tritensor.tools.stand_in import command, environment, packages

ROOT = Path(__file__).resolve().parents[2]
ASKS = """
import importlib.metadata as m, importlib.util as u, pickle, sys
assert u.find_spec("torch").origin.endswith("site-packages/torch/__init__.py"), u.find_spec("torch")
assert m.version("torch") == "2.13.0+tritensor" and m.packages_distributions()["functorch"] == ["torch"]
assert len([d for d in m.distributions() if d.metadata["Name"] == "torch"]) == 1
from torch.nn import Linear
import torch, torchvision, functorch, tritensor
assert u.find_spec("torch") is torch.__spec__ and u.find_spec("torch.nn") and u.find_spec("torch.no_such_module") is None
assert torch.__file__ == torch.__spec__.origin and torch.__version__ == m.version("torch") and torchvision.__version__ == m.version("torchvision")
assert torch.Tensor is tritensor.Tensor and functorch.vmap.__wrapped__ is tritensor.func.vmap
assert len([d for d in m.distributions() if d.metadata["Name"] == "torch"]) == 1
try:
    import torch.distributed.pipelining
except ModuleNotFoundError as error:
    print(error)
print(torch.ones(2).shape, pickle.loads(pickle.dumps(Linear(1, 1))))
"""


def installed_tritensor(folder: Path) -> None:
    """Metadata of tritensor alone, as pip leaves them."""
    info = folder / "tritensor-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: tritensor\nVersion: 1.0\n")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty site-packages of this process, with tritensor installed."""
    found = tmp_path / "site-packages"
    found.mkdir()
    installed_tritensor(found)
    paths = {**sysconfig.get_paths(), "purelib": str(found)}
    monkeypatch.setattr(sysconfig, "get_paths", lambda: paths)
    monkeypatch.setattr(sys, "path", [str(found), str(ROOT)])
    return found


def listing(folder: Path) -> set[str]:
    return {p.relative_to(folder).as_posix() for p in folder.rglob("*")}


def test_an_environment_with_it_imports_tritensor_as_torch_and_without_it_has_no_trace(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "env")], check=True, timeout=60)
    python = tmp_path / "env" / "bin" / "python"
    (site,) = (tmp_path / "env" / "lib").glob("python*/site-packages")
    (site / "path.pth").write_text("\n".join([str(ROOT), sysconfig.get_paths()["purelib"]]))
    (tmp_path / "asks.py").write_text(ASKS)

    def ran(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([str(python), *words], cwd=tmp_path, env={"PATH": ""}, capture_output=True, text=True, timeout=60)

    before = listing(site)
    tool = ("-m", "tritensor.tools.command_line", "stand-in")
    done = ran(*tool, "install")
    assert (done.returncode, done.stderr) == (0, "")
    assert f"torch 2.13.0+tritensor: `import torch` is tritensor in {site}" in done.stdout
    done = ran("asks.py")
    assert (done.stderr, done.returncode) == ("", 0)
    assert done.stdout.splitlines() == [
        "No module named 'torch.distributed.pipelining': not in tritensor",
        "torch.Size([2]) Linear(in_features=1, out_features=1, bias=True)",
    ]
    done = ran(*tool, "uninstall")
    assert (done.returncode, done.stderr) == (0, "")
    assert listing(site) == before


def test_under_run_the_spec_is_true_too(tmp_path: Path) -> None:
    (tmp_path / "asks.py").write_text(
        "import importlib.util as u, importlib.metadata as m\nbefore = u.find_spec('torch')\nimport torch\n"
        "assert u.find_spec('torch') is before is torch.__spec__ and before.origin == torch.__file__, before\n"
        "assert u.find_spec('torch.no_such') is None and u.find_spec('torch.nn') is not None\n"
        "assert m.packages_distributions()['torch'] == ['torch'] and u.find_spec('functorch') is not None\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "tritensor.run", "asks.py"], cwd=tmp_path, env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_every_file_is_in_the_record_with_its_hash_and_size(folder: Path) -> None:
    command.install(packages.DISTRIBUTIONS)
    for name in packages.DISTRIBUTIONS:
        found = importlib.metadata.distribution(name)
        assert found.files
        for file in found.files:
            assert Path(file.locate()).is_file()
            if file.hash is not None:
                assert Path(file.locate()).stat().st_size == file.size
        assert {f.as_posix() for f in found.files} == set(packages.files_of(name))
        assert "no PyTorch is in here" in found.metadata["Summary"]
    assert command.status()[1]
    assert "torch==2.13.0+tritensor" in (folder / packages.folder_of_metadata("torch") / packages.CONSTRAINTS).read_text().split()
    written = listing(folder)
    command.install(packages.DISTRIBUTIONS)  # again: the same
    assert listing(folder) == written
    command.uninstall()
    assert listing(folder) == {"tritensor-1.0.dist-info", "tritensor-1.0.dist-info/METADATA"}


def refusal(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["stand-in", *words]) == 1
    said = capsys.readouterr()
    assert said.out == ""
    return said.err


def real(folder: Path, version: str = "2.13.0") -> None:
    (folder / "torch").mkdir(parents=True)
    (folder / "torch" / "__init__.py").write_text("real = True\n")
    info = folder / f"torch-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: torch\nVersion: {version}\n")


def test_a_real_torch_is_not_shadowed(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "elsewhere"  # such as the system's packages, seen from an environment
    real(other)
    monkeypatch.setattr(sys, "path", [str(folder), str(other)])
    before = listing(folder)
    said = refusal(capsys, "install")
    assert f"torch 2.13.0 is installed in {other}; the stand-in would shadow it" in said
    assert "pip uninstall torch" in said
    assert listing(folder) == before
    assert "no stand-in is installed" in (said := refusal(capsys, "uninstall"))
    assert f"torch 2.13.0 in {other} is a real one" in said
    assert main(["stand-in", "status"]) == 1
    assert f"torch: 2.13.0 in {other} is a real one" in capsys.readouterr().out


def test_two_torches_are_told(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command.install(packages.DISTRIBUTIONS)
    info = folder / "torch-2.14.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: torch\nVersion: 2.14.0\n")
    assert main(["stand-in", "status"]) == 1
    assert "torch: 2 distributions of one name" in capsys.readouterr().out


def test_somebody_elses_package_of_the_name_stays(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "torch").mkdir()
    (folder / "torch" / "version.py").write_text("left = 1\n")  # what a removal by hand leaves
    said = refusal(capsys, "install")
    assert f"{folder / 'torch'} is found by `import torch` and is none of the stand-in's" in said
    assert (folder / "torch" / "version.py").read_text() == "left = 1\n"


@pytest.mark.parametrize("gone", ["torch/__init__.py", "torch-2.13.0+tritensor.dist-info/METADATA", "functorch/__init__.py"])
def test_a_half_removed_one_is_told_and_written_anew(folder: Path, capsys: pytest.CaptureFixture[str], gone: str) -> None:
    command.install(packages.DISTRIBUTIONS)
    (folder / gone).unlink()
    assert main(["stand-in", "status"]) == 1
    assert f"torch: half removed, without {gone}" in capsys.readouterr().out
    command.install(packages.DISTRIBUTIONS)
    assert command.status()[1]
    (folder / gone).unlink()
    command.uninstall()
    assert listing(folder) == {"tritensor-1.0.dist-info", "tritensor-1.0.dist-info/METADATA"}


def test_metadata_alone_are_told(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    info = folder / packages.folder_of_metadata("torch")
    info.mkdir()
    (info / "METADATA").write_text("Name: torch\nVersion: 2.13.0+tritensor\n")
    assert main(["stand-in", "status"]) == 1
    assert "torch: half removed, without torch/__init__.py" in capsys.readouterr().out


def test_a_failure_in_the_middle_leaves_what_was(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command.install(["torch"])
    before = {p: (folder / p).read_bytes() for p in listing(folder) if (folder / p).is_file()}
    rename, calls = os.rename, []

    def full(a: object, b: object) -> None:
        calls.append(a)
        if len(calls) == 6:
            raise OSError(28, "No space left on device")
        rename(a, b)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "rename", full)
    with pytest.raises(OSError, match="No space"):
        command.install(packages.DISTRIBUTIONS)
    assert {p: (folder / p).read_bytes() for p in listing(folder) if (folder / p).is_file()} == before


def test_a_folder_that_cannot_be_written_is_named(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    assert f"{folder} cannot be written by this user" in refusal(capsys, "install")
    monkeypatch.setattr(sys, "base_prefix", sys.prefix)
    (folder / "EXTERNALLY-MANAGED").touch()
    monkeypatch.setattr(sysconfig, "get_paths", lambda: {"purelib": str(folder), "stdlib": str(folder)})
    assert "belongs to the system's package manager (PEP 668)" in refusal(capsys, "install")


def test_tritensor_itself_must_be_installed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "tritensor-1.0.dist-info" / "METADATA").unlink()
    (folder / "tritensor-1.0.dist-info").rmdir()
    sys.path.remove(str(ROOT))  # a checkout may carry metadata of an editable install
    assert "is not installed in" in refusal(capsys, "install")


def test_a_library_that_asks_for_another_torch_is_named(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("packaging")
    command.install(packages.DISTRIBUTIONS)
    info = folder / "later-3.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: later\nVersion: 3.0\nRequires-Dist: torch>=2.14\nRequires-Dist: torchvision\n"
    )
    assert main(["stand-in", "status"]) == 1
    assert "later 3.0 asks for torch>=2.14; the stand-in is 2.13.0+tritensor" in capsys.readouterr().out


def test_a_package_may_be_left_out(folder: Path) -> None:
    assert main(["stand-in", "install", "--without", "torchvision"]) == 0
    assert not (folder / "torchvision").exists()


def test_the_file_says_what_is_missing_when_tritensor_is(folder: Path, tmp_path: Path) -> None:
    command.install(["torch"])
    code = textwrap.dedent(f"""
        import sys
        sys.path[:] = [{str(folder)!r}]
        try:
            import torch
        except ImportError as error:
            print(error)
    """)
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, timeout=60)
    assert "tritensor is not installed: `pip install tritensor`" in done.stdout, done.stderr
    assert environment.is_our_file(folder / "torch" / "__init__.py")
