"""The notebooks: run from top to bottom, kept with their outputs, and whether what is kept is what they say now.

python -m docs.site.notebooks            # run all, store text and pictures: after a change of a cell or of what it prints
python -m docs.site.notebooks 02         # those whose names begin so
python -m docs.site.notebooks --check    # run all, store nothing; 1 when a stored text is another than today's
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docs" / "notebooks"
SECONDS = 120  # the longest that a cell may take
LARGEST = 300_000  # bytes of a stored notebook
KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}


def notebooks(beginning: str = "") -> list[Path]:
    """The notebooks in the order in which they are read."""
    return sorted(p for p in FOLDER.glob("*.ipynb") if p.name.startswith(beginning))


def environment(settings: str) -> dict[str, str]:
    """What kernels run in: this checkout's tritensor, one thread, and IPython's settings in a folder of ours, so that nobody's own change what is shown."""
    profile = Path(settings) / "profile_default"
    profile.mkdir(parents=True, exist_ok=True)
    (profile / "ipython_kernel_config.py").write_text('get_config().IPKernelApp.log_level = "ERROR"\n')
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    return {**os.environ, "PYTHONPATH": path, "IPYTHONDIR": settings, "OPENBLAS_NUM_THREADS": "1", "JUPYTER_PLATFORM_DIRS": "1"}


def executed(path: Path) -> Any:
    """A notebook after all of its cells have run, in a folder of their own. A cell that raises, raises."""
    from nbclient import NotebookClient

    notebook = nbformat.read(path, as_version=4)
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as settings:
        client = NotebookClient(notebook, timeout=SECONDS, resources={"metadata": {"path": folder}})
        client.execute(env=environment(settings))
    return notebook


def stored(notebook: Any) -> Any:
    """A notebook as it is kept: cells numbered, outputs without times, places in memory and what a screen would not show."""
    kept = nbformat.v4.new_notebook(metadata={"kernelspec": KERNEL, "language_info": {"name": "python"}})
    count = 0
    for i, cell in enumerate(notebook.cells, 1):
        cell = nbformat.from_dict({**cell, "id": f"cell-{i:02}", "metadata": {}})
        if cell.cell_type == "code":
            count += 1
            cell.execution_count = count
            cell.outputs = [_output(o, count) for o in _merged(cell.outputs)]
        kept.cells.append(cell)
    return kept


def _merged(outputs: list[Any]) -> Iterator[Any]:
    """Neighbouring pieces of one stream as one: how a stream is cut depends on the clock."""
    last = None
    for output in outputs:
        if last is not None and output.output_type == "stream" == last.output_type and output.name == last.name:
            last.text += output.text
            continue
        if last is not None:
            yield last
        last = nbformat.from_dict({**output})
    if last is not None:
        yield last


def _output(output: Any, count: int) -> Any:
    if output.output_type == "execute_result":
        output.execution_count = count
    if "data" in output:
        output.metadata = {}
        if any(kind.startswith("image/") for kind in output.data) and "text/plain" in output.data:
            output.data["text/plain"] = re.sub(r"^<.*>$", "a picture", output.data["text/plain"], flags=re.DOTALL)
    return output


def texts(notebook: Any) -> list[list[str]]:
    """What each cell of code prints and shows in words."""
    found = []
    for cell in stored(notebook).cells:
        if cell.cell_type == "code":
            found.append([o.get("text") or o.get("data", {}).get("text/plain", "") for o in cell.outputs])
    return found


def stale(old: Any, new: Any, name: str) -> list[str]:
    """A line for each cell whose stored text is another than what it says now."""
    before, now = texts(old), texts(new)
    if len(before) != len(now):
        return [f"{name}: {len(before)} cells are stored, {len(now)} were run"]
    return [
        f"{name}, cell of code {i}: stored {a!r}, now {b!r}; run `python -m docs.site.notebooks`"
        for i, (a, b) in enumerate(zip(before, now, strict=True), 1)
        if a != b
    ]


def main(argv: list[str] | None = None) -> int:
    """Run, then store or compare."""
    parser = argparse.ArgumentParser(prog="python -m docs.site.notebooks", description=__doc__)
    parser.add_argument("beginning", nargs="?", default="", help="run the notebooks whose names begin so")
    parser.add_argument("--check", action="store_true", help="store nothing; say what would change")
    given = parser.parse_args(argv)
    said: list[str] = []
    for path in notebooks(given.beginning):
        new = executed(path)
        if given.check:
            said += stale(nbformat.read(path, as_version=4), new, path.name)
            continue
        nbformat.write(stored(new), path)
        size = path.stat().st_size
        print(f"{path.name}: {size / 1000:.0f} kB")
        if size > LARGEST:
            said.append(f"{path.name} has {size} bytes; draw smaller pictures, at most {LARGEST} are kept")
    print("\n".join(said), end="\n" if said else "", file=sys.stderr)
    return bool(said)


if __name__ == "__main__":
    sys.exit(main())
