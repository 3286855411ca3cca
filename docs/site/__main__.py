"""`python -m docs.site`, which is `make docs`: examples of docstrings and pages run, the site built, and asked whether it is whole.

Warnings are errors. Nothing is fetched. Ends with 0 and the path of the first page, or with a line for everything that is wrong.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

from docs.site import built, examples, notebooks

ROOT = Path(__file__).resolve().parents[2]
SITE = ROOT / "build" / "site"


def build(site: Path, notebooks_in: Path, fresh: bool) -> int:
    """Sphinx's exit code: the site of docs/, with the notebooks as they stand in a folder."""
    command = [sys.executable, "-m", "sphinx", "-q", "-b", "html", "-W", "--keep-going", "-c", str(ROOT / "docs/site"), *(["-E"] * fresh)]
    command += ["-d", str(site.parent / f"{site.name}-doctrees"), str(ROOT / "docs"), str(site)]
    return subprocess.run(command, env={**os.environ, "TRITENSOR_NOTEBOOKS": str(notebooks_in)}, cwd=ROOT).returncode


def sweep(site: Path) -> None:
    """Take pages out of a site that has been built before whose sources are gone, or stand under another name now."""
    docs = ROOT / "docs"
    for page in site.rglob("*.html"):
        name = page.relative_to(site).with_suffix("")
        sources = [docs / f"{name}{suffix}" for suffix in (".md", ".rst", ".ipynb")]
        if "_static" not in page.parts and name.name not in ("genindex", "search", "py-modindex") and not any(s.exists() for s in sources):
            page.unlink()


def run_notebooks(to: Path) -> list[str]:
    """Run the notebooks, leave them in a folder; what is stored in docs/ and no longer said, and what is too large."""
    found = []
    to.mkdir(parents=True, exist_ok=True)
    for path in notebooks.notebooks():
        new = notebooks.stored(notebooks.executed(path))
        notebooks.write(new, to / path.name)
        found += notebooks.stale(notebooks.read(path), new, path.name)
        if path.stat().st_size > notebooks.LARGEST:
            found.append(f"{path.name} has {path.stat().st_size} bytes; draw smaller pictures, at most {notebooks.LARGEST} are kept")
    return found


def main(argv: list[str] | None = None) -> int:
    """Build, ask, tell."""
    parser = argparse.ArgumentParser(prog="python -m docs.site", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="run neither notebooks nor examples, and read only pages that have changed")
    parser.add_argument("--out", type=Path, default=SITE, metavar="FOLDER", help=f"where to (default: {SITE.relative_to(ROOT)})")
    given = parser.parse_args(argv)
    start = time.perf_counter()
    shown = notebooks.FOLDER if given.quick else given.out.parent / f"{given.out.name}-notebooks"
    found = [] if given.quick else [*examples.failures(), *run_notebooks(shown)]
    if build(given.out.resolve(), shown.resolve(), fresh=not given.quick):
        found.append("Sphinx warned: see above")
    else:
        sweep(given.out)
        found += built.complaints(given.out)
    print("\n".join(found), end="\n" if found else "", file=sys.stderr)
    if not found:
        print(f"{given.out / 'index.html'} ({time.perf_counter() - start:.0f} s)")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
