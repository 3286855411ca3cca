"""What the scripts print under PyTorch, where it is installed: `python -m tests.familiar.record` writes printed.json."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

SCRIPTS = sorted(Path(__file__).with_name("scripts").glob("*.py"))
FILE = Path(__file__).with_name("printed.json")


def printed(script: Path) -> str:
    """A script's stdout in a process of its own, on one thread."""
    env = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    return subprocess.run([sys.executable, str(script)], env=env, capture_output=True, text=True, check=True).stdout


def main() -> None:
    FILE.write_text(json.dumps({s.stem: printed(s).splitlines() for s in SCRIPTS}, indent=1) + "\n")
    print(f"{len(SCRIPTS)} scripts")


if __name__ == "__main__":
    main()
