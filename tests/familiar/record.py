"""Record of what the scripts print under PyTorch, where it is installed: `python -m tests.familiar.record` writes printed.json."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

SCRIPTS = sorted(Path(__file__).with_name("scripts").glob("*.py"))
# A torchvision that was built beside another torch imports where the names of two of its compiled ops exist; no script here calls them.
BESIDE = """
import runpy, sys, torch
names = torch.library.Library("torchvision", "DEF")
for name in ("nms", "qnms"):
    names.define(f"{name}(Tensor a) -> Tensor")
runpy.run_path(sys.argv[1], run_name="__main__")
"""
FILE = Path(__file__).with_name("printed.json")


def printed(script: Path) -> str:
    """A script's stdout in a process of its own, on one thread."""
    env = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    beside = ["-c", BESIDE] if "torchvision" in script.read_text() else []
    return subprocess.run([sys.executable, *beside, str(script)], env=env, capture_output=True, text=True, check=True).stdout


def main() -> None:
    FILE.write_text(json.dumps({s.stem: printed(s).splitlines() for s in SCRIPTS}, indent=1) + "\n")
    print(f"{len(SCRIPTS)} scripts")


if __name__ == "__main__":
    main()
