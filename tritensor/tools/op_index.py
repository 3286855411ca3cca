"""The command `tritensor op-index`: writes to kernels/op_index.py which file registers which ops."""

from __future__ import annotations

import argparse
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path

import tritensor.kernels
from tritensor.ops.table import registry

_COLUMNS = 136  # of an entry, four in from the edge
_HEAD = '''"""Index of ops: the file of this folder that registers each. Written by `python -m tritensor.tools.op_index`; a test holds it to be true."""

MODULES = {
'''


def text() -> str:
    """The index of the ops that the files of kernels/ register now. Loads them all."""
    found: dict[str, list[str]] = {}
    prefix = tritensor.kernels.__name__ + "."

    def added(name: str) -> None:
        frame = sys._getframe(1)
        while frame is not None and not (frame.f_code.co_name == "<module>" and frame.f_globals["__name__"].startswith(prefix)):
            frame = frame.f_back  # type: ignore[assignment]
        if frame is not None:
            found.setdefault(frame.f_globals["__name__"].removeprefix(prefix), []).append(name)

    if any(name.startswith(prefix) and registry.index.get(op) == name for op, name in registry.index.items() if name in sys.modules):
        raise RuntimeError("op_index: some files of ops are loaded already; ask in a process of its own")
    registry.index, registry.added = {}, added  # without the index that stands: it may name a file that an op has left
    try:
        registry.everything()
    finally:
        registry.added = None
    return _HEAD + "".join(f"    {_entry(file, sorted(names))}\n" for file, names in sorted(found.items())) + "}\n"


def _entry(file: str, names: list[str]) -> str:
    """One line of the index, or several where the names are many; as the formatter would have it."""
    if len(line := f'"{file}": "{" ".join(names)}",') <= _COLUMNS:
        return line
    parts = textwrap.wrap(" ".join(names), _COLUMNS - 8, break_on_hyphens=False)
    held = "".join(f'        "{part}{" " if k < len(parts) - 1 else ""}"\n' for k, part in enumerate(parts))
    return f'"{file}": (\n{held}    ),'


def main(argv: Sequence[str], parser: argparse.ArgumentParser) -> int:
    """Write the index; with --check say whether it is true, 1 where it is not."""
    parser.add_argument("--check", action="store_true", help="write nothing; exit code 1 where the index is stale")
    check = parser.parse_args(argv).check
    path, now = Path(tritensor.kernels.__file__).parent / "op_index.py", text()
    if not check:
        path.write_text(now)
    elif path.read_text() != now:
        print(f"{path.name} is stale: tritensor op-index", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], argparse.ArgumentParser(prog="python -m tritensor.tools.op_index", description=__doc__)))
