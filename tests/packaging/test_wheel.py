"""Wheel, sdist and editable install: they hold the whole package, put one name at top level, and work away from the checkout."""

from __future__ import annotations

import os
import shutil
import site
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SMOKE = Path(__file__).with_name("smoke.py")
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("packaging")]


def said(*command: str | Path, cwd: Path, **environment: str) -> str:
    """What a command prints; its error when it fails."""
    env = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "TRITON_INTERPRET")} | environment
    done = subprocess.run([str(c) for c in command], cwd=cwd, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


def package_files(root: Path) -> set[str]:
    """Everything of the package that has to be installed, the wings through their links."""
    found = set()
    for folder, _, names in os.walk(root / "tritensor", followlinks=True):
        found |= {
            (Path(folder) / n).relative_to(root).as_posix()
            for n in names
            if n.endswith((".py", ".pyi", ".json", ".txt")) or n == "py.typed"
        }
    return found


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the checkout, links and all, so that building leaves nothing in the real one."""
    copy = tmp_path_factory.mktemp("tree") / "tritensor-checkout"
    shutil.copytree(
        ROOT,
        copy,
        symlinks=True,
        ignore=shutil.ignore_patterns(".git", ".venv", "build", "dist", "*.egg-info", "__pycache__", ".*_cache", ".hypothesis"),
    )
    (copy / "kernels" / "tuned" / "planted.json").write_text("{}")  # tuned configs are data, and must travel
    return copy


@pytest.fixture(scope="module")
def built(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The sdist, the wheel made from it, and the wheel made from the checkout itself."""
    through, direct = tmp_path_factory.mktemp("through"), tmp_path_factory.mktemp("direct")
    said(sys.executable, "-m", "build", "--outdir", through, tree, cwd=through)
    said(sys.executable, "-m", "build", "--wheel", "--outdir", direct, tree, cwd=direct)
    return {"sdist": next(through.glob("*.tar.gz")), "wheel": next(through.glob("*.whl")), "direct": next(direct.glob("*.whl"))}


@pytest.fixture
def empty(tmp_path: Path) -> Path:
    """The Python of a new environment."""
    venv.create(tmp_path / "env", with_pip=True)
    return tmp_path / "env" / "bin" / "python"


def dependencies() -> str:
    """This environment's packages, for PYTHONPATH: its .pth files, an editable tritensor among them, have no effect there."""
    return os.pathsep.join(site.getsitepackages())


def test_the_wheel_is_the_package_and_nothing_else(tree: Path, built: dict[str, Path]) -> None:
    with zipfile.ZipFile(built["wheel"]) as wheel:
        names = {n for n in wheel.namelist() if not n.endswith("/")}
    assert {n.split("/")[0] for n in names if ".dist-info/" not in n} == {"tritensor"}
    assert {n for n in names if ".dist-info/" not in n} == package_files(tree)
    assert "tritensor/kernels/tuned/planted.json" in names
    assert any(n.endswith("licenses/LICENSE") for n in names)


def test_the_wheel_from_the_sdist_is_the_wheel_from_the_checkout(built: dict[str, Path]) -> None:
    with zipfile.ZipFile(built["wheel"]) as a, zipfile.ZipFile(built["direct"]) as b:
        assert sorted(a.namelist()) == sorted(b.namelist())
        for name in a.namelist():
            if not name.endswith("RECORD"):
                assert a.read(name) == b.read(name), name


def test_the_sdist_holds_what_a_packager_needs(tree: Path, built: dict[str, Path]) -> None:
    with tarfile.open(built["sdist"]) as sdist:
        names = {n.split("/", 1)[1] for n in sdist.getnames() if "/" in n}
        assert not [m.name for m in sdist.getmembers() if m.issym() or m.islnk()], "links do not survive everywhere"
    assert package_files(tree) <= names
    assert {"LICENSE", "README.md", "CHANGELOG.md", "pyproject.toml", "examples/train_digits.py", "tests/conftest.py"} <= names


@pytest.mark.parametrize("kind", ["wheel", "sdist"])
def test_installed_it_trains(kind: str, built: dict[str, Path], empty: Path, tmp_path: Path) -> None:
    said(empty, "-m", "pip", "install", "--no-deps", built[kind], cwd=tmp_path)
    shown = said(empty, SMOKE, cwd=tmp_path, PYTHONPATH=dependencies())
    assert str(tmp_path / "env") in shown


def test_editable_it_trains_and_follows_the_files(tree: Path, empty: Path, tmp_path: Path) -> None:
    said(empty, "-m", "pip", "install", "--no-deps", "--editable", tree, cwd=tmp_path)
    # Behind the environment's own packages and not on PYTHONPATH: an editable tritensor here has a finder of the same name.
    packages = Path(said(empty, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=tmp_path).strip())
    (packages / "dependencies.pth").write_text("\n".join(site.getsitepackages()) + "\n")
    shown = said(empty, SMOKE, cwd=tmp_path)
    assert str(tree / "tritensor") in shown
    (tree / "optim" / "planted.py").write_text('"""A file that came after the installation."""\n')
    said(empty, "-c", "import tritensor.optim.planted", cwd=tmp_path)
