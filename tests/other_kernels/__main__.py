"""The trial: other projects' Triton kernels on the emulated device and compiled for sm_90: `python -m tests.other_kernels --checkouts FOLDER [NAME ...]`."""

from __future__ import annotations

import argparse
import fnmatch
import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.other_kernels import child
from tests.other_kernels.checkouts import PROJECTS, clone, state
from tests.other_kernels.page import written
from tests.other_kernels.results import Result
from tests.other_kernels.trial import TRIALS, Trial

USAGE = """Exit codes: 0 when every trial ended as it should (right numbers, or the finding that its row tells), 1 when one did not, 2 when a checkout or a
package that a project imports is missing."""


def main() -> int:
    asked = _arguments()
    child.load()
    chosen = [t for name, t in TRIALS.items() if not asked.names or any(fnmatch.fnmatch(name, n) for n in asked.names)]
    if not chosen:
        print(f"no trial is called {' or '.join(asked.names)}; there are {', '.join(TRIALS)}", file=sys.stderr)
        return 2
    folder = asked.checkouts.resolve()
    missing = _missing(chosen, folder, asked.clone)
    if missing:
        print("\n".join(missing), file=sys.stderr)
        return 2
    results = []
    print(f"{'trial':42} {'numbers':28} {'compiled':12} seconds")
    for found in chosen:
        result = Result(found, *_both(found, folder))
        results.append(result)
        print(f"{found.name:42} {result.numbers_in_words:28} {result.compiled_in_words:12} {result.seconds:.0f}", flush=True)
        if not result.as_wanted:
            print("    " + result.why)
    good = sum(r.as_wanted for r in results)
    print(f"{good} of {len(results)} as they should be")
    if asked.write is not None:
        asked.write.write_text(written(results))
    return 0 if good == len(results) else 1


def _arguments() -> Any:
    parser = argparse.ArgumentParser(prog="python -m tests.other_kernels", description=__doc__, epilog=USAGE)
    parser.add_argument("--checkouts", type=Path, required=True, metavar="FOLDER", help="where the projects' sources stand, a folder each")
    parser.add_argument("--clone", action="store_true", help="fetch those that are missing there, at the commits that the trial is for")
    parser.add_argument("--write", type=Path, metavar="FILE", help="write the page that tells the result (docs/other_kernels.md)")
    parser.add_argument("names", nargs="*", metavar="NAME", help="trials by name or pattern: liger/rms_norm, 'attorch/*' (default: all)")
    return parser.parse_args()


def _missing(chosen: list[Trial], folder: Path, fetch: bool) -> list[str]:
    """What must be had first, a line or a few for each, with the commands."""
    said = []
    for project in [p for p in PROJECTS if any(t.project is p for t in chosen)]:
        if fetch and not (folder / project.name).exists():
            try:
                clone(project, folder)
            except subprocess.CalledProcessError as error:
                said.append(f"{' '.join(error.cmd)} ended with exit code {error.returncode}")
        wrong = state(project, folder)
        if wrong:
            said += [f"{folder / project.name} {wrong}. --clone fetches what is missing; by hand, in {folder}:"]
            said += [f"    {line}" for line in project.fetch()]
        said += [f"{project.name} imports {m}: pip install {name}" for m, name in project.needs if importlib.util.find_spec(m) is None]
    return said


def _both(found: Trial, folder: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """A trial's numbers and its compilation, each in a process of its own.

    Where numbers are wrong they are asked again with zeros in masked-off lanes, which is what Triton's code for NVIDIA leaves there.
    """
    numbers = _run(found, "numbers", folder, "poison")
    if numbers["error"].startswith("AssertionError: ") and not found.finding:
        again = _run(found, "numbers", folder, "zero")
        if not again["error"]:
            numbers = again | {"masked": True, "seconds": numbers["seconds"] + again["seconds"]}
    return numbers, _run(found, "compiled", folder, "poison")


def _run(found: Trial, mode: str, folder: Path, masked: str) -> dict[str, Any]:
    """What a child says of a trial."""
    environment = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"} | {
        "OPENBLAS_NUM_THREADS": "1",
        "TRITENSOR_MASKED_LANES": masked,
    }
    if mode == "numbers":
        environment["TRITON_INTERPRET"] = "1"
    else:
        environment["PYTHONOPTIMIZE"] = "1"  # memory reads as zeros there, so that projects' own assertions about values mean nothing
    command = [sys.executable, "-m", "tests.other_kernels.child", found.name, mode, str(folder)]
    nothing: dict[str, Any] = {"seconds": found.seconds, "kernels": {}, "compiled": [0, 0], "missing": []}
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=found.seconds)
    except subprocess.TimeoutExpired:
        return nothing | {"error": f"no end after {found.seconds:.0f} s"}
    try:
        return dict(json.loads(done.stdout.splitlines()[-1]))
    except (IndexError, ValueError):
        return nothing | {"error": f"ended with exit code {done.returncode}: {' '.join(done.stderr.splitlines()[-1:])}"}


if __name__ == "__main__":
    sys.exit(main())
