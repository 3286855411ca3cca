"""`python -m tests.peer.docstrings torch OUT` runs the examples under PyTorch, with several seeds; `... tritensor IN OUT` runs the same here."""

from __future__ import annotations

import json
import sys
from pathlib import Path

SEEDS = 3


def main(library: str, *files: str) -> None:
    if library == "torch":
        from tests.peer.docstrings.collect import collected
        from tests.peer.docstrings.examples import run

        table = {name: {"statements": s, "found": [run(s, seed) for seed in range(SEEDS)]} for name, s in collected().items()}
        Path(files[0]).write_text(json.dumps(table))
        return
    from tritensor.torch_compat.door import Door

    sys.meta_path.insert(0, Door())
    from tests.peer.docstrings.examples import run

    given = json.loads(Path(files[0]).read_text())
    Path(files[1]).write_text(json.dumps({name: run(entry["statements"], 0) for name, entry in given.items()}))


main(*sys.argv[1:])
