"""The floor plan in CONTRIBUTING.md and the short one in README.md, from captions and FLOORS. `python -m tests.pages.floor_plan` writes both anew."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from tests.source_facts import PACKAGE, ROOT
from tests.test_house import FLOORS, WINGS

BEGIN, END = "<!-- python -m tests.pages.floor_plan: begin -->", "<!-- python -m tests.pages.floor_plan: end -->"
OTHERS = {  # top folders that hold no package
    "examples": "Programs to begin with: digits, a GPT, a ResNet, ranks, an op with kernels of its own.",
    "docs": "Pages that read on a code host and on the site, notebooks, and the site's builder.",
}


def caption(path: Path) -> str:
    """The first line of a file or of a folder's `__init__.py`, a whole sentence. Raises ValueError where it is none."""
    file = path / "__init__.py" if path.is_dir() else path
    said = (ast.get_docstring(ast.parse(file.read_text())) or "").partition("\n")[0]
    if not said.endswith("."):
        raise ValueError(f"{file.relative_to(ROOT)}: the caption {said!r} is no whole sentence on one line; the floor plan shows it")
    return said.replace("|", "\\|")


def rooms(folder: Path) -> list[Path]:
    """The packages in a folder."""
    return sorted(p.parent for p in folder.glob("*/__init__.py"))


def rows(path: Path, before: str = "", most: int = 8, behind: str = "") -> list[str]:
    """A room, and the rooms in it: each in a line, or where they are more than `most` their names."""
    inside = rooms(path)
    many = len(inside) > most
    names = f" Its folders: {', '.join(f'`{p.name}`' for p in inside)}." if many else behind
    lines = [f"- {before}`{path.name}{'/' * path.is_dir()}`: {caption(path)}{names}"]
    return lines + [f"  - `{p.name}/`: {caption(p)}" for p in inside if not many]


def full() -> str:
    """Every room of the package from the ground up, then the folders beside it."""
    lines = [
        "`tritensor/` from the ground up. A floor imports from floors below it and from itself (`FLOORS` in `tests/test_house.py`):",
        "",
    ]
    for number, names in enumerate(FLOORS[:-1], 1):
        for name in names:
            path = PACKAGE / name
            lines += rows(path if path.is_dir() else path.with_suffix(".py"), f"**{number}** ")
    lines += [f"- **{len(FLOORS)}** `__init__.py`: The front door, where every public name hangs.", "", "Beside the package:", ""]
    lines += rows(ROOT / "tests", most=99, behind=" Folders not named here mirror the package.")
    return "\n".join([*lines, *rows(ROOT / "bench"), *(f"- `{n}/`: {c}" for n, c in OTHERS.items())])


def short() -> str:
    """The folders at the top, and the order of floors in one line."""
    names = ["tritensor", *WINGS, "tests", "bench"]
    lines = [f"| `{n}/` | {caption(ROOT / n)} |" for n in names] + [f"| `{n}/` | {c} |" for n, c in OTHERS.items()]
    order = " → ".join(", ".join(floor) for floor in FLOORS[:-1])
    return "\n".join(["| folder | what it holds |", "|---|---|", *lines, "", f"Imports go one way: {order}."])


def written(text: str, plan: str) -> str:
    """A page with a plan between its marks."""
    return re.sub(f"{BEGIN}.*{END}", lambda _: f"{BEGIN}\n{plan}\n{END}", text, flags=re.DOTALL)


PAGES = {ROOT / "CONTRIBUTING.md": full, ROOT / "README.md": short}

if __name__ == "__main__":
    for page, plan in PAGES.items():
        page.write_text(written(page.read_text(), plan()))
