"""Record of what the programs print under PyTorch, where it is installed: `python -m tests.programs.record [NAME...]` writes printed.json."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tests.familiar.record import printed

FOLDER = Path(__file__).parent
PROGRAMS = sorted(p for p in FOLDER.glob("*/*.py") if "__" not in p.name)
FILE = FOLDER / "printed.json"


def name(program: Path) -> str:
    """vision/grad_cam"""
    return program.relative_to(FOLDER).with_suffix("").as_posix()


def main() -> None:
    found = json.loads(FILE.read_text()) if FILE.exists() else {}
    names = {name(p) for p in PROGRAMS}
    found = {k: v for k, v in found.items() if k in names}
    for program in PROGRAMS:
        if len(sys.argv) == 1 or name(program) in sys.argv[1:] or name(program) not in found:
            found[name(program)] = printed(program).splitlines()
    FILE.write_text(json.dumps(dict(sorted(found.items())), indent=1) + "\n")
    print(f"{len(found)} programs")


if __name__ == "__main__":
    main()
