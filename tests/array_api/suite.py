"""The standard's own test suite, asked of our namespace: `python -m tests.array_api.suite [--suite FOLDER] [arguments of pytest]`."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

# The suite and the standard's stubs that it reads, at the commits that the list of failures was written for.
SUITE = ("https://github.com/data-apis/array-api-tests", "55fcc60179efa2680ddd6cd926ddf17b83530e2b")
STUBS = ("https://github.com/data-apis/array-api", "5f847a3858875c682ae901aa22b0413bf24be9da")
XFAILS = Path(__file__).with_name("xfails.txt")
EXAMPLES = "50"  # per test; the suite's own default of 100 takes twice as long


def checked_out(source: tuple[str, str], folder: Path) -> Path:
    """A repository at a commit, cloned where the folder is not there yet."""
    url, commit = source
    if not (folder / ".git").exists():
        subprocess.run(["git", "clone", "--quiet", "--filter=blob:none", "--no-checkout", url, str(folder)], check=True)
    subprocess.run(["git", "-C", str(folder), "checkout", "--quiet", "--force", commit], check=True)
    return folder


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--suite", type=Path, help="a checkout of the suite with its submodule; cloned beside the environment without it")
    options, further = parser.parse_known_args(arguments)
    suite = options.suite
    if suite is None:
        suite = checked_out(SUITE, Path(sys.prefix) / "array-api-tests")
        checked_out(STUBS, suite / "array-api")
    root = Path(__file__).resolve().parents[2]
    env = os.environ | {
        "PYTHONPATH": str(root),
        "ARRAY_API_TESTS_MODULE": "tritensor.array_api",
        "ARRAY_API_TESTS_VERSION": "2024.12",
    }
    asked = further if any(a.startswith("array_api_tests") for a in further) else ["array_api_tests", *further]
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-c",
        "pytest.ini",
        "--rootdir",
        ".",
        "-p",
        "no:cacheprovider",
        "--disable-deadline",
        "--disable-warnings",
    ]
    return subprocess.run(
        [*command, f"--xfails-file={XFAILS}", "--max-examples", EXAMPLES, *asked], cwd=suite, env=env, check=False
    ).returncode


if __name__ == "__main__":
    sys.exit(main())
