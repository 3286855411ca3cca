"""Command `tritensor stand-in`: installs, removes and examines the packages by which `import torch` is tritensor in this environment."""

from __future__ import annotations

import argparse
import contextlib
import importlib.metadata
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from tritensor.tools.stand_in import environment, packages
from tritensor.tools.stand_in.environment import StandInError


def main(argv: Sequence[str], parser: argparse.ArgumentParser) -> int:
    """Install, uninstall or examine; returns 0 when done (status: when all that is installed is whole), 1 when refused, with the reason on stderr."""
    parser.add_argument("action", choices=("install", "uninstall", "status"))
    parser.add_argument("--without", action="append", default=[], choices=packages.DISTRIBUTIONS[1:], help="leave a package out (install)")
    given = parser.parse_args(argv)
    try:
        if given.action == "status":
            lines, whole = status()
            print("\n".join(lines))
            return 0 if whole else 1
        if given.action == "install":
            done = install([d for d in packages.DISTRIBUTIONS if d not in given.without])
        else:
            done = uninstall()
    except StandInError as error:
        print(f"tritensor stand-in {given.action}: {error}", file=sys.stderr)
        return 1
    print("\n".join(done))
    return 0


def install(names: Sequence[str]) -> list[str]:
    """Write distributions into the active environment, all or none; returns what to tell.

    Raises StandInError where a real one is, or nothing can be written.
    """
    folder = environment.site_packages()
    environment.refuse_unwritable(folder)
    environment.refuse_uninstalled()
    for name in names:
        _refuse_other(name)
    leftovers = [p for name in names for p in _leftovers(name, folder)]
    # Beside its place: a rename within one file system is whole or nothing.
    with tempfile.TemporaryDirectory(prefix=".tritensor-", dir=folder) as made:
        for name in names:
            for path, text in packages.files_of(name).items():
                (Path(made) / path).parent.mkdir(parents=True, exist_ok=True)
                (Path(made) / path).write_text(text, encoding="utf-8")
        with _put_back_on_failure(folder, Path(made), leftovers):
            for made_folder in sorted(Path(made).iterdir()):
                if not made_folder.name.startswith("."):
                    os.rename(made_folder, folder / made_folder.name)
    done = [f"{name} {packages.version_of(name)}: `import {name}` is tritensor in {folder}" for name in names]
    kept = folder / packages.folder_of_metadata(names[0]) / packages.CONSTRAINTS
    return [
        *done,
        f"a library that asks for a newer torch would have pip replace it: install with `pip install -c {kept} ...`, which refuses that by name",
    ]


@contextlib.contextmanager
def _put_back_on_failure(folder: Path, made: Path, leftovers: Sequence[Path]) -> Iterator[None]:
    """Move what stands in the way aside, and back where the `with` fails."""
    aside = made / ".before"
    aside.mkdir()
    new = [p.name for p in made.iterdir() if p != aside]
    for path in leftovers:
        os.rename(path, aside / path.name)
    try:
        yield
    except BaseException:
        for name in new:
            if not (made / name).exists():
                os.rename(folder / name, made / name)
        for path in leftovers:
            os.rename(aside / path.name, path)
        raise


def uninstall() -> list[str]:
    """Remove the stand-in's distributions from the active environment; returns what to tell. Raises StandInError where nothing of it is there, or not ours."""
    folder = environment.site_packages()
    found = {name: _leftovers(name, folder) for name in packages.DISTRIBUTIONS}
    if not any(found.values()):
        real = [
            f"{name} {f.version} in {f.folder} is a real one" for name in found for f in environment.distributions(name) if not f.is_ours
        ]
        raise StandInError(f"no stand-in is installed in {folder}" + "".join(f"; {r}, which pip removes" for r in real))
    environment.refuse_unwritable(folder)
    for paths in found.values():
        for path in paths:
            shutil.rmtree(path)
    return [f"{name}: removed from {folder}" for name, paths in found.items() if paths]


