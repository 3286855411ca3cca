"""The notebooks: run from top to bottom, kept with their outputs, and whether what is kept is what they say now.

python -m docs.site.notebooks            # run all, store text and pictures: after a change of a cell or of what it prints
python -m docs.site.notebooks 02         # those whose names begin so
python -m docs.site.notebooks --check    # run all, store nothing; 1 when a stored text is another than today's
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

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
    (profile / "startup").mkdir(exist_ok=True)
    (profile / "startup" / "offline.py").write_text("from docs.site.offline import guard\n\nguard()\ndel guard\n")
    # that a machine has fewer processors than a cell has workers is no news of the notebook
    quiet = 'warnings.filterwarnings("ignore", "This DataLoader will create ")'
    (profile / "startup" / "processors.py").write_text(f"import warnings\n\n{quiet}\ndel warnings\n")
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    return {**os.environ, "PYTHONPATH": path, "IPYTHONDIR": settings, "OPENBLAS_NUM_THREADS": "1", "JUPYTER_PLATFORM_DIRS": "1"}


def read(path: Path) -> dict[str, Any]:
    """A notebook as its file has it, each text in one piece: format 4 also takes a list of lines."""
    notebook: dict[str, Any] = json.loads(path.read_text())
    for cell in notebook["cells"]:
        cell["source"] = "".join(cell["source"])
        for output in cell.get("outputs", ()):
            if "text" in output:
                output["text"] = "".join(output["text"])
            for kind, value in output.get("data", {}).items():
                output["data"][kind] = "".join(value) if isinstance(value, list) else value
    return notebook


def write(notebook: dict[str, Any], path: Path) -> None:
    """Write a notebook as Jupyter does: a line of text in a line of the file, so that a diff reads."""
    lines = json.loads(json.dumps(notebook))
    for cell in lines["cells"]:
        cell["source"] = cell["source"].splitlines(True)
        for output in cell.get("outputs", ()):
            if "text" in output:
                output["text"] = output["text"].splitlines(True)
            for kind, value in output.get("data", {}).items():
                output["data"][kind] = value.splitlines(True) if kind.startswith(("text/", "image/svg")) else value
    path.write_text(json.dumps(lines, indent=1, sort_keys=True, ensure_ascii=False) + "\n")


def executed(path: Path) -> dict[str, Any]:
    """A notebook after all of its cells have run, in a folder of their own. A cell that raises, raises."""
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(path, as_version=4)
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as settings:
        client = NotebookClient(notebook, timeout=SECONDS, resources={"metadata": {"path": folder}})
        client.execute(env=environment(settings))
        written = Path(folder) / "executed.ipynb"
        nbformat.write(notebook, written)
        return read(written)


def stored(notebook: dict[str, Any]) -> dict[str, Any]:
    """A notebook as it is kept: cells numbered, outputs without times, places in memory and what a screen would not show."""
    cells: list[dict[str, Any]] = []
    count = 0
    for i, cell in enumerate(notebook["cells"], 1):
        kept = {"cell_type": cell["cell_type"], "id": f"cell-{i:02}", "metadata": {}, "source": cell["source"]}
        if cell["cell_type"] == "code":
            count += 1
            kept |= {"execution_count": count, "outputs": [_output(o, count) for o in _merged(cell["outputs"])]}
        cells.append(kept)
    return {"cells": cells, "metadata": {"kernelspec": KERNEL, "language_info": {"name": "python"}}, "nbformat": 4, "nbformat_minor": 5}


def _merged(outputs: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Neighbouring pieces of one stream as one: how a stream is cut depends on the clock."""
    last: dict[str, Any] | None = None
    for output in outputs:
        if last is not None and output["output_type"] == "stream" == last["output_type"] and output["name"] == last["name"]:
            last["text"] += output["text"]
            continue
        if last is not None:
            yield last
        last = {**output}
    if last is not None:
        yield last


def _output(output: dict[str, Any], count: int) -> dict[str, Any]:
    if output["output_type"] == "execute_result":
        output["execution_count"] = count
    if "data" in output:
        data = {**output["data"]}
        if any(kind.startswith("image/") for kind in data) and "text/plain" in data:
            data["text/plain"] = re.sub(r"^<.*>$", "a picture", data["text/plain"], flags=re.DOTALL)
        output |= {"data": data, "metadata": {}}
    return output


def texts(notebook: dict[str, Any]) -> list[list[str]]:
    """What each cell of code prints and shows in words."""
    code = [c for c in stored(notebook)["cells"] if c["cell_type"] == "code"]
    return [[o.get("text") or o.get("data", {}).get("text/plain", "") for o in c["outputs"]] for c in code]


def stale(old: dict[str, Any], new: dict[str, Any], name: str) -> list[str]:
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
            said += stale(read(path), new, path.name)
            continue
        write(stored(new), path)
        size = path.stat().st_size
        print(f"{path.name}: {size / 1000:.0f} kB")
        if size > LARGEST:
            said.append(f"{path.name} has {size} bytes; draw smaller pictures, at most {LARGEST} are kept")
    print("\n".join(said), end="\n" if said else "", file=sys.stderr)
    return bool(said)


if __name__ == "__main__":
    sys.exit(main())
