"""Files of the stand-in's distributions: an `__init__.py` for each package, and the metadata that pip, uv and importlib read."""

from __future__ import annotations

import base64
import hashlib
from pathlib import PurePosixPath

from tritensor.torch_compat.door import STANDS_FOR, SUFFIX

DISTRIBUTIONS = tuple(dict.fromkeys(a.distribution for a in STANDS_FOR.values()))
CONSTRAINTS = "constraints.txt"  # for pip's -c: a library that asks for a newer torch is refused by name, and does not bring PyTorch in
MARK = "tritensor stand-in"  # in every file that is written, so that nobody else's is taken for one

# PyTorch's wheel brings these along, and libraries import some of them without asking for them.
_BROUGHT = ("filelock", "typing-extensions>=4.10.0", "sympy>=1.13.3", "networkx>=2.5.1", "jinja2", "fsspec>=0.8.5")
_PACKAGE = '''"""{package}, answered by tritensor: a file of the {mark}, which `pip uninstall {distribution}` removes."""

import sys

try:
    from tritensor.torch_compat.door import answer_for_good
except ModuleNotFoundError as error:
    if error.name != "tritensor":
        raise
    raise ImportError(
        "{package}: what is installed under this name is tritensor's stand-in, and tritensor is not installed: `pip install tritensor`, "
        "or `pip uninstall {distribution}` and install PyTorch"
    ) from None

answer_for_good(sys.modules[__name__])
'''
_METADATA = """Metadata-Version: 2.1
Name: {name}
Version: {version}
Summary: {mark}: `import {name}` gives tritensor, which has PyTorch's programming model; no PyTorch is in here.
License: Apache-2.0
Requires-Python: >=3.11
Requires-Dist: tritensor
{needs}
Written by `tritensor stand-in install`, removed by `tritensor stand-in uninstall` or `pip uninstall {name}`.
"""
_WHEEL = "Wheel-Version: 1.0\nGenerator: tritensor\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


def packages_of(distribution: str) -> list[str]:
    """The packages that a distribution brings."""
    return [name for name, a in STANDS_FOR.items() if a.distribution == distribution]


def version_of(distribution: str) -> str:
    """The version that a distribution of the stand-in says."""
    return STANDS_FOR[distribution].version


def is_stand_in(version: str) -> bool:
    """Whether a version is that of a stand-in."""
    return version.endswith(SUFFIX)


def folder_of_metadata(distribution: str) -> str:
    """The name of the folder with a distribution's metadata."""
    return f"{distribution}-{version_of(distribution)}.dist-info"


def files_of(distribution: str) -> dict[str, str]:
    """{path below site-packages: text} of a distribution; its RECORD lists all of them with hash and size, as pip asks."""
    info = folder_of_metadata(distribution)
    packages = packages_of(distribution)
    files = {f"{p}/__init__.py": _PACKAGE.format(package=p, distribution=distribution, mark=MARK) for p in packages}
    needs = "".join(f"Requires-Dist: {name}\n" for name in _BROUGHT) if distribution == "torch" else ""
    files[f"{info}/METADATA"] = _METADATA.format(name=distribution, version=version_of(distribution), mark=MARK, needs=needs)
    files[f"{info}/WHEEL"] = _WHEEL
    files[f"{info}/INSTALLER"] = "tritensor\n"
    files[f"{info}/REQUESTED"] = ""
    files[f"{info}/top_level.txt"] = "".join(f"{p}\n" for p in packages)
    files[f"{info}/{CONSTRAINTS}"] = "".join(f"{d}=={version_of(d)}\n" for d in DISTRIBUTIONS)
    record = PurePosixPath(info, "RECORD").as_posix()
    files[record] = "".join(f"{path},{_hash(text)},{len(text.encode())}\n" for path, text in files.items()) + f"{record},,\n"
    return files


def _hash(text: str) -> str:
    """A RECORD's hash: sha256, urlsafe base64 without its padding (the wheel format, PEP 427)."""
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