def status() -> tuple[list[str], bool]:
    """What each name of the stand-in is in this environment, a line each, and whether nothing is wrong."""
    folder = environment.site_packages()
    lines, whole = [f"{sys.executable}: {folder}"], True
    for name in packages.DISTRIBUTIONS:
        said = _problems(name, folder)
        ours = [f for f in environment.distributions(name) if f.is_ours]
        if not said:
            said = [f"{ours[0].version}, tritensor's stand-in, whole" if ours else "not installed"]
        else:
            whole = False
        lines += [f"  {name}: {line}" for line in said]
    wanted = _unsatisfied()
    return lines + [f"  {line}" for line in wanted], whole and not wanted


def _problems(name: str, folder: Path) -> list[str]:
    """What is wrong with a name: two of it, a real one, half of a stand-in."""
    said = []
    found = environment.distributions(name)
    for f in found:
        if not f.is_ours:
            said.append(f"{f.version} in {f.folder} is a real one, no stand-in")
    if len(found) > 1:
        said.append(
            f"{len(found)} distributions of one name: {', '.join(f'{f.version} in {f.folder}' for f in found)}; Python imports the first on its path"
        )
    written = packages.files_of(name)
    ours = [f for f in found if f.is_ours]
    present = [path for path in written if (folder / path).is_file()]
    if (present or ours) and len(present) < len(written):
        gone = [path for path in written if path not in present]
        said.append(f"half removed, without {', '.join(gone)}: `tritensor stand-in install` writes it anew, `uninstall` removes the rest")
    elif ours and any((folder / path).read_text(encoding="utf-8") != text for path, text in written.items()):
        said.append("written by another version of tritensor: `tritensor stand-in install` writes it anew")
    said += [
        f"{p} lies under the name and is none of the stand-in's" for n in packages.packages_of(name) for p in environment.other_packages(n)
    ]
    return said


def _unsatisfied() -> list[str]:
    """Installed distributions that ask for another version of what the stand-in stands for."""
    try:
        from packaging.requirements import InvalidRequirement, Requirement
    except ImportError:
        return ["what installed libraries ask of torch was not compared: `pip install packaging`"]
    said = []
    versions = {name: f.version for name in packages.DISTRIBUTIONS for f in environment.distributions(name)[:1] if f.is_ours}
    for d in importlib.metadata.distributions():
        for text in d.requires or ():
            try:
                asked = Requirement(text)
            except InvalidRequirement:  # pip has told of it when it installed the library
                continue
            version = versions.get(asked.name)
            applies = asked.marker is None or asked.marker.evaluate({"extra": ""})
            if version and applies and not asked.specifier.contains(version, prereleases=True):
                said.append(
                    f"{d.metadata['Name']} {d.version} asks for {text}; the stand-in is {version}: take a version of {d.metadata['Name']} for it"
                )
    return sorted(set(said))


def _refuse_other(name: str) -> None:
    """Raise where a real distribution, or somebody else's package, has the name."""
    for found in environment.distributions(name):
        if not found.is_ours:
            raise StandInError(
                f"{name} {found.version} is installed in {found.folder}; the stand-in would shadow it. In an environment without it the two never meet: "
                f"make one, `python3 -m venv .venv`, or remove that one, `pip uninstall {name}`"
            )
    for package in packages.packages_of(name):
        for path in environment.other_packages(package):
            # a namespace of our own leftovers is cleared away
            if path.is_dir() and all(p.name == "__pycache__" for p in path.iterdir()):
                continue
            raise StandInError(
                f"{path} is found by `import {package}` and is none of the stand-in's; the stand-in would shadow it. Remove or rename it first"
            )


def _leftovers(name: str, folder: Path) -> list[Path]:
    """Folders of the stand-in in site-packages, whole or half removed."""
    found = [p for p in folder.glob(f"{name}-*.dist-info") if packages.is_stand_in(p.name.removesuffix(".dist-info"))]
    for package in packages.packages_of(name):
        path = folder / package
        if path.is_dir():
            files = [p for p in path.rglob("*") if p.is_file() and "__pycache__" not in p.parts]
            if all(environment.is_our_file(p) for p in files):
                found.append(path)
    return found
