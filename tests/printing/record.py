"""Asks PyTorch, where it is installed: `python -m tests.printing.record` writes printed.json, which the tests hold our prints against."""

from __future__ import annotations

import json
from pathlib import Path

from tests.printing.listed import cases, printed

FILE = Path(__file__).with_name("printed.json")


def main() -> None:
    import torch

    rows = [json.dumps([options, e, printed(torch, options, e)]) for options, e in cases()]
    FILE.write_text("[\n" + ",\n".join(rows) + "\n]\n")
    print(f"{len(rows)} prints of torch {torch.__version__}")


if __name__ == "__main__":
    main()
